"""Every stack of a cluster, and the order they are deployed in."""

from collections.abc import Sequence

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
from ultrascale.plan.names import stack as name


def define_stacks(app: App, plan: ClusterPlan, charts: Sequence[PlatformChart]) -> None:
    """Define every stack of ``plan``.

    Nodes wait for the add-ons that connect them, the other add-ons for the system nodes, and the
    accelerated pools for everything else: their nodes are paid for from the first minute.
    """
    network = NetworkStack(app, name(plan.name, "network"), plan=plan).network
    cluster = ClusterStack(app, name(plan.name, "cluster"), plan=plan, network=network)
    group = cluster.security_group_id

    def node_group(pool: str) -> NodeGroupStack:
        (pool_plan,) = (p for p in plan.all_pools if p.name == pool)
        return NodeGroupStack(
            app,
            name(plan.name, pool),
            plan=plan,
            pool=pool_plan,
            network=network,
            cluster_security_group_id=group,
        )

    access = AccessStack(app, name(plan.name, "access"), plan=plan)
    connectivity = AddonsStack(
        app, name(plan.name, "node-addons"), plan=plan, addons=plan.control_plane.node_addons
    )
    system = [node_group(pool.name) for pool in plan.system_pools]
    addons = AddonsStack(
        app, name(plan.name, "addons"), plan=plan, addons=plan.control_plane.workload_addons
    )
    storage = None
    if plan.lustre:
        storage = StorageStack(
            app,
            name(plan.name, "storage"),
            plan=plan,
            network=network,
            cluster_security_group_id=group,
        )
    if plan.repositories:
        RegistryStack(app, name(plan.name, "registry"), plan=plan)
    platform = PlatformStack(
        app,
        name(plan.name, "platform"),
        plan=plan,
        network=network,
        cluster_security_group_id=group,
        charts=charts,
        placeholders=storage.placeholders if storage else {},
    )
    pools = [node_group(pool.name) for pool in plan.pools]

    _deploy_after([access, connectivity], [cluster])
    _deploy_after(system, [connectivity])
    _deploy_after([addons], system)
    _deploy_after([platform], [addons, *([storage] if storage else [])])
    _deploy_after(pools, [platform])


def _deploy_after(stacks: Sequence[Stack], earlier: Sequence[Stack]) -> None:
    for stack in stacks:
        for other in earlier:
            stack.add_stack_dependency(other)
