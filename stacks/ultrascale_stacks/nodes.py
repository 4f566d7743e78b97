"""Node groups, Karpenter, and the NodePools and node classes of Karpenter and EKS Auto Mode."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from constructs import Construct

from ultrascale.documents import text
from ultrascale.plan import names
from ultrascale.plan.model import PoolPlan
from ultrascale.plan.stacks import StackName
from ultrascale_constructs.block_calendar import NodePoolCalendar
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.guarded_node_group import define_node_group
from ultrascale_constructs.karpenter import Karpenter, controller_values
from ultrascale_constructs.node_group_controllers import ClusterAutoscaler, TerminationHandler
from ultrascale_constructs.node_group_functions import NodeGroupFunctions
from ultrascale_constructs.nodes import NodePoolNetwork
from ultrascale_constructs.platform import Manifest, ManifestApplier
from ultrascale_constructs.static_node_pool import apply_static_node_pool
from ultrascale_k8s import PlatformChart
from ultrascale_stacks.cluster import ClusterStacks, LayerStack
from ultrascale_stacks.platform import fill, show

# --- Node groups and their functions: a stack each, so that missing capacity rolls back one stack


class ScalingStack(LayerStack):
    """Stack of the scaling controllers' roles and queue, and of the node groups' function.

    Attributes:
        service_token: ARN of the function that the custom resources of node groups call.
    """

    def __init__(self, cluster: ClusterStacks, name: StackName) -> None:
        super().__init__(cluster, name)
        plan = cluster.plan
        self.service_token = NodeGroupFunctions(
            self,
            "NodeGroupFunctions",
            cluster_name=plan.name,
            log_retention_days=plan.control_plane.log_retention_days,
        ).service_token
        # Exported whether used or not: see `NetworkStack`.
        self.export_value(self.service_token)
        if plan.nodes.autoscaler is not None:
            ClusterAutoscaler(
                self, "ClusterAutoscaler", plan=plan.nodes.autoscaler, cluster_name=plan.name
            )
        if plan.nodes.termination_handler is not None:
            handler = TerminationHandler(
                self,
                "TerminationHandler",
                plan=plan.nodes.termination_handler,
                cluster_name=plan.name,
            )
            placeholder = plan.nodes.termination_handler.queue_url
            self.placeholders = {placeholder: handler.queue_url}
            show(self, "TerminationQueueUrl", placeholder, handler.queue_url)


class NodeGroupStack(LayerStack):
    """Stack of a pool's node group, and of the calendar of its Capacity Block."""

    def __init__(self, cluster: ClusterStacks, name: StackName) -> None:
        super().__init__(cluster, name)
        plan = cluster.plan
        (group,) = (
            group for group in plan.nodes.groups if names.stack(plan.name, group.pool.name) == name
        )
        define_node_group(
            self,
            plan=group,
            cluster=cluster.context,
            subnet_ids=cluster.network.ids_of(group.subnets),
            service_token=cluster.get(ScalingStack).service_token,
            log_retention_days=plan.control_plane.log_retention_days,
        )


# --- Karpenter, and NodePools and node classes of Karpenter and EKS Auto Mode ---------------------


_NODE_POOL = "NodePool"
# Kinds whose objects are deleted one by one once their pool no longer has them.
_BY_THEMSELVES = (_NODE_POOL, "NodeOverlay")


class NodePoolsStack(LayerStack):
    """Stack that defines the resource groups that node classes name, then applies the charts.

    The charts are applied in their order: a calendar's permissions must exist before its NodePool.
    """

    def __init__(
        self,
        cluster: ClusterStacks,
        name: StackName,
        *,
        pools: Sequence[PoolPlan],
        charts: Sequence[PlatformChart],
    ) -> None:
        """Define the stack.

        Args:
            cluster: The cluster's stacks that are defined before this one.
            name: Name of the stack.
            pools: The pools of the cluster whose NodePools the charts have.
            charts: The charts, in the order of their application.
        """
        super().__init__(cluster, name)
        manifests = ManifestApplier(self, "Manifests", cluster=cluster.context)
        placeholders = self._placeholders(pools, cluster.context, manifests)
        node_pools = _NodePools(self, manifests, cluster)
        for chart in charts:
            objects = [fill(manifest, placeholders) for manifest in chart.manifests]
            if others := [body for body in objects if body["kind"] not in _BY_THEMSELVES]:
                manifests.apply(chart.name, others, retain=chart.retained)
            for body in objects:
                if body["kind"] in _BY_THEMSELVES:
                    node_pools.apply(body)

    def _placeholders(
        self,
        pools: Sequence[PoolPlan],
        cluster: ClusterContext,
        manifests: ManifestApplier,
    ) -> Mapping[str, str]:
        """Define the resource groups of each pool, before the node classes that name them."""
        placeholders: dict[str, str] = {}
        launched = (pool for pool in pools if pool.is_node_pool)
        for name, shards in groupby(launched, key=lambda pool: pool.pool):
            pool = NodePoolNetwork(self, name, cluster=cluster, shards=[*shards])
            manifests.after(pool)
            placeholders |= pool.placement_groups
        return placeholders


class _NodePools:
    """Chart whose objects are applied one by one, so that an object that leaves it is deleted.

    A stale NodePool would launch nodes forever, and a stale overlay would describe resources that
    nodes no longer have. `kubectl apply` does not delete objects that left a manifest, and its
    pruning skips custom resources (aws/aws-cdk#10495).
    """

    def __init__(
        self, stack: LayerStack, manifests: ManifestApplier, cluster: ClusterStacks
    ) -> None:
        self._plans = {plan.name: plan for plan in cluster.plan.nodes.node_pools}
        self._manifests = manifests
        self._cluster = cluster.context
        self._log_retention_days = cluster.plan.control_plane.log_retention_days
        self._calendars = Construct(stack, "Calendars")

    def apply(self, manifest: Manifest) -> None:
        name = text(manifest, "metadata", "name")
        # The name of a chart has no colon.
        id = f"{manifest['kind']}:{name}"
        if manifest["kind"] != _NODE_POOL:
            self._manifests.apply(id, [manifest], retain=False)
            return
        plan = self._plans[name]
        if plan.replicas is None:
            self._manifests.apply(id, [manifest], retain=False)
            return
        apply_static_node_pool(
            self._manifests, id, manifest, sized_by_calendar=plan.calendar is not None
        )
        if plan.calendar is not None:
            calendar = NodePoolCalendar(
                self._calendars,
                plan.name,
                plan=plan,
                cluster=self._cluster,
                log_retention_days=self._log_retention_days,
            )
            self._manifests.before(calendar)


# --- Karpenter: its AWS permissions, and its controller in the cluster ----------------------------


class KarpenterStack(LayerStack):
    """Stack of Karpenter's roles, queue and two charts.

    Delete the NodePools and their nodes before this stack: nothing else would terminate the
    instances.
    """

    def __init__(self, cluster: ClusterStacks, name: StackName) -> None:
        super().__init__(cluster, name)
        karpenter = cluster.plan.nodes.karpenter
        assert karpenter is not None, "a cluster without Karpenter has no such stack"
        rights = Karpenter(self, "Karpenter", plan=karpenter, cluster_name=cluster.plan.name)
        charts = ManifestApplier(self, "Charts", cluster=cluster.context)
        # A pod older than the association of its role has no credentials until it is restarted.
        charts.node.add_dependency(rights.identity)
        charts.install_chart(
            "Crds",
            repository=karpenter.crd_chart,
            version=karpenter.version,
            namespace=names.SYSTEM_NAMESPACE,
            values={},
            # Without the CRDs the cluster loses its NodePools, and their nodes lose their owner.
            retain=True,
        )
        charts.install_chart(
            "Controller",
            repository=karpenter.chart,
            version=karpenter.version,
            namespace=names.SYSTEM_NAMESPACE,
            values=controller_values(karpenter, cluster_name=cluster.plan.name),
            retain=False,
        )
