"""The stacks of each layer, and the values that they take from earlier ones."""

from collections.abc import Callable, Mapping
from functools import cached_property
from importlib import import_module
from typing import Protocol, TypeVar, runtime_checkable

from aws_cdk import App, Stack

from ultrascale.core.table import all_parts
from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan, NodeGroupPlan
from ultrascale.plan.stacks import LayerId, StackName, all_layers, layers_before, planned_layers
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.log_group import encrypt_logs
from ultrascale_constructs.network import Network
from ultrascale_constructs.topic import send_alarms
from ultrascale_k8s import Charts
from ultrascale_stacks.access import AccessStack, AutoModeStack
from ultrascale_stacks.addons import AddonsStack
from ultrascale_stacks.cluster import ClusterStack, NetworkStack
from ultrascale_stacks.deployment import bound_roles
from ultrascale_stacks.images import ImageCacheStack, ImagesStack, RegistryStack
from ultrascale_stacks.karpenter import KarpenterStack
from ultrascale_stacks.node_group import NodeGroupStack, ScalingStack
from ultrascale_stacks.node_pools import NodePoolsStack
from ultrascale_stacks.platform import PlatformStack
from ultrascale_stacks.storage import StorageStack

_Kind = TypeVar("_Kind", bound=Stack)


@runtime_checkable
class _Source(Protocol):
    """A stack with values of placeholders in the manifests."""

    @property
    def placeholders(self) -> Mapping[str, str]: ...


class ClusterStacks:
    """The stacks of a cluster, as far as they are defined.

    Attributes:
        app: The app that holds them.
        plan: The cluster.
        charts: Its manifests.
        stacks: Its stacks, by layer.
    """

    def __init__(self, *, app: App, plan: ClusterPlan, charts: Charts) -> None:
        self.app = app
        self.plan = plan
        self.charts = charts
        self.stacks: dict[LayerId, list[Stack]] = {}

    def get(self, kind: type[_Kind]) -> _Kind:
        """Return the one stack of a kind, which must be defined."""
        (stack,) = self._all(kind)
        return stack

    @cached_property
    def network(self) -> Network:
        """The VPC and its subnets."""
        return self.get(ClusterStack).network

    @cached_property
    def context(self) -> ClusterContext:
        """The cluster's context for later stacks."""
        cluster = self.get(ClusterStack)
        return ClusterContext(
            name=self.plan.name,
            endpoint=cluster.endpoint,
            certificate_authority=cluster.certificate_authority,
            service_cidr=str(self.plan.control_plane.service_cidr),
            security_group_id=cluster.security_group_id,
            vpc=self.network.vpc,
            private_subnet_ids=tuple(self.network.subnet_ids("private")),
        )

    def node_group(self, name: StackName) -> NodeGroupPlan:
        """Return the node group whose stack has a name."""
        (group,) = (
            group
            for group in self.plan.nodes.groups
            if names.stack(self.plan.name, group.pool.name) == name
        )
        return group

    def placeholders(self, *layers: LayerId) -> Mapping[str, str]:
        """Return the values of placeholders that the stacks of ``layers`` know, by placeholder."""
        return {
            key: value
            for layer in layers
            for stack in self.stacks.get(layer, ())
            if isinstance(stack, _Source)
            for key, value in stack.placeholders.items()
        }

    def _all(self, kind: type[_Kind]) -> list[_Kind]:
        return [
            stack for stacks in self.stacks.values() for stack in stacks if isinstance(stack, kind)
        ]


def define_stack(layer: LayerId, name: StackName, cluster: ClusterStacks) -> Stack:
    """Define a stack of ``layer``."""
    return builder(layer)(cluster, name)


def builder(layer: LayerId) -> "Builder":
    """Return the builder of the stacks of ``layer``, from the core or a part."""
    for part in all_parts():
        if layer in part.layers:
            stacks: Mapping[LayerId, Builder] = import_module(f"{__package__}.{part.name}").STACKS
            return stacks[layer]
    return _BUILDERS[layer]


def _cluster(cluster: ClusterStacks, name: StackName) -> Stack:
    own = cluster.get(NetworkStack).network if "network" in cluster.stacks else None
    return ClusterStack(cluster.app, name, plan=cluster.plan, network=own)


def _node_addons(cluster: ClusterStacks, name: StackName) -> Stack:
    plan = cluster.plan
    return AddonsStack(
        cluster.app,
        name,
        plan=plan,
        addons=plan.control_plane.node_addons,
        cleaner=plan.network.interface_cleaner,
    )


def _addons(cluster: ClusterStacks, name: StackName) -> Stack:
    plan = cluster.plan
    return AddonsStack(cluster.app, name, plan=plan, addons=plan.control_plane.workload_addons)


def _node_group(cluster: ClusterStacks, name: StackName) -> Stack:
    return NodeGroupStack(
        cluster.app,
        name,
        plan=cluster.plan,
        group=cluster.node_group(name),
        network=cluster.network,
        cluster=cluster.context,
        service_token=cluster.get(ScalingStack).service_token,
    )


def _system_node_pools(cluster: ClusterStacks, name: StackName) -> Stack:
    return NodePoolsStack(
        cluster.app,
        name,
        plan=cluster.plan,
        cluster=cluster.context,
        pools=[pool for pool in cluster.plan.system_pools if pool.is_node_pool],
        charts=cluster.charts.system_node_pools,
    )


def _node_pools(cluster: ClusterStacks, name: StackName) -> Stack:
    return NodePoolsStack(
        cluster.app,
        name,
        plan=cluster.plan,
        cluster=cluster.context,
        pools=[pool for pool in cluster.plan.pools if pool.is_node_pool],
        charts=cluster.charts.node_pools,
    )


def _storage(cluster: ClusterStacks, name: StackName) -> Stack:
    return StorageStack(
        cluster.app, name, plan=cluster.plan, network=cluster.network, cluster=cluster.context
    )


def _images(cluster: ClusterStacks, name: StackName) -> Stack:
    return ImagesStack(cluster.app, name, plan=cluster.plan, key=cluster.get(RegistryStack).key)


def _image_cache(cluster: ClusterStacks, name: StackName) -> Stack:
    images = cluster.charts.published_images
    return ImageCacheStack(cluster.app, name, plan=cluster.plan, images=images)


def _platform(cluster: ClusterStacks, name: StackName) -> Stack:
    return PlatformStack(
        cluster.app,
        name,
        plan=cluster.plan,
        cluster=cluster.context,
        charts=cluster.charts.platform,
        placeholders=cluster.placeholders(*all_layers()["platform"].after),
    )


# Stacks that most clusters lack are imported where they are defined: the CDK's module of a
# service takes up to 30 ms to load.


Builder = Callable[[ClusterStacks, StackName], Stack]

# Those of parts stand in the module of the part, as `STACKS`.
_BUILDERS: Mapping[LayerId, Builder] = {
    "network": lambda cluster, name: NetworkStack(cluster.app, name, plan=cluster.plan),
    "cluster": _cluster,
    "access": lambda cluster, name: AccessStack(cluster.app, name, plan=cluster.plan),
    "node-addons": _node_addons,
    "nodes": lambda cluster, name: AutoModeStack(cluster.app, name, plan=cluster.plan),
    "scaling": lambda cluster, name: ScalingStack(cluster.app, name, plan=cluster.plan),
    "system-node-groups": _node_group,
    "system-node-pools": _system_node_pools,
    "storage": _storage,
    "addons": _addons,
    "registry": lambda cluster, name: RegistryStack(cluster.app, name, plan=cluster.plan),
    "images": _images,
    "image-cache": _image_cache,
    "platform": _platform,
    "karpenter": lambda cluster, name: KarpenterStack(
        cluster.app, name, plan=cluster.plan, cluster=cluster.context
    ),
    "node-pools": _node_pools,
    "node-groups": _node_group,
}


def define_stacks(app: App, plan: ClusterPlan, charts: Charts) -> None:
    """Define every stack of ``plan``, layer by layer, each deployed after the stacks it needs."""
    cluster = ClusterStacks(app=app, plan=plan, charts=charts)
    for layer, stack_names in planned_layers(plan).items():
        stacks = [define_stack(layer, name, cluster) for name in stack_names]
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
