"""The block calendar: Capacity Blocks have nodes inside their window and none outside."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from aws_cdk import Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from ultrascale.plan import names
from ultrascale.plan.model import NodePoolPlan, PoolPlan
from ultrascale_constructs.calendar_function import CalendarFunction, ClusterApi, calendar_entry
from ultrascale_constructs.calendar_schedule import DeadLetters, on_time, scheduler_role, yearly

# The longest that EventBridge Scheduler keeps trying, in age and in attempts.
# Source: https://docs.aws.amazon.com/scheduler/latest/APIReference/API_RetryPolicy.html
_LONGEST_RETRY = timedelta(hours=24)
_MOST_RETRIES = 185


@dataclass(frozen=True, slots=True, kw_only=True)
class _GroupKind:
    """How the size of a kind of group is read and set.

    Attributes:
        name: What the function calls it.
        service: AWS service that has it.
        set_size: The operation that sets its size.
        describe: The operation that reads it.
        described_alone: Whether the right to read can be limited to one group.
        scales_in: Whether the calendar takes its nodes away; EKS does it for managed groups.
        request: Input of the operation for a cluster, a group and a size. EventBridge Scheduler
            wants it in capitals, however the service itself spells it.
    """

    name: str
    service: str
    set_size: str
    describe: str
    described_alone: bool
    scales_in: bool
    request: Callable[[str, str, int], Mapping[str, object]]


_KINDS: Mapping[str, _GroupKind] = {
    "managed-node-group": _GroupKind(
        name="ManagedNodeGroup",
        service="eks",
        set_size="UpdateNodegroupConfig",
        describe="DescribeNodegroup",
        described_alone=True,
        scales_in=False,
        request=lambda cluster, group, size: {
            "ClusterName": cluster,
            "NodegroupName": group,
            "ScalingConfig": {"DesiredSize": size},
        },
    ),
    "self-managed": _GroupKind(
        name="AutoScalingGroup",
        service="autoscaling",
        set_size="SetDesiredCapacity",
        describe="DescribeAutoScalingGroups",
        described_alone=False,
        scales_in=True,
        request=lambda _, group, size: {"AutoScalingGroupName": group, "DesiredCapacity": size},
    ),
}


class NodeGroupCalendar(Construct):
    """Defines the calendar of a node group, managed or self-managed.

    EventBridge Scheduler calls EKS or Auto Scaling itself at the two moments, whatever the size is
    then. Nothing has to wait for the reservation: the group tries again until it is active.
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
    ) -> None:
        super().__init__(scope, id)
        assert plan.window is not None
        assert plan.reservation is not None
        window = plan.window
        self._kind = _KINDS[plan.provisioner]
        self._cluster_name = cluster_name
        self._group_name = group_name
        self._undelivered = DeadLetters(self, "Undelivered", pool=plan.name)
        self._role = self._scheduler_role(group_arn)
        self._call_at("Start", window.starts, plan.max_nodes, until=window.usable_until)
        if self._kind.scales_in:
            self._call_at("End", window.usable_until, 0, until=window.ends)
        self._at_deploy(plan, group_arn)

    def _scheduler_role(self, group_arn: str) -> iam.Role:
        return scheduler_role(
            self,
            iam.PolicyStatement(
                actions=[f"{self._kind.service}:{self._kind.set_size}"], resources=[group_arn]
            ),
            iam.PolicyStatement(actions=["sqs:SendMessage"], resources=[self._undelivered.arn]),
        )

    def _call_at(self, id: str, moment: datetime, size: int, *, until: datetime) -> None:
        """Set the group's size at ``moment``; retry while it makes sense, until ``until``."""
        kind = self._kind
        stack = Stack.of(self)
        operation = kind.set_size[0].lower() + kind.set_size[1:]
        scheduler.CfnSchedule(
            self,
            id,
            description=f"Sets {self._group_name} to {size} nodes",
            flexible_time_window=on_time(),
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
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_event_age_in_seconds=int(
                        min(until - moment, _LONGEST_RETRY).total_seconds()
                    ),
                    maximum_retry_attempts=_MOST_RETRIES,
                ),
            ),
        )

    def _at_deploy(self, plan: PoolPlan, group_arn: str) -> None:
        assert plan.window is not None
        assert plan.reservation is not None
        kind = self._kind
        function = CalendarFunction(
            self, "Function", description=f"Block calendar of pool {plan.name}", cluster=None
        )
        for operation, alone in ((kind.describe, kind.described_alone), (kind.set_size, True)):
            function.role.add_to_policy(
                iam.PolicyStatement(
                    actions=[f"{kind.service}:{operation}"],
                    resources=[group_arn if alone else "*"],
                )
            )
        function.call_at_deploy(
            calendar_entry(
                pool=plan.name,
                window=plan.window,
                size=plan.max_nodes,
                reservation=plan.reservation,
                target={
                    "Kind": kind.name,
                    "Cluster": self._cluster_name,
                    "Name": self._group_name,
                },
            ),
            plan,
        )


class NodePoolCalendar(Construct):
    """Defines the calendar of a static NodePool, of Karpenter or EKS Auto Mode.

    A schedule calls the function every minute, so that it waits for the reservation to become
    active and so that the next run makes up for one that failed.

    The NodePool, and the chart that gives the function its rights in the cluster, must be there
    before: make this construct depend on them.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: NodePoolPlan,
        cluster: ClusterApi,
    ) -> None:
        super().__init__(scope, id)
        assert plan.calendar is not None
        assert plan.reservation is not None
        function = CalendarFunction(
            self, "Function", description=f"Block calendar of pool {plan.name}", cluster=cluster
        )
        entry = calendar_entry(
            pool=plan.name,
            window=plan.calendar,
            size=plan.max_nodes,
            reservation=plan.reservation,
            target={"Kind": "NodePool", "Cluster": cluster.address.name, "Name": plan.name},
        )
        access = eks.CfnAccessEntry(
            self,
            "Access",
            cluster_name=cluster.address.name,
            principal_arn=function.role.role_arn,
            type="STANDARD",
            kubernetes_groups=[names.calendar_group(plan.name)],
        )
        function.call_at_deploy(entry, plan).node.add_dependency(access)
        self._call_every_minute(function, entry)
        self._alarm(function, plan.name)

    def _call_every_minute(self, function: CalendarFunction, entry: Mapping[str, object]) -> None:
        arn = function.function.function_arn
        role = scheduler_role(
            self, iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[arn])
        )
        scheduler.CfnSchedule(
            self,
            "EveryMinute",
            description="Calls the block calendar",
            flexible_time_window=on_time(),
            schedule_expression="rate(1 minute)",
            target=scheduler.CfnSchedule.TargetProperty(
                arn=arn,
                role_arn=role.role_arn,
                input=Stack.of(self).to_json_string(entry),
                # The next minute is the retry.
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_event_age_in_seconds=60, maximum_retry_attempts=0
                ),
            ),
        )

    def _alarm(self, function: CalendarFunction, pool: str) -> None:
        cloudwatch.CfnAlarm(
            self,
            "Alarm",
            alarm_description=(
                f"The block calendar of pool {pool} fails: its paid nodes do not start, or are not "
                "drained before EC2 takes them. The function's log says why."
            ),
            namespace="AWS/Lambda",
            metric_name="Errors",
            dimensions=[
                cloudwatch.CfnAlarm.DimensionProperty(
                    name="FunctionName", value=function.function.function_name
                )
            ],
            statistic="Sum",
            period=60,
            # One failed run is made up for by the next.
            evaluation_periods=5,
            datapoints_to_alarm=3,
            threshold=1,
            comparison_operator="GreaterThanOrEqualToThreshold",
            treat_missing_data="notBreaching",
        )
