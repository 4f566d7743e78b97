"""Node group of a pool, with its guard and the calendar of its Capacity Block."""

from collections.abc import Mapping, Sequence

from constructs import Construct

from ultrascale.plan.model import NodeGroupPlan, PoolPlan
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.node_group import NodeGroup, SelfManagedGroup
from ultrascale_constructs.node_group_functions import guard


def define_node_group(
    scope: Construct,
    *,
    plan: NodeGroupPlan,
    cluster: ClusterContext,
    subnet_ids: Sequence[str],
    service_token: str,
    log_retention_days: int,
) -> NodeGroup | SelfManagedGroup:
    """Define the node group of a pool, its guard and its calendar, and return the group.

    Args:
        scope: Parent of one pool's constructs, which stays when one group replaces another.
        plan: The node group.
        cluster: The cluster.
        subnet_ids: Subnets of the nodes; a single one for a Capacity Block.
        service_token: ARN of the function of `NodeGroupFunctions`.
        log_retention_days: How long the log of a calendar is kept, in days.
    """
    pool = plan.pool
    group: NodeGroup | SelfManagedGroup
    rolled_for: Mapping[str, object] = {}
    if pool.is_managed:
        group = NodeGroup(
            scope,
            _group_id(pool),
            plan=plan,
            cluster=cluster,
            subnet_ids=subnet_ids,
            service_token=service_token,
        )
        rolled_for = group.rolled_for
    else:
        group = SelfManagedGroup(
            scope,
            # Not the id of a managed group: CloudFormation refuses to change a resource's type.
            "SelfManagedGroup",
            plan=plan,
            cluster=cluster,
            subnet_ids=subnet_ids,
            service_token=service_token,
        )
    before = guard(
        scope,
        plan=plan,
        cluster_name=cluster.name,
        service_token=service_token,
        rolled_for=rolled_for,
    )
    for part in group.guarded:
        part.node.add_dependency(before)
    if pool.window is not None:
        _add_calendar(scope, pool, group, cluster.name, log_retention_days)
    return group


def _add_calendar(
    scope: Construct,
    pool: PoolPlan,
    group: NodeGroup | SelfManagedGroup,
    cluster_name: str,
    log_retention_days: int,
) -> None:
    # Only pools with Capacity Blocks need the CDK's scheduler and alarms.
    from ultrascale_constructs.block_calendar import NodeGroupCalendar

    NodeGroupCalendar(
        scope,
        "Calendar",
        plan=pool,
        cluster_name=cluster_name,
        group_name=group.group_name,
        group_arn=group.group_arn,
        log_retention_days=log_retention_days,
    )


def _group_id(pool: PoolPlan) -> str:
    """Return the construct id of a managed group; it changes if the group must be replaced.

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
