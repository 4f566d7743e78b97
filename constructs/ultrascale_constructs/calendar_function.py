"""The function that keeps the block calendar of one pool."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import cast

from aws_cdk import CustomResource, Duration, RemovalPolicy, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from ultrascale.plan import retention
from ultrascale.plan.model import NodePoolPlan, PoolPlan, ReservationPlan, WindowPlan
from ultrascale_constructs.acknowledgment import acknowledge, acknowledge_managed_policies
from ultrascale_constructs.calendar_schedule import on_time, scheduler_role
from ultrascale_constructs.lambda_code import RUNTIME, lambda_code
from ultrascale_constructs.node_config import ClusterAddress

# A block has 64 nodes at most: to cordon them and to warn their pods takes some hundred requests.
_TIMEOUT = Duration.minutes(2)
# More than the code needs: with the memory comes the processor that loads boto3.
_MEMORY_MIB = 256
_VPC_POLICY = "service-role/AWSLambdaVPCAccessExecutionRole"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterApi:
    """How a function reaches the API server of a cluster.

    Attributes:
        address: The cluster.
        vpc: VPC in which the endpoint answers.
        subnet_ids: Subnets for the function; from there it must reach EC2 and S3 as well.
        security_group_id: Cluster security group.
    """

    address: ClusterAddress
    vpc: ec2.IVpc
    subnet_ids: Sequence[str]
    security_group_id: str


class CalendarFunction(Construct):
    """Defines the function, and what calls it: every minute a schedule, and every deploy.

    The next minute makes up for one that failed. An alarm tells of a function that fails on: its
    rights or an API are gone, the reservation is lost or has another window than the file, or paid
    nodes stand unused.

    There is no reserved concurrency: accounts start with as little as ten executions, of which
    none can be reserved, and two runs at a time do no harm.

    Attributes:
        function: The function.
        role: Its role.
    """

    def __init__(
        self, scope: Construct, id: str, *, description: str, cluster: ClusterApi | None
    ) -> None:
        super().__init__(scope, id)
        group = self._logs()
        self.role = self._role(group, in_vpc=cluster is not None)
        self.function = lambda_.Function(
            self,
            "Resource",
            description=description,
            runtime=RUNTIME,
            code=lambda_code(),
            handler="lambdas.block_calendar.handler.on_event",
            timeout=_TIMEOUT,
            memory_size=_MEMORY_MIB,
            role=cast("iam.IRole", self.role),
            log_group=cast("logs.ILogGroup", group),
            # CloudFormation was told, and the next minute is the retry of a schedule.
            retry_attempts=0,
            environment={
                "CLUSTER_ENDPOINT": cluster.address.endpoint,
                "CLUSTER_CERTIFICATE_AUTHORITY": cluster.address.certificate_authority,
            }
            if cluster
            else None,
            vpc=cluster.vpc if cluster else None,
            vpc_subnets=self._subnets(cluster) if cluster else None,
            security_groups=[
                ec2.SecurityGroup.from_security_group_id(
                    self, "SecurityGroup", cluster.security_group_id
                )
            ]
            if cluster
            else None,
        )

    def call(
        self, entry: Mapping[str, object], *, plan: PoolPlan | NodePoolPlan, by_hand: str
    ) -> CustomResource:
        """Call the function with ``entry`` each minute, and at each deploy that changes ``plan``.

        A deploy inside a window must not wait for a schedule that has passed. It comes last, so
        that a start in the middle of a deploy belongs to the schedule or to the deploy.

        Args:
            entry: What the function is called with.
            plan: The pool.
            by_hand: Command that sets the size in the place of the function.

        Returns:
            What calls it at a deploy; it must depend on everything that the function needs.
        """
        self._alarm(plan.name, by_hand)
        at_deploy = CustomResource(
            self,
            "AtDeploy",
            resource_type="Custom::BlockCalendar",
            service_token=self.function.function_arn,
            service_timeout=Duration.minutes(5),
            properties={**entry, "Plan": sha256(repr(plan).encode()).hexdigest()},
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

    def _alarm(self, pool: str, by_hand: str) -> None:
        cloudwatch.CfnAlarm(
            self,
            "Alarm",
            alarm_description=(
                f"The block calendar of pool {pool} fails: its paid nodes may not start, stand "
                "unused, or not be drained before EC2 takes them. The function's log says why. "
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
            # One failed run is made up for by the next.
            evaluation_periods=5,
            datapoints_to_alarm=3,
            threshold=1,
            comparison_operator="GreaterThanOrEqualToThreshold",
            treat_missing_data="notBreaching",
        )

    def _logs(self) -> logs.LogGroup:
        group = logs.LogGroup(self, "Logs", removal_policy=RemovalPolicy.DESTROY)
        resource = cast(logs.CfnLogGroup, group.node.default_child)
        resource.retention_in_days = retention.LOG_DAYS
        return group

    def _role(self, group: logs.LogGroup, *, in_vpc: bool) -> iam.Role:
        reasons = {_VPC_POLICY: "AWS keeps it in step with what Lambda calls"} if in_vpc else {}
        role = iam.Role(
            self,
            "Role",
            assumed_by=cast("iam.IPrincipal", iam.ServicePrincipal("lambda.amazonaws.com")),
            managed_policies=[
                iam.ManagedPolicy.from_aws_managed_policy_name(name) for name in reasons
            ],
        )
        acknowledge_managed_policies(role, reasons)
        group.grant_write(cast("iam.IGrantable", role))
        role.add_to_policy(
            iam.PolicyStatement(actions=["ec2:DescribeCapacityReservations"], resources=["*"])
        )
        acknowledge(
            role,
            {
                "AwsSolutions::AwsSolutions-IAM5[Resource::*]": (
                    "what only describes cannot be limited to one resource"
                )
            },
        )
        return role

    def _subnets(self, cluster: ClusterApi) -> ec2.SubnetSelection:
        return ec2.SubnetSelection(
            subnets=[
                ec2.Subnet.from_subnet_id(self, f"Subnet{index}", subnet_id)
                for index, subnet_id in enumerate(cluster.subnet_ids)
            ]
        )


def calendar_entry(
    *,
    pool: str,
    window: WindowPlan,
    size: int,
    reservation: ReservationPlan,
    target: Mapping[str, str],
) -> Mapping[str, object]:
    """Return what the function is called with, at a deploy and by a schedule.

    Args:
        pool: Name of the pool.
        window: When its capacity is there.
        size: Nodes that it has then.
        reservation: What holds the capacity: a Capacity Block, named by id or by tags.
        target: What has the nodes.
    """
    tags = [{"Key": key, "Value": value} for key, value in sorted(reservation.tags.items())]
    return {
        "Pool": pool,
        "Window": {
            "Starts": _text(window.starts),
            "UsableUntil": _text(window.usable_until),
            "ReclaimedFrom": _text(window.reclaimed_from),
            "Ends": _text(window.ends),
        },
        "Size": str(size),
        "Reservation": {"Tags": tags} if reservation.id is None else {"Id": reservation.id},
        "Target": target,
    }


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
