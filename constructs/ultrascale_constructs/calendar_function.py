"""The Lambda function of a block calendar."""

import json
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256

from aws_cdk import CustomResource, Duration, Stack, Token
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from ultrascale.plan.model import NodePoolPlan, PoolPlan, ReservationPlan, WindowPlan
from ultrascale_constructs.acknowledgment import acknowledge_wildcards
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.lambda_function import define_function, function_role
from ultrascale_constructs.log_group import define_log_group
from ultrascale_constructs.scheduled_function import minute_window, scheduler_role

# A block has at most 64 nodes: to cordon them and to warn their pods takes some hundred requests.
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
_OF_NODE_POOLS = ("name", "max_nodes", "calendar", "reservation", "node_class", "requirements")


class CalendarFunction(Construct):
    """Defines the function, which a schedule calls every minute, and each deployment too.

    The next minute repeats a failed call. An alarm reports a function that keeps failing: a
    permission or an API is missing, the reservation is lost or has another window than the file,
    or paid nodes are unused.

    It has no reserved concurrency: accounts start with as little as ten executions, of which none
    can be reserved, and two runs at the same time do no harm.

    Attributes:
        function: The function.
        role: Its role.
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
        self.role = self._role(group, cluster)
        self.function = define_function(
            self,
            "Resource",
            description=description,
            handler="lambdas.block_calendar.handler.on_event",
            role=self.role,
            group=group,
            timeout=Duration.minutes(_MINUTES),
            # CloudFormation has the error, and the next minute is the retry of a schedule.
            retry_attempts=0,
            cluster=cluster,
        )

    def call(
        self, entry: Mapping[str, object], *, plan: PoolPlan | NodePoolPlan, by_hand: str
    ) -> CustomResource:
        """Call the function with ``entry`` each minute, and at deployments that change ``plan``.

        A deployment inside a window must not wait for a schedule that has passed. The call comes
        last, so that a window that starts during the deployment is not missed.

        Args:
            entry: The event.
            plan: The pool.
            by_hand: Command that sets the size without the function.

        Returns:
            The custom resource that calls it; it must depend on everything that the function needs.
        """
        self._alarm(plan.name, by_hand)
        at_deploy = CustomResource(
            self,
            "AtDeploy",
            resource_type="Custom::BlockCalendar",
            service_token=self.function.function_arn,
            service_timeout=Duration.minutes(5),
            properties={**entry, "Plan": _fingerprint(self, plan)},
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
                # The next minute is the retry.
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


def _fingerprint(scope: Construct, plan: PoolPlan | NodePoolPlan) -> str:
    """Return a hash of the pool's fields that the calendar and a new group depend on.

    With all fields of a pool, each new field of the plan would change the templates of all
    clusters.
    """
    fields = _OF_GROUPS if isinstance(plan, PoolPlan) else _OF_NODE_POOLS
    if isinstance(plan, PoolPlan) and plan.volume_key is not None:
        fields = (*fields, "volume_key")
    text = repr([(name, getattr(plan, name)) for name in fields])
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
