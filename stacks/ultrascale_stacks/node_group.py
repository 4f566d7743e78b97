"""The node group of one pool: its own stack, so that missing capacity rolls back nothing else."""

from aws_cdk import Stack
from constructs import Construct

from ultrascale.plan.model import ClusterPlan, NodeGroupPlan
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.guarded_node_group import define_node_group
from ultrascale_constructs.network import Network
from ultrascale_stacks.deployment import stack_properties


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
            cluster: The same, as its constructs refer to it.
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
