"""The server that nodes of jobs meet at, where the file's rendezvous needs one."""

from ultrascale import config
from ultrascale.catalog import addons, auto_mode, versions
from ultrascale.core.part import Part
from ultrascale.parts.etcd.model import Plan
from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan

_VOLUME_GIB = 10


class _Part(Part[config.Section, Plan]):
    name = "etcd"

    def plan_on(self, cluster: config.Cluster, core: ClusterPlan) -> Plan | None:
        rendezvous = cluster.scheduling.rendezvous
        if not rendezvous.has_server:
            return None
        return Plan(
            image=versions.image(rendezvous.backend).reference,
            namespace=names.TRAINING_NAMESPACE,
            replicas=rendezvous.replicas,
            v2_api=rendezvous.backend == "etcd-v2",
            volume_gib=_VOLUME_GIB,
            # etcd runs on system nodes; Auto Mode's have a driver of their own.
            volume_provisioner=auto_mode.VOLUME_PROVISIONER
            if all(pool.is_auto_mode for pool in cluster.pools if pool.role == "system")
            else addons.EBS_VOLUME_PROVISIONER,
            volume_key=core.key("volumes"),
            job_ranges=core.network.policies.ranges,
        )


PART = _Part()

__all__ = ["PART", "Plan"]
