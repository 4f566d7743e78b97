"""Every stack of a cluster, and the order they are deployed in."""

from aws_cdk import App, Stack

from ultrascale.plan import ClusterPlan
from ultrascale.plan.names import stack as name
from ultrascale.plan.names import stack_description
from ultrascale_k8s import Charts
from ultrascale_stacks._alarm_actions import tell_of_alarms
from ultrascale_stacks._boundary import bound_roles
from ultrascale_stacks._layers import Layers, deploy_after
from ultrascale_stacks.access import AccessStack


def define_stacks(app: App, plan: ClusterPlan, charts: Charts) -> None:
    """Define every stack of ``plan``.

    Nodes wait for the add-ons that connect them, the other add-ons for the system nodes, and the
    accelerated pools for everything else: their nodes are paid for from the first minute.
    """
    layers = Layers(app, plan)
    access = AccessStack(app, name(plan.name, "access"), plan=plan)
    connectivity = [
        *layers.addons("node-addons", plan.control_plane.node_addons),
        *layers.auto_mode(),
    ]
    scaling = layers.scaling()
    system = layers.node_groups(plan.system_pools)
    if charts.system_node_pools:
        layer = "system-node-pools"
        system.append(layers.node_pools(layer, plan.system_pools, charts.system_node_pools))
    addons = layers.addons("addons", plan.control_plane.workload_addons)
    storage = layers.storage()
    layers.registry()
    backend = layers.backend()
    cache = layers.image_cache(charts)
    earlier = [*scaling, *storage, *backend, *cache]
    platform = layers.platform(charts.platform, earlier)
    karpenter = layers.karpenter()
    node_pools: list[Stack] = []
    if plan.karpenter is not None or plan.control_plane.auto_mode:
        # With pools or without: a stack that went with the last of them would leave them running.
        node_pools.append(layers.node_pools("node-pools", plan.pools, charts.node_pools))
    observability = layers.observability(storage)
    # Last: the CDK deploys nothing after a stack that failed. HyperPod's nodes come in their own
    # time, every group may lack capacity, and what comes after fails as long as there is no node.
    hyperpod_chart = layers.hyperpod_chart()
    hyperpod = layers.hyperpod(storage)
    groups = layers.node_groups(plan.pools)
    governance = layers.governance(hyperpod, charts.teams, [*storage, *cache])
    hyperpod_observability = layers.hyperpod_observability()

    deploy_after([access, *connectivity, *scaling], [layers.cluster])
    deploy_after(system, [*connectivity, *scaling])
    deploy_after(addons, [*connectivity, *system])
    if any(bucket.access != "none" for bucket in plan.buckets):
        # The driver's pods have credentials only where its account had a role before them.
        deploy_after(addons, storage)
    deploy_after([platform], [layers.cluster, *system, *addons, *earlier])
    deploy_after(karpenter, [platform])
    deploy_after(node_pools, [platform, *karpenter])
    deploy_after(groups, [platform])
    deploy_after(hyperpod_chart, [platform])
    deploy_after(hyperpod, hyperpod_chart)
    deploy_after([*governance, *hyperpod_observability], hyperpod)
    deploy_after(observability, [platform])
    if plan.observability is not None:
        tell_of_alarms(app, plan.observability.alerts)
    for child in app.node.children:
        if isinstance(child, Stack):
            child.template_options.description = stack_description(plan.name)
            bound_roles(child, plan.permissions_boundary)
