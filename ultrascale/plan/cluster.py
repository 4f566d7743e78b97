"""Everything that follows from a cluster file."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ultrascale import config
from ultrascale.catalog import eks, regions
from ultrascale.errors import CatalogError, ConfigError
from ultrascale.plan.addons import addon_mistakes, node_addons, workload_addons
from ultrascale.plan.model import ClusterPlan, ControlPlanePlan, NetworkPlan, PoolPlan
from ultrascale.plan.network import address_mistakes, plan_network
from ultrascale.plan.platform import (
    plan_efa_plugin,
    plan_etcd,
    plan_namespaces,
    plan_neuron_plugin,
    plan_neuron_scheduler,
    plan_priority_classes,
    plan_volcano,
)
from ultrascale.plan.pool import plan_pool
from ultrascale.plan.storage import plan_lustre
from ultrascale.plan.support import unsupported

# A quarter: long enough to look back after an incident, audit logs of a large fleet are not cheap.
_LOG_RETENTION_DAYS = 90


def load(path: Path) -> ClusterPlan:
    """Read the cluster file at ``path`` and plan it.

    Raises:
        ConfigError: The file is wrong, asks for what is not built yet, or for more than its
            network holds. One line for each mistake, ``file: key.path: …``.
    """
    cluster = config.load(path)
    try:
        return plan_cluster(cluster)
    except ConfigError as error:
        raise ConfigError(f"{path}: {mistake}" for mistake in error.mistakes) from None


def plan_cluster(cluster: config.Cluster) -> ClusterPlan:
    """Plan ``cluster``.

    Raises:
        ConfigError: It asks for what is not built yet, for a value that the catalog does not
            know, or for more than its network holds. One line for each mistake, ``key.path: …``.
    """
    mistakes = [f"{key}: {text}" for key, text in unsupported(cluster)]
    if mistakes:
        raise ConfigError(mistakes)
    planner = _Planner(cluster)
    plan = planner.plan()
    if planner.mistakes or plan is None:
        raise ConfigError(planner.mistakes)
    return plan


class _Planner:
    """Plans part by part and keeps every mistake, so that one run names them all."""

    def __init__(self, cluster: config.Cluster) -> None:
        self._cluster = cluster
        self.mistakes: list[str] = []

    def plan(self) -> ClusterPlan | None:
        cluster = self._cluster
        pools = [*self._pools()]
        network = self._network(pools)
        control_plane = self._control_plane(pools)
        try:
            efa = plan_efa_plugin(cluster, pools)
        except CatalogError as error:
            self.mistakes.append(f"region: {error}")
            return None
        if network is None or control_plane is None or self.mistakes:
            return None
        return ClusterPlan(
            name=cluster.name,
            region=cluster.region,
            partition=regions.lookup_region(cluster.region).partition,
            account=cluster.account,
            network=network,
            control_plane=control_plane,
            system_pools=tuple(pool for pool in pools if pool.role == "system"),
            pools=tuple(pool for pool in pools if pool.role != "system"),
            lustre=tuple(plan_lustre(lustre) for lustre in cluster.storage.lustre),
            repositories=cluster.images.repositories,
            namespaces=plan_namespaces(cluster),
            priority_classes=plan_priority_classes(cluster),
            neuron=plan_neuron_plugin(pools),
            neuron_scheduler=plan_neuron_scheduler(cluster),
            efa=efa,
            volcano=plan_volcano(cluster, pools),
            etcd=plan_etcd(cluster),
        )

    def _pools(self) -> Iterator[PoolPlan]:
        for index, pool in enumerate(self._cluster.pools):
            try:
                yield plan_pool(pool, kubernetes_version=self._cluster.kubernetes.version)
            except CatalogError as error:
                self.mistakes.append(f"pools.{index}.instance_types: {error}")

    def _network(self, pools: Sequence[PoolPlan]) -> NetworkPlan | None:
        try:
            network = plan_network(self._cluster)
        except ConfigError as error:
            self.mistakes.extend(error.mistakes)
            return None
        self.mistakes.extend(f"{key}: {text}" for key, text in address_mistakes(network, pools))
        return network

    def _control_plane(self, pools: Sequence[PoolPlan]) -> ControlPlanePlan | None:
        kubernetes = self._cluster.kubernetes
        mistakes = [f"{key}: {text}" for key, text in addon_mistakes(self._cluster)]
        if mistakes:
            self.mistakes.extend(mistakes)
            return None
        return ControlPlanePlan(
            version=kubernetes.version,
            tier=eks.CONTROL_PLANE_TIERS[kubernetes.control_plane_tier],
            service_cidr=kubernetes.service_cidr,
            event_ttl=kubernetes.event_ttl,
            public_cidrs=tuple(str(cidr) for cidr in kubernetes.endpoint.public_cidrs),
            log_types=eks.CONTROL_PLANE_LOG_TYPES,
            log_retention_days=_LOG_RETENTION_DAYS,
            admins=kubernetes.admins,
            node_addons=node_addons(self._cluster),
            workload_addons=workload_addons(self._cluster, pools),
        )
