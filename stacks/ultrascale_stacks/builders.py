"""The stacks of each layer, and the values that they take from earlier ones."""

from collections.abc import Mapping
from functools import cached_property
from typing import Protocol, TypeVar, assert_never, runtime_checkable

from aws_cdk import App, Stack

from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan, NodeGroupPlan
from ultrascale.plan.stacks import LayerId, StackName
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.network import Network
from ultrascale_k8s import Charts
from ultrascale_stacks.access import AccessStack
from ultrascale_stacks.addons import AddonsStack
from ultrascale_stacks.auto_mode import AutoModeStack
from ultrascale_stacks.cluster import ClusterStack
from ultrascale_stacks.image_cache import ImageCacheStack
from ultrascale_stacks.images import ImagesStack
from ultrascale_stacks.karpenter import KarpenterStack
from ultrascale_stacks.network import NetworkStack
from ultrascale_stacks.node_group import NodeGroupStack
from ultrascale_stacks.node_pools import NodePoolsStack
from ultrascale_stacks.platform import PlatformStack
from ultrascale_stacks.registry import RegistryStack
from ultrascale_stacks.scaling import ScalingStack
from ultrascale_stacks.storage import StorageStack

_Kind = TypeVar("_Kind", bound=Stack)


@runtime_checkable
class _Source(Protocol):
    """A stack that knows values of placeholders in the manifests."""

    @property
    def placeholders(self) -> Mapping[str, str]: ...


class ClusterStacks:
    """The stacks of a cluster that are defined so far.

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
        """The cluster, as later stacks refer to it."""
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
            for group in self.plan.node_groups
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


def define_stack(layer: LayerId, name: StackName, cluster: ClusterStacks) -> Stack:  # noqa: C901 -- one case a layer
    """Define a stack of ``layer``.

    Stacks that most clusters lack are imported where they are defined: the CDK's module of a
    service takes up to 30 ms to load.
    """
    app, plan, charts = cluster.app, cluster.plan, cluster.charts
    match layer:
        case "network":
            return NetworkStack(app, name, plan=plan)
        case "cluster":
            own = cluster.get(NetworkStack).network if "network" in cluster.stacks else None
            return ClusterStack(app, name, plan=plan, network=own)
        case "access":
            return AccessStack(app, name, plan=plan)
        case "node-addons":
            return AddonsStack(
                app,
                name,
                plan=plan,
                addons=plan.control_plane.node_addons,
                cleaner=plan.interface_cleaner,
            )
        case "nodes":
            return AutoModeStack(app, name, plan=plan)
        case "scaling":
            return ScalingStack(app, name, plan=plan)
        case "system-node-groups" | "node-groups":
            return NodeGroupStack(
                app,
                name,
                plan=plan,
                group=cluster.node_group(name),
                network=cluster.network,
                cluster=cluster.context,
                service_token=cluster.get(ScalingStack).service_token,
            )
        case "system-node-pools":
            return NodePoolsStack(
                app,
                name,
                plan=plan,
                cluster=cluster.context,
                pools=[pool for pool in plan.system_pools if pool.is_node_pool],
                charts=charts.system_node_pools,
            )
        case "storage":
            return StorageStack(
                app, name, plan=plan, network=cluster.network, cluster=cluster.context
            )
        case "addons":
            return AddonsStack(app, name, plan=plan, addons=plan.control_plane.workload_addons)
        case "registry":
            return RegistryStack(app, name, plan=plan)
        case "images":
            return ImagesStack(app, name, plan=plan, key=cluster.get(RegistryStack).key)
        case "image-cache":
            return ImageCacheStack(app, name, plan=plan, images=charts.published_images)
        case "backend":
            from ultrascale_stacks.backend import BackendStack

            return BackendStack(app, name, plan=plan, cluster=cluster.context)
        case "platform":
            return PlatformStack(
                app,
                name,
                plan=plan,
                cluster=cluster.context,
                charts=charts.platform,
                placeholders=cluster.placeholders("scaling", "storage", "backend", "image-cache"),
            )
        case "serving-controllers":
            from ultrascale_stacks.serving import ServingStack

            return ServingStack(app, name, plan=plan, cluster=cluster.context)
        case "scheduling":
            from ultrascale_stacks.scheduling import SchedulingStack

            return SchedulingStack(
                app, name, plan=plan, cluster=cluster.context, charts=charts.scheduling
            )
        case "serving-front":
            from ultrascale_stacks.front import FrontStack

            return FrontStack(
                app,
                name,
                plan=plan,
                network=cluster.network,
                cluster=cluster.context,
                charts=charts.front,
            )
        case "karpenter":
            return KarpenterStack(app, name, plan=plan, cluster=cluster.context)
        case "node-pools":
            return NodePoolsStack(
                app,
                name,
                plan=plan,
                cluster=cluster.context,
                pools=[pool for pool in plan.pools if pool.is_node_pool],
                charts=charts.node_pools,
            )
        case "observability":
            from ultrascale_stacks.observability import ObservabilityStack

            return ObservabilityStack(
                app,
                name,
                plan=plan,
                cluster=cluster.context,
                placeholders=cluster.placeholders("storage"),
            )
        case "hyperpod-chart":
            from ultrascale_stacks.hyperpod_chart import HyperPodChartStack

            return HyperPodChartStack(app, name, plan=plan, cluster=cluster.context)
        case "hyperpod-groups":
            from ultrascale_stacks.hyperpod import HyperPodStack

            return HyperPodStack(
                app,
                name,
                plan=plan,
                network=cluster.network,
                cluster=cluster.context,
                placeholders=cluster.placeholders("storage"),
            )
        case "governance":
            from ultrascale_stacks.governance import GovernanceStack
            from ultrascale_stacks.hyperpod import HyperPodStack

            hyperpod = cluster.get(HyperPodStack)
            return GovernanceStack(
                app, name, plan=plan, hyperpod_cluster_arn=hyperpod.hyperpod_cluster_arn
            )
        case "teams":
            return PlatformStack(
                app,
                name,
                plan=plan,
                cluster=cluster.context,
                charts=charts.teams,
                placeholders=cluster.placeholders("storage", "image-cache"),
            )
        case "training-operator":
            from ultrascale_stacks.training_operator import TrainingOperatorStack

            return TrainingOperatorStack(app, name, plan=plan)
        case "hyperpod-metrics":
            from ultrascale_stacks.hyperpod_observability import HyperPodObservabilityStack

            return HyperPodObservabilityStack(app, name, plan=plan)
        case _:
            assert_never(layer)
