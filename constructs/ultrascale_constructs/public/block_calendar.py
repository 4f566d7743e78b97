"""Calendars of Capacity Blocks for existing node groups of an app."""

from collections.abc import Sequence
from typing import TypeAlias

from aws_cdk import CfnResource, Token
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_eks as eks_v1
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from ultrascale import config
from ultrascale.documents import mapping
from ultrascale.plan import retention
from ultrascale_constructs.block_calendar import NodeGroupCalendar
from ultrascale_constructs.public.arguments import THIS_POOL, Arguments, defining
from ultrascale_constructs.public.cluster import AnyCluster, context_of
from ultrascale_constructs.public.node_pool import pool_name
from ultrascale_constructs.public.purchase import CapacityBlock

AnyNodeGroup: TypeAlias = (
    eks.Nodegroup
    | eks.CfnNodegroup
    | eks_v1.Nodegroup
    | eks_v1.CfnNodegroup
    | autoscaling.AutoScalingGroup
    | autoscaling.CfnAutoScalingGroup
)
"""A managed node group or an Auto Scaling group of the CDK, made in the same app."""

_MANAGED, _SELF_MANAGED = "AWS::EKS::Nodegroup", "AWS::AutoScaling::AutoScalingGroup"


class CapacityBlockCalendar(Construct):
    """Defines the calendar that launches a Capacity Block's nodes and drains them before its end.

    EventBridge Scheduler sets the size of the node group at the start, and the size of an Auto
    Scaling group to 0 at the usable end, 40 minutes before the block's end (70 for UltraServers);
    EKS does so for managed groups. Each minute a function checks and corrects the size, and checks
    that the reservation is not lost. Two alarms report a failing calendar.

    The node group starts with no nodes and may have all of the block's, and its launch template
    names the block: see `LaunchTemplate`. A `NodePool` with a Capacity Block has its calendar
    already.

    Sources:
        https://docs.aws.amazon.com/eks/latest/userguide/capacity-blocks-mng.html
        https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: AnyCluster,
        node_group: AnyNodeGroup,
        instance_type: str,
        nodes: int,
        capacity_block: CapacityBlock,
        name: str | None = None,
    ) -> None:
        """Define the calendar.

        Args:
            scope: Parent.
            id: Construct id.
            cluster: The cluster of the nodes.
            node_group: The node group.
            instance_type: EC2 instance type of the block.
            nodes: Instances of the block, which are the nodes inside its window.
            capacity_block: The block.
            name: Name of the pool in alarms and logs. Default: the construct's id in lower case.

        Raises:
            ArgumentError: Arguments are wrong; one line for each.
        """
        super().__init__(scope, id)
        arguments = Arguments(self)
        arguments.value("capacity_block", capacity_block, CapacityBlock)
        arguments.stop()
        context = context_of(cluster, arguments)
        purchase, bought = arguments.purchase(capacity_block=capacity_block)
        arguments.count("nodes", nodes)
        arguments.stop()
        resource = _resource(arguments, node_group)
        if resource is not None:
            _judge_size(arguments, resource, nodes)
        managed = resource is None or resource.cfn_resource_type == _MANAGED
        zone = "${Zone}"
        reading = arguments.judge(
            config.Stated(
                kind=config.Pool,
                at=THIS_POOL,
                keys={
                    "name": pool_name(id) if name is None else name,
                    "role": arguments.role(purchase),
                    "instance_types": [instance_type],
                    "provisioner": "managed-node-group" if managed else "self-managed",
                    "purchase": purchase,
                    "nodes": {"max": nodes},
                    "zones": [zone],
                },
                names={
                    ("instance_types", 0): "instance_type",
                    ("instance_types",): "instance_type",
                    ("nodes", "max"): "nodes",
                    ("purchase",): bought,
                },
            ),
            zones=[zone],
            instance_types=[instance_type],
        )
        assert context is not None, "a cluster that lacks something is refused"
        assert resource is not None, "what is no node group is refused"
        pool = arguments.pool_plan(reading)
        with defining():
            NodeGroupCalendar(
                self,
                "Calendar",
                plan=pool,
                cluster_name=context.name,
                group_name=_group_name(resource),
                group_arn=resource.get_att("Arn" if managed else "AutoScalingGroupARN").to_string(),
                log_retention_days=retention.LOG_DAYS,
            )


def _group_name(resource: CfnResource) -> str:
    """Return the name of a group; the L2's name begins with the cluster's by a feature flag."""
    if resource.cfn_resource_type == _MANAGED:
        return resource.get_att("NodegroupName").to_string()
    return resource.ref


def _resource(arguments: Arguments, node_group: object) -> CfnResource | None:
    """Return the CloudFormation resource of a node group; None for an imported group."""
    found: object = node_group
    if isinstance(node_group, Construct) and not isinstance(node_group, CfnResource):
        found = node_group.node.default_child
    if not isinstance(found, CfnResource) or found.cfn_resource_type not in _kinds():
        wrong = "not a node group of this app"
        todo = "pass a Nodegroup, CfnNodegroup, AutoScalingGroup or CfnAutoScalingGroup"
        arguments.refuse("node_group", wrong, todo, got=repr(node_group))
        return None
    capacity_type: object = getattr(found, "capacity_type", None)
    if found.cfn_resource_type == _MANAGED and capacity_type != "CAPACITY_BLOCK":
        wrong = "a node group that launches nothing into a Capacity Block"
        todo = "make it with capacity_type CAPACITY_BLOCK"
        arguments.refuse("node_group.capacity_type", wrong, todo, got=repr(capacity_type))
    return found


def _judge_size(arguments: Arguments, group: CfnResource, nodes: int) -> None:
    """Refuse bounds of a group with which the calendar could not set the size, as far as known.

    EKS refuses a size outside of the bounds at the start of the window, which is paid time. Nodes
    outside of the window find no capacity, and EKS fails the node group.
    """
    if group.cfn_resource_type == _MANAGED:
        stated = getattr(group, "scaling_config", None)
        if stated is None:
            wrong = "none, by which EKS launches two nodes at once"
            todo = f"write min_size=0, desired_size=0, max_size={nodes}"
            arguments.refuse("node_group.scaling_config", wrong, todo)
            return
        bounds = mapping(group.stack.resolve(stated))
        place, keys = "node_group.scaling_config", ("minSize", "desiredSize", "maxSize")
        least, desired, most = (_node_count(bounds.get(key)) for key in keys)
        spelled = ("min_size", "desired_size", "max_size")
    else:
        place, spelled = "node_group", ("min_size", "desired_capacity", "max_size")
        least, desired, most = (_node_count(getattr(group, name, None)) for name in spelled)
    for name, value in zip(spelled, (least, desired), strict=False):
        if value:
            wrong = "nodes outside of the block's window, which would find no capacity"
            arguments.refuse(f"{place}.{name}", wrong, "write 0", got=str(value))
    if most is not None and most < nodes:
        wrong, todo = f"fewer than the {nodes} nodes of the block", f"write at least {nodes}"
        arguments.refuse(f"{place}.{spelled[-1]}", wrong, todo, got=str(most))


def _node_count(value: object) -> int | None:
    """Return a number of nodes, which Auto Scaling groups state as text; None for a token."""
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    if isinstance(value, int | float) and not Token.is_unresolved(value):
        return int(value)
    return None


def _kinds() -> Sequence[str]:
    return (_MANAGED, _SELF_MANAGED)
