"""Block calendars: nodes of a Capacity Block exist only inside its window."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256

from aws_cdk import CustomResource, Duration, Stack, Token
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from ultrascale.frozen import Frozen
from ultrascale.plan import names
from ultrascale.plan.model import NodePoolPlan, PoolPlan, ReservationPlan, WindowPlan
from ultrascale_constructs.acknowledgment import acknowledge, acknowledge_wildcards
from ultrascale_constructs.cdk_types import child
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.lambda_function import (
    define_function,
    function_role,
    minute_window,
    retries_within,
    scheduler_role,
    yearly,
)
from ultrascale_constructs.log_group import define_log_group

# --- The Lambda function of a block calendar ------------------------------------------------------


# A block has at most 64 nodes: cordoning them and warning their pods takes some hundred requests.
_MINUTES = 2


_OF_GROUPS = (
    "name",
    "max_nodes",
    "window",
    "reservation",
    "provisioner",
    "instance_types",
    "zones",
    "ami_type",
    "ami_release",
    "network_interfaces",
    "max_pods",
    "labels",
    "taints",
    "root_disk",
    "raid0",
    "placement_group",
    "tags",
)


class CalendarFunction(Construct):
    """Defines the calendar's function; a schedule calls it every minute, and each deployment does.

    The next minute repeats a failed call. An alarm reports a function that keeps failing: a
    permission or an API is missing, the reservation is lost or has another window than the file,
    or paid nodes are unused.

    It has no reserved concurrency: accounts start with as little as ten executions, of which none
    can be reserved, and two runs at the same time do no harm.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        description: str,
        cluster: ClusterContext | None,
        log_retention_days: int,
    ) -> None:
        super().__init__(scope, id)
        group = define_log_group(self, retention_days=log_retention_days)
        self.role = self._role(group, cluster)  # Its role
        # The function
        self.function = define_function(
            self,
            "Resource",
            description=description,
            handler="lambdas.block_calendar.handler.on_event",
            role=self.role,
            group=group,
            timeout=Duration.minutes(_MINUTES),
            # CloudFormation gets the error, and a failed call of the schedule is repeated in the
            # next minute.
            retry_attempts=0,
            cluster=cluster,
        )

    def call(
        self, entry: Mapping[str, object], *, pool: str, seed: Sequence[object], by_hand: str
    ) -> CustomResource:
        """Call the function with ``entry`` each minute, and at deployments that change ``seed``.

        A deployment inside a window must not wait for a schedule that has passed. The call comes
        last, so that a window that starts during the deployment is not missed.

        Args:
            entry: The event.
            pool: Name of the pool.
            seed: Names and values of what the calendar and its nodes depend on. With all fields of
                a pool, each new field of the plan would change the templates of all clusters.
            by_hand: Command that sets the size without the function.

        Returns:
            The custom resource that calls it; it must depend on everything that the function needs.
        """
        self._alarm(pool, by_hand)
        at_deploy = CustomResource(
            self,
            "AtDeploy",
            resource_type="Custom::BlockCalendar",
            service_token=self.function.function_arn,
            service_timeout=Duration.minutes(5),
            properties={**entry, "Plan": _fingerprint(self, seed)},
        )
        at_deploy.node.add_dependency(self._every_minute(entry))
        return at_deploy

    def _every_minute(self, entry: Mapping[str, object]) -> scheduler.CfnSchedule:
        arn = self.function.function_arn
        role = scheduler_role(
            self, iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[arn])
        )
        return scheduler.CfnSchedule(
            self,
            "EveryMinute",
            description="Calls the block calendar",
            flexible_time_window=minute_window(),
            schedule_expression="rate(1 minute)",
            target=scheduler.CfnSchedule.TargetProperty(
                arn=arn,
                role_arn=role.role_arn,
                input=Stack.of(self).to_json_string(entry),
                # The call of the next minute is the retry.
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_event_age_in_seconds=60, maximum_retry_attempts=0
                ),
            ),
        )

    def _alarm(self, pool: str, by_hand: str) -> None:
        cloudwatch.CfnAlarm(
            self,
            "Alarm",
            alarm_description=(
                f"The block calendar of pool {pool} fails: its paid nodes may not start, stand "
                "unused, or not be drained before EC2 or EKS takes them. The function's log says "
                "why. "
                f"{by_hand}"
            ),
            namespace="AWS/Lambda",
            metric_name="Errors",
            dimensions=[
                cloudwatch.CfnAlarm.DimensionProperty(
                    name="FunctionName", value=self.function.function_name
                )
            ],
            statistic="Sum",
            period=60,
            # The next run makes up for one failed run.
            evaluation_periods=5,
            datapoints_to_alarm=3,
            threshold=1,
            comparison_operator="GreaterThanOrEqualToThreshold",
            treat_missing_data="notBreaching",
        )

    def _role(self, group: logs.LogGroup, cluster: ClusterContext | None) -> iam.Role:
        role = function_role(self, group, cluster=cluster)
        role.add_to_policy(
            iam.PolicyStatement(actions=["ec2:DescribeCapacityReservations"], resources=["*"])
        )
        acknowledge_wildcards(role, {"*": "what only describes cannot be limited to one resource"})
        return role


def calendar_entry(
    *,
    pool: str,
    window: WindowPlan | None,
    size: int,
    reservation: ReservationPlan,
    target: Mapping[str, str],
) -> Mapping[str, object]:
    """Return the event that a deployment and a schedule send to the function.

    Args:
        pool: Name of the pool.
        window: Window of its capacity; None: at any time.
        size: Number of its nodes within the window.
        reservation: Reservation of the capacity, such as a Capacity Block, by id or by tags.
        target: Node group or NodePool with the nodes.
    """
    tags = [{"Key": key, "Value": value} for key, value in sorted(reservation.tags.items())]
    return {
        "Pool": pool,
        **({} if window is None else {"Window": _window(window)}),
        "Size": str(size),
        "Reservation": {"Tags": tags} if reservation.id is None else {"Id": reservation.id},
        "Target": target,
    }


def _fingerprint(scope: Construct, seed: Sequence[object]) -> str:
    text = repr([*seed])
    if Token.is_unresolved(text):
        # The number of a token changes with other definitions in the app.
        text = json.dumps(Stack.of(scope).resolve(text), sort_keys=True)
    return sha256(text.encode()).hexdigest()


def _window(window: WindowPlan) -> Mapping[str, str]:
    return {
        "Starts": _text(window.starts),
        "UsableUntil": _text(window.usable_until),
        "ReclaimedFrom": _text(window.reclaimed_from),
        "Ends": _text(window.ends),
    }


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


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
    groups again at the usable end, whatever the size then is. Each minute the function checks the
    size and the reservation. Nothing has to wait for the reservation: Auto Scaling keeps launching
    until it is active.
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
        fields = _OF_GROUPS if plan.volume_key is None else (*_OF_GROUPS, "volume_key")
        seed = [(name, getattr(plan, name)) for name in fields]
        called = function.call(entry, pool=plan.name, seed=seed, by_hand=by_hand)
        called.node.add_dependency(*schedules)

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
            # The rollback of a stack may replace a block by the previous block.
            Stack.of(self).stack_id: ["cloudformation:DescribeStacks"],
        }
        for resource, actions in rights.items():
            function.role.add_to_policy(iam.PolicyStatement(actions=actions, resources=[resource]))
        return function


class NodePoolCalendar(Construct):
    """Defines the calendar of a static NodePool, of Karpenter or EKS Auto Mode.

    A Capacity Block has a window; an On-Demand Capacity Reservation has none. The size never
    exceeds the reservation's. The function runs each minute: it waits until the reservation is
    active, and the next run repeats a failed run.

    The NodePool, and the chart with the function's permissions, must exist before this construct:
    make it depend on them.
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
        calendar = plan.calendar
        assert calendar is not None
        function = CalendarFunction(
            self,
            "Function",
            description=f"Block calendar of pool {plan.name}",
            cluster=cluster,
            log_retention_days=log_retention_days,
        )
        entry = calendar_entry(
            pool=plan.name,
            window=calendar.window,
            size=plan.max_nodes,
            reservation=calendar.reservation,
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
        seed = [
            ("name", plan.name),
            ("max_nodes", plan.max_nodes),
            ("calendar", calendar.window),
            ("reservation", calendar.reservation),
            ("node_class", plan.node_class),
            ("requirements", plan.requirements),
        ]
        called = function.call(entry, pool=plan.name, seed=seed, by_hand=by_hand)
        called.node.add_dependency(access)


def _advice(command: str, size: int) -> str:
    """Return the advice that alarms of a failing calendar give."""
    return (
        f"Until it is mended, set the size by hand, {size} inside the window and 0 before its "
        f"usable end: {command}"
    )


class DeadLetters(Construct):
    """Defines the queue for failed calls of a schedule, and the alarm on the queue."""

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
        self.arn = queue.queue_arn  # ARN of the queue
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
