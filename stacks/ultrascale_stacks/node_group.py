"""Node groups and their functions: a stack each, so that missing capacity rolls back one stack."""

from ultrascale.plan import names
from ultrascale.plan.stacks import StackName
from ultrascale_constructs.cluster_autoscaler import ClusterAutoscaler
from ultrascale_constructs.guarded_node_group import define_node_group
from ultrascale_constructs.node_group_functions import NodeGroupFunctions
from ultrascale_constructs.termination_handler import TerminationHandler
from ultrascale_stacks.cluster import ClusterStacks, LayerStack
from ultrascale_stacks.placeholders import show


class ScalingStack(LayerStack):
    """Stack of the scaling controllers' roles and queue, and of the node groups' function."""

    def __init__(self, cluster: ClusterStacks, name: StackName) -> None:
        super().__init__(cluster, name)
        plan = cluster.plan
        # ARN of the function that the custom resources of node groups call
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
