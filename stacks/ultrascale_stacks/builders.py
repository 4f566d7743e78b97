"""The builder of the stacks of each layer, and the order of their deployment."""

from collections.abc import Mapping
from importlib import import_module

from aws_cdk import App, Stack
from aws_cdk import aws_iam as iam

from ultrascale.core.table import all_parts
from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.stacks import LayerId, all_layers, layers_before, planned_layers
from ultrascale_constructs.alarm import send_alarms
from ultrascale_constructs.log_group import encrypt_logs
from ultrascale_k8s import Charts
from ultrascale_stacks.cluster import (
    AccessStack,
    AddonsStack,
    AutoModeStack,
    Builder,
    ClusterStack,
    ClusterStacks,
    NetworkStack,
)
from ultrascale_stacks.images import ImageCacheStack, ImagesStack, RegistryStack
from ultrascale_stacks.nodes import KarpenterStack, NodeGroupStack, NodePoolsStack, ScalingStack
from ultrascale_stacks.platform import PlatformStack
from ultrascale_stacks.storage import StorageStack

# Stacks that most clusters lack import constructs where they define them: the CDK's module of a
# service takes up to 30 ms to load. Builders of parts stand in the module of the part, as `STACKS`.
_BUILDERS: Mapping[LayerId, Builder] = {
    "network": NetworkStack,
    "cluster": ClusterStack,
    "access": AccessStack,
    "node-addons": lambda cluster, name: AddonsStack(
        cluster,
        name,
        addons=cluster.plan.control_plane.node_addons,
        cleaner=cluster.plan.network.interface_cleaner,
    ),
    "nodes": AutoModeStack,
    "scaling": ScalingStack,
    "system-node-groups": NodeGroupStack,
    "system-node-pools": lambda cluster, name: NodePoolsStack(
        cluster, name, pools=cluster.plan.system_pools, charts=cluster.charts.system_node_pools
    ),
    "storage": StorageStack,
    "addons": lambda cluster, name: AddonsStack(
        cluster, name, addons=cluster.plan.control_plane.workload_addons
    ),
    "registry": RegistryStack,
    "images": ImagesStack,
    "image-cache": ImageCacheStack,
    "platform": lambda cluster, name: PlatformStack(
        cluster,
        name,
        charts=cluster.charts.platform,
        placeholders=cluster.placeholders(*all_layers()["platform"].after),
    ),
    "karpenter": KarpenterStack,
    "node-pools": lambda cluster, name: NodePoolsStack(
        cluster, name, pools=cluster.plan.pools, charts=cluster.charts.node_pools
    ),
    "node-groups": NodeGroupStack,
}


def builder(layer: LayerId) -> Builder:
    """Return the builder of the stacks of ``layer``, from the core or a part."""
    for part in all_parts():
        if layer in part.layers:
            stacks: Mapping[LayerId, Builder] = import_module(f"{__package__}.{part.name}").STACKS
            return stacks[layer]
    return _BUILDERS[layer]


def define_stacks(app: App, plan: ClusterPlan, charts: Charts) -> None:
    """Define every stack of ``plan`` by layers; each is deployed after the stacks that it needs."""
    cluster = ClusterStacks(app=app, plan=plan, charts=charts)
    for layer, stack_names in planned_layers(plan).items():
        stacks = [builder(layer)(cluster, name) for name in stack_names]
        cluster.stacks[layer] = stacks
        for stack in stacks:
            for earlier in layers_before(plan, layer):
                for needed in cluster.stacks.get(earlier, ()):
                    stack.add_stack_dependency(needed)
            bound_roles(stack, plan.permissions_boundary)
    if (logs_key := plan.key("logs")) is not None:
        encrypt_logs(app, logs_key)
    if plan.alarm_topic is not None:
        send_alarms(app, plan.alarm_topic.name)


def bound_roles(stack: Stack, policy: str | None) -> None:
    """Give every role of ``stack`` a permissions boundary, even roles of the CDK's functions.

    Args:
        stack: The stack.
        policy: Name of the boundary's IAM policy in the stack's account; None: no role has a
            boundary.
    """
    if policy is not None:
        boundary = iam.ManagedPolicy.from_managed_policy_name(stack, "PermissionsBoundary", policy)
        iam.PermissionsBoundary.of(stack).apply(boundary)
