"""The node group of one pool: its own stack, so that missing capacity rolls back nothing else."""

from collections.abc import Mapping
from itertools import takewhile

from aws_cdk import Stack
from constructs import Construct

from ultrascale.plan import ClusterPlan
from ultrascale.plan.model import PoolPlan
from ultrascale.plan.network.vpc import node_subnet_kind
from ultrascale.plan.pools.node_groups import group_subnets
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
        pool: PoolPlan,
        network: Network,
        cluster: ClusterContext,
        service_token: str,
    ) -> None:
        """Define the stack.

        Args:
            scope: Parent.
            id: Name of the stack.
            plan: The cluster.
            pool: The pool.
            network: VPC of the cluster.
            cluster: The same, as its constructs refer to it.
            service_token: ARN of the function of `NodeGroupFunctions`, which every cluster with
                node groups has.
        """
        super().__init__(scope, id, **stack_properties(plan))
        subnet_ids = _subnet_ids(plan, pool, network)
        autoscaler_tags: Mapping[str, str] = {}
        if plan.cluster_autoscaler is not None:
            autoscaler_tags = plan.cluster_autoscaler.group_tags.get(pool.name, {})
        group: NodeGroup | SelfManagedGroup
        rolled_for: Mapping[str, object] = {}
        if pool.is_managed:
            group = NodeGroup(
                self,
                _group_id(pool),
                plan=pool,
                cluster=cluster,
                subnet_ids=subnet_ids,
                service_token=service_token,
                autoscaler_tags=autoscaler_tags,
            )
            rolled_for = group.rolled_for
        else:
            group = SelfManagedGroup(
                self,
                # Not that of a managed group: CloudFormation refuses to change a resource's type.
                "SelfManagedGroup",
                plan=pool,
                cluster=cluster,
                subnet_ids=subnet_ids,
                service_token=service_token,
                autoscaler_tags=autoscaler_tags,
            )
        before = guard(
            self,
            plan=pool,
            cluster_name=plan.name,
            service_token=service_token,
            rolled_for=rolled_for,
        )
        for resource in group.guarded:
            resource.node.add_dependency(before)
        if pool.window is not None:
            # Of all pools those of Capacity Blocks alone take the CDK's scheduler and alarms.
            from ultrascale_constructs.block_calendar import NodeGroupCalendar

            NodeGroupCalendar(
                self,
                "Calendar",
                plan=pool,
                cluster_name=plan.name,
                group_name=group.group_name,
                group_arn=group.group_arn,
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


def _subnet_ids(plan: ClusterPlan, pool: PoolPlan, network: Network) -> list[str]:
    kind = node_subnet_kind(plan.network, pool)
    ids = network.subnet_ids(kind, zones=pool.zones)
    subnets = [subnet for subnet in plan.network.of_kind(kind) if subnet.zone in pool.zones]
    id_of = dict(zip(subnets, ids, strict=True))
    before = takewhile(lambda each: each.name != pool.name, plan.all_pools)
    earlier = [each for each in before if node_subnet_kind(plan.network, each) == kind]
    return [id_of[each] for each in group_subnets(pool, subnets, earlier=earlier)]
