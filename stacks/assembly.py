"""Every stack of a cluster, and the order they are deployed in."""

from collections.abc import Mapping, Sequence

from aws_cdk import App, Stack

from k8s import PlatformChart
from stacks.access import AccessStack
from stacks.addons import AddonsStack
from stacks.cluster import ClusterStack
from stacks.network import NetworkStack
from stacks.node_group import NodeGroupStack
from stacks.platform import PlatformStack
from stacks.registry import RegistryStack
from stacks.storage import StorageStack
from ultrascale.plan import ClusterPlan
from ultrascale.plan.model import AddonPlan, PoolPlan
from ultrascale.plan.names import stack as name


def define_stacks(app: App, plan: ClusterPlan, charts: Sequence[PlatformChart]) -> None:
    """Define every stack of ``plan``.

    Nodes wait for the add-ons that connect them, the other add-ons for the system nodes, and the
    accelerated pools for everything else: their nodes are paid for from the first minute.
    """
    assembly = _Assembly(app, plan)
    access = AccessStack(app, name(plan.name, "access"), plan=plan)
    connectivity = assembly.addons("node-addons", plan.control_plane.node_addons)
    system = [assembly.node_group(pool) for pool in plan.system_pools]
    addons = assembly.addons("addons", plan.control_plane.workload_addons)
    storage = assembly.storage() if plan.lustre else None
    if plan.repositories:
        RegistryStack(app, name(plan.name, "registry"), plan=plan)
    platform = assembly.platform(charts, storage.placeholders if storage else {})
    pools = [assembly.node_group(pool) for pool in plan.pools]

    _deploy_after([access, connectivity], [assembly.cluster])
    _deploy_after(system, [connectivity])
    _deploy_after([addons], system)
    _deploy_after([platform], [addons, *([storage] if storage else [])])
    _deploy_after(pools, [platform])


class _Assembly:
    """The network and the cluster, and how the stacks that lie in them are defined."""

    def __init__(self, app: App, plan: ClusterPlan) -> None:
        self._app = app
        self._plan = plan
        self._network = NetworkStack(app, name(plan.name, "network"), plan=plan).network
        self.cluster = ClusterStack(
            app, name(plan.name, "cluster"), plan=plan, network=self._network
        )

    def addons(self, layer: str, addons: Sequence[AddonPlan]) -> AddonsStack:
        return AddonsStack(self._app, name(self._plan.name, layer), plan=self._plan, addons=addons)

    def node_group(self, pool: PoolPlan) -> NodeGroupStack:
        return NodeGroupStack(
            self._app,
            name(self._plan.name, pool.name),
            plan=self._plan,
            pool=pool,
            network=self._network,
            cluster_security_group_id=self.cluster.security_group_id,
        )

    def storage(self) -> StorageStack:
        return StorageStack(
            self._app,
            name(self._plan.name, "storage"),
            plan=self._plan,
            network=self._network,
            cluster_security_group_id=self.cluster.security_group_id,
        )

    def platform(
        self, charts: Sequence[PlatformChart], placeholders: Mapping[str, str]
    ) -> PlatformStack:
        return PlatformStack(
            self._app,
            name(self._plan.name, "platform"),
            plan=self._plan,
            network=self._network,
            cluster_security_group_id=self.cluster.security_group_id,
            charts=charts,
            placeholders=placeholders,
        )


def _deploy_after(stacks: Sequence[Stack], earlier: Sequence[Stack]) -> None:
    for stack in stacks:
        for other in earlier:
            stack.add_stack_dependency(other)
