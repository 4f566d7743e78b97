"""The node group of one pool: its own stack, so that missing capacity rolls back nothing else."""

from collections.abc import Mapping

from aws_cdk import Stack
from constructs import Construct

from ultrascale.plan.model import ClusterPlan, NodeGroupPlan, PoolPlan
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.network import Network
from ultrascale_constructs.node_group import NodeGroup
from ultrascale_constructs.node_group_guard import guard
from ultrascale_constructs.self_managed_group import SelfManagedGroup
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
        pool = group.pool
        subnet_ids = network.ids_of(group.subnets)
        resource: NodeGroup | SelfManagedGroup
        rolled_for: Mapping[str, object] = {}
        if pool.is_managed:
            resource = NodeGroup(
                self,
                _group_id(pool),
                plan=group,
                cluster=cluster,
                subnet_ids=subnet_ids,
                service_token=service_token,
            )
            rolled_for = resource.rolled_for
        else:
            resource = SelfManagedGroup(
                self,
                # Not that of a managed group: CloudFormation refuses to change a resource's type.
                "SelfManagedGroup",
                plan=group,
                cluster=cluster,
                subnet_ids=subnet_ids,
                service_token=service_token,
            )
        before = guard(
            self,
            plan=group,
            cluster_name=plan.name,
            service_token=service_token,
            rolled_for=rolled_for,
        )
        for part in resource.guarded:
            part.node.add_dependency(before)
        if pool.window is not None:
            # Of all pools those of Capacity Blocks alone take the CDK's scheduler and alarms.
            from ultrascale_constructs.block_calendar import NodeGroupCalendar

            NodeGroupCalendar(
                self,
                "Calendar",
                plan=pool,
                cluster_name=plan.name,
                group_name=resource.group_name,
                group_arn=resource.group_arn,
                log_retention_days=plan.control_plane.log_retention_days,
            )


def _group_id(pool: PoolPlan) -> str:
    """Return the construct id of a managed group; it changes where the group must be replaced.

    A reservation and EFA interfaces change the launch template and the labels of the nodes, and
    CloudFormation refuses to change both in one deployment. A group with another id is created
    beside the first, which is deleted afterwards.

    Source: https://github.com/aws/containers-roadmap/issues/1258
    """
    id = "NodeGroupOdcr" if pool.purchase == "odcr" else "NodeGroup"
    has_efa = pool.efa_interfaces > 0
    if has_efa == (pool.accelerator is not None):
        return id
    return f"{id}WithEfa" if has_efa else f"{id}WithoutEfa"
