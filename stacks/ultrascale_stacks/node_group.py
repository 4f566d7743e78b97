"""Node groups and their functions: a stack each, so that missing capacity rolls back only one."""

from collections.abc import Mapping

from aws_cdk import Stack
from constructs import Construct

from ultrascale.plan.model import ClusterPlan, NodeGroupPlan
from ultrascale_constructs.cluster_autoscaler import ClusterAutoscaler
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.guarded_node_group import define_node_group
from ultrascale_constructs.network import Network
from ultrascale_constructs.node_group_functions import NodeGroupFunctions
from ultrascale_constructs.termination_handler import TerminationHandler
from ultrascale_stacks.deployment import stack_properties
from ultrascale_stacks.placeholders import show


class ScalingStack(Stack):
    """Defines the roles and the queue of the controllers, and the function of node groups.

    Attributes:
        service_token: ARN of the function that the custom resources of node groups call.
        placeholders: Values of placeholders in the manifests.
    """

    def __init__(self, scope: Construct, id: str, *, plan: ClusterPlan) -> None:
        super().__init__(scope, id, **stack_properties(plan))
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
        values: dict[str, str] = {}
        if plan.nodes.termination_handler is not None:
            handler = TerminationHandler(
                self,
                "TerminationHandler",
                plan=plan.nodes.termination_handler,
                cluster_name=plan.name,
            )
            placeholder = plan.nodes.termination_handler.queue_url
            values[placeholder] = handler.queue_url
            show(self, "TerminationQueueUrl", placeholder, handler.queue_url)
        self.placeholders: Mapping[str, str] = values


class NodeGroupStack(Stack):
    """Defines the node group of one pool, and the calendar of its Capacity Block."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: ClusterPlan,
        group: NodeGroupPlan,
        network: Network,
        cluster: ClusterContext,
        service_token: str,
    ) -> None:
        """Define the stack.

        Args:
            scope: Parent.
            id: Name of the stack.
            plan: The cluster.
            group: The node group.
            network: VPC of the cluster.
            cluster: The cluster's context for constructs.
            service_token: ARN of the function of `NodeGroupFunctions`, which every cluster with
                node groups has.
        """
        super().__init__(scope, id, **stack_properties(plan))
        define_node_group(
            self,
            plan=group,
            cluster=cluster,
            subnet_ids=network.ids_of(group.subnets),
            service_token=service_token,
            log_retention_days=plan.control_plane.log_retention_days,
        )
