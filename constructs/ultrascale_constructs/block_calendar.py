"""Block calendars: nodes of a Capacity Block exist inside its window only."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from aws_cdk import Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from ultrascale.frozen import Frozen
from ultrascale.plan import names
from ultrascale.plan.model import NodePoolPlan, PoolPlan
from ultrascale_constructs.acknowledgment import acknowledge
from ultrascale_constructs.calendar_function import CalendarFunction, calendar_entry
from ultrascale_constructs.cdk_types import child
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.scheduled_function import (
    minute_window,
    retries_within,
    scheduler_role,
    yearly,
)

_MESSAGES_KEPT = timedelta(days=14)


class _GroupKind(Frozen):
    """A kind of node group, and the requests that read and set its size."""

    name: str  # Its name in the events of the function
    service: str  # Its AWS service
    set_size: str  # Operation that sets its size
    describes: tuple[str, ...]  # Actions that read the size and can be limited to one group
    describes_all: tuple[str, ...]  # Actions that read the size and cannot be limited to a group
    scales_in: bool  # Whether a schedule removes its nodes; EKS removes those of managed groups
    # Input of the operation for a cluster, a group and a size. EventBridge Scheduler takes keys in
    # capitals, whatever the service itself takes.
    request: Callable[[str, str, int], Mapping[str, object]]
    by_hand: Callable[[str, str], str]  # Command that sets the size, for a cluster and a group


_MANAGED = _GroupKind(
    name="ManagedNodeGroup",
    service="eks",
    set_size="UpdateNodegroupConfig",
    describes=("eks:DescribeNodegroup",),
    describes_all=(
        "autoscaling:DescribeAutoScalingGroups",
        # Condition of EKS's own drain at the end, and whether it has begun.
        "autoscaling:DescribeScheduledActions",
        "autoscaling:DescribeScalingActivities",
    ),
    scales_in=False,
    request=lambda cluster, group, size: {
        "ClusterName": cluster,
        "NodegroupName": group,
        "ScalingConfig": {"DesiredSize": size},
    },
    by_hand=lambda cluster, group: (
        f"aws eks update-nodegroup-config --cluster-name {cluster} --nodegroup-name {group} "
        "--scaling-config desiredSize=SIZE"
    ),
)
_SELF_MANAGED = _GroupKind(
    name="AutoScalingGroup",
    service="autoscaling",
    set_size="SetDesiredCapacity",
    describes=(),
    describes_all=("autoscaling:DescribeAutoScalingGroups",),
    scales_in=True,
    request=lambda _, group, size: {"AutoScalingGroupName": group, "DesiredCapacity": size},
    by_hand=lambda _, group: (
        f"aws autoscaling set-desired-capacity --auto-scaling-group-name {group} "
        "--desired-capacity SIZE"
    ),
)


class NodeGroupCalendar(Construct):
    """Defines the calendar of a node group, managed or self-managed.

    EventBridge Scheduler calls EKS or Auto Scaling directly at the start, and for self-managed
    groups at the usable end, whatever the size is then. Each minute the function checks the size
    and the reservation. Nothing has to wait for the reservation: Auto Scaling keeps launching until
    it is active.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: PoolPlan,
        cluster_name: str,
        group_name: str,
        group_arn: str,
        log_retention_days: int,
    ) -> None:
        super().__init__(scope, id)
        assert plan.window is not None
        assert plan.reservation is not None
        window = plan.window
        self._kind = _MANAGED if plan.is_managed else _SELF_MANAGED
        self._cluster_name = cluster_name
        self._group_name = group_name
        self._log_retention_days = log_retention_days
        by_hand = _advice(self._kind.by_hand(cluster_name, group_name), plan.max_nodes)
        self._undelivered = DeadLetters(self, "Undelivered", pool=plan.name, by_hand=by_hand)
        self._role = self._scheduler_role(group_arn)
        schedules = [self._call_at("Start", window.starts, plan.max_nodes, window.usable_until)]
        if self._kind.scales_in:
            schedules.append(self._call_at("End", window.usable_until, 0, window.ends))
        entry = calendar_entry(
            pool=plan.name,
            window=window,
            size=plan.max_nodes,
            reservation=plan.reservation,
            target={"Kind": self._kind.name, "Cluster": cluster_name, "Name": group_name},
        )
        function = self._function(plan.name, group_arn)
        function.call(entry, plan=plan, by_hand=by_hand).node.add_dependency(*schedules)

    def _scheduler_role(self, group_arn: str) -> iam.Role:
        return scheduler_role(
            self,
            iam.PolicyStatement(
                actions=[f"{self._kind.service}:{self._kind.set_size}"], resources=[group_arn]
            ),
            iam.PolicyStatement(actions=["sqs:SendMessage"], resources=[self._undelivered.arn]),
        )

    def _call_at(
        self, id: str, moment: datetime, size: int, until: datetime
    ) -> scheduler.CfnSchedule:
        """Set the group's size at ``moment``; retry a failed call until ``until``."""
        kind = self._kind
        stack = Stack.of(self)
        operation = kind.set_size[0].lower() + kind.set_size[1:]
        return scheduler.CfnSchedule(
            self,
            id,
            description=f"Sets {self._group_name} to {size} nodes",
            flexible_time_window=minute_window(),
            schedule_expression=yearly(moment),
            schedule_expression_timezone="UTC",
            target=scheduler.CfnSchedule.TargetProperty(
                arn=f"arn:{stack.partition}:scheduler:::aws-sdk:{kind.service}:{operation}",
                role_arn=self._role.role_arn,
                input=stack.to_json_string(
                    kind.request(self._cluster_name, self._group_name, size)
                ),
                dead_letter_config=scheduler.CfnSchedule.DeadLetterConfigProperty(
                    arn=self._undelivered.arn
                ),
                retry_policy=retries_within(until - moment),
            ),
        )

    def _function(self, pool: str, group_arn: str) -> CalendarFunction:
        kind = self._kind
        function = CalendarFunction(
            self,
            "Function",
            description=f"Block calendar of pool {pool}",
            cluster=None,
            log_retention_days=self._log_retention_days,
        )
        rights = {
            group_arn: [*kind.describes, f"{kind.service}:{kind.set_size}"],
            "*": [*kind.describes_all],
            # The rollback of a stack may put one block in place of another.
            Stack.of(self).stack_id: ["cloudformation:DescribeStacks"],
        }
        for resource, actions in rights.items():
            function.role.add_to_policy(iam.PolicyStatement(actions=actions, resources=[resource]))
        return function


class NodePoolCalendar(Construct):
    """Defines the calendar of a static NodePool, of Karpenter or EKS Auto Mode.

    A Capacity Block has a window; an On-Demand Capacity Reservation has none. The size is never
    above the reservation's. The function runs each minute: it waits until the reservation is
    active, and the next run repeats a failed run.

    The NodePool and the chart with the permissions of the function must exist before: make this
    construct depend on them.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: NodePoolPlan,
        cluster: ClusterContext,
        log_retention_days: int,
    ) -> None:
        super().__init__(scope, id)
        assert plan.reservation is not None
        function = CalendarFunction(
            self,
            "Function",
            description=f"Block calendar of pool {plan.name}",
            cluster=cluster,
            log_retention_days=log_retention_days,
        )
        entry = calendar_entry(
            pool=plan.name,
            window=plan.calendar,
            size=plan.max_nodes,
            reservation=plan.reservation,
            target={"Kind": "NodePool", "Cluster": cluster.name, "Name": plan.name},
        )
        access = eks.CfnAccessEntry(
            self,
            "Access",
            cluster_name=cluster.name,
            principal_arn=function.role.role_arn,
            type="STANDARD",
            kubernetes_groups=[names.calendar_group(plan.name)],
        )
        by_hand = _advice(f"kubectl scale nodepool {plan.name} --replicas=SIZE", plan.max_nodes)
        function.call(entry, plan=plan, by_hand=by_hand).node.add_dependency(access)


def _advice(command: str, size: int) -> str:
    """Return the advice in the alarms of a failing calendar."""
    return (
        f"Until it is mended, set the size by hand, {size} inside the window and 0 before its "
        f"usable end: {command}"
    )


class DeadLetters(Construct):
    """Defines the queue for failed calls of a schedule, and its alarm.

    Attributes:
        arn: ARN of the queue.
    """

    def __init__(self, scope: Construct, id: str, *, pool: str, by_hand: str) -> None:
        super().__init__(scope, id)
        queue = sqs.Queue(
            self,
            "Resource",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
        )
        child(queue, sqs.CfnQueue).message_retention_period = int(_MESSAGES_KEPT.total_seconds())
        acknowledge(queue, {"AwsSolutions::AwsSolutions-SQS3": "it is a dead-letter queue itself"})
        self.arn = queue.queue_arn
        cloudwatch.CfnAlarm(
            self,
            "Alarm",
            alarm_description=(
                f"A schedule of the block calendar of pool {pool} could not set its size. The "
                f"message in the queue says why; delete it after reading. {by_hand}"
            ),
            namespace="AWS/SQS",
            metric_name="ApproximateNumberOfMessagesVisible",
            dimensions=[
                cloudwatch.CfnAlarm.DimensionProperty(name="QueueName", value=queue.queue_name)
            ],
            statistic="Maximum",
            period=60,
            evaluation_periods=1,
            threshold=1,
            comparison_operator="GreaterThanOrEqualToThreshold",
            treat_missing_data="notBreaching",
        )
