"""The server that nodes of jobs meet at, where the file's rendezvous needs one."""

from collections.abc import Mapping
from typing import ClassVar

from ultrascale import config
from ultrascale.catalog import addons, auto_mode, versions
from ultrascale.core.part import Part
from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan, PlannedPart

# --- Plan of the rendezvous server ----------------------------------------------------------------


class Plan(PlannedPart):
    """The etcd that TorchElastic workers meet at."""

    renderer: ClassVar[str] = "etcd"
    is_applied_early: ClassVar[bool] = True

    image: str  # Image reference, pinned
    # Where it runs: the training namespace, so that the tutorial's short host name ``etcd-server``
    # resolves from a job's pods.
    namespace: str
    replicas: int  # 1 or 3 members
    # Whether the v2 HTTP API is on, which torch's own etcd backends need. The v3 API, which ours
    # speaks, always is.
    v2_api: bool
    volume_gib: int  # Size of each member's gp3 volume, in GiB
    volume_provisioner: str  # Driver that makes the volumes on the nodes it runs on
    volume_key: str | None = None  # ARN of their KMS key; None: the account's default key of EBS
    # Ranges of addresses of pods, where policies cannot name those of jobs.
    job_ranges: tuple[str, ...] = ()

    @property
    def pods(self) -> Mapping[str, int]:
        """Its members."""
        return {"etcd": self.replicas}

    @property
    def untied(self) -> Mapping[str, str]:
        """Its image."""
        return {"etcd for rendezvous": self.image}


# --- The server that nodes of jobs meet at, where the file's rendezvous needs one -----------------


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
