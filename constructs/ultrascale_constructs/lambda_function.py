"""Functions that run in AWS Lambda, with their logs, their roles and their schedules."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

from aws_cdk import Duration, IgnoreMode, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

import ultrascale
from ultrascale.plan.model import FunctionPlan
from ultrascale_constructs.acknowledgment import acknowledge_managed_policies
from ultrascale_constructs.cdk_types import as_log_group, as_role, aws_policy, principal, service
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.log_group import define_log_group

# More memory than the code needs: memory determines the CPU share, which loads boto3.
_MEMORY_MIB = 256
_VPC_POLICY = "service-role/AWSLambdaVPCAccessExecutionRole"


def lambda_code() -> lambda_.Code:
    """Return the asset that all functions share: the package `lambdas`, without compiled files.

    A function's handler is written ``lambdas.<package>.<module>.<function>``.
    """
    return lambda_.Code.from_asset(
        str(Path(ultrascale.__file__).parent),
        exclude=["/*", "!/lambdas", "__pycache__"],
        ignore_mode=IgnoreMode.GIT,
    )


def function_role(
    scope: Construct, group: logs.LogGroup, *, cluster: ClusterContext | None = None
) -> iam.Role:
    """Define a `Role` for a function; it may only write to the log group.

    A function that calls an API server may also read its endpoint and certificate authority from
    EKS, which rotates the authority.

    Args:
        scope: Parent.
        group: Log group of the function.
        cluster: The cluster whose API server it calls, from the private subnets; None: it runs
            outside the VPC.
    """
    reasons = {_VPC_POLICY: "AWS keeps it in step with what Lambda calls"} if cluster else {}
    role = iam.Role(
        scope,
        "Role",
        assumed_by=service("lambda.amazonaws.com"),
        managed_policies=[aws_policy(name) for name in reasons],
    )
    acknowledge_managed_policies(role, reasons)
    group.grant_write(role)
    if cluster is not None:
        arn = Stack.of(scope).format_arn(
            service="eks", resource="cluster", resource_name=cluster.name
        )
        role.add_to_policy(iam.PolicyStatement(actions=["eks:DescribeCluster"], resources=[arn]))
    return role


def define_function(
    scope: Construct,
    id: str,
    *,
    description: str,
    handler: str,
    role: iam.Role,
    group: logs.LogGroup,
    timeout: Duration,
    memory_mib: int = _MEMORY_MIB,
    retry_attempts: int | None = None,
    cluster: ClusterContext | None = None,
) -> lambda_.Function:
    """Define a function.

    Args:
        scope: Parent.
        id: Construct id.
        description: Description of the function.
        handler: Its handler, ``lambdas.<package>.<module>.<function>``.
        role: Its role, of `function_role`.
        group: Its log group.
        timeout: How long it may run.
        memory_mib: Its memory, in MiB.
        retry_attempts: How often Lambda repeats a call that failed; None: its default.
        cluster: The cluster whose API server it calls, from the private subnets; None: it runs
            outside the VPC.
    """
    return lambda_.Function(
        scope,
        id,
        description=description,
        runtime=lambda_.Runtime.PYTHON_3_14,
        code=lambda_code(),
        handler=handler,
        timeout=timeout,
        memory_size=memory_mib,
        role=as_role(role),
        log_group=as_log_group(group),
        retry_attempts=retry_attempts,
        vpc=cluster.vpc if cluster else None,
        vpc_subnets=ec2.SubnetSelection(subnets=cluster.private_subnets(scope))
        if cluster
        else None,
        security_groups=[cluster.security_group(scope)] if cluster else None,
    )


# --- Schedules of EventBridge Scheduler, and Lambda functions that call the API server by them ----


# Longest time over which EventBridge Scheduler retries.
# Source: https://docs.aws.amazon.com/scheduler/latest/APIReference/API_RetryPolicy.html
_SHORTEST_RETRY = timedelta(minutes=1)
_LONGEST_RETRY = timedelta(hours=24)
_MOST_RETRIES = 185


def yearly(moment: datetime) -> str:
    """Return the expression of a schedule that runs at ``moment``, and each year after.

    EventBridge Scheduler refuses to create or change a schedule whose only moment, or whose
    `StartDate`, has passed: every deployment inside or after the window would fail. A pool that is
    still in the file a year later launches into an expired reservation, at no cost.

    Source: https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
    """
    return f"cron({moment.minute} {moment.hour} {moment.day} {moment.month} ? *)"


def scheduler_role(scope: Construct, *statements: iam.PolicyStatement) -> iam.Role:
    """Define the role of a construct's schedules; schedules of other accounts cannot use it."""
    stack = Stack.of(scope)
    group = f"arn:{stack.partition}:scheduler:{stack.region}:{stack.account}:schedule-group/default"
    service = iam.ServicePrincipal(
        "scheduler.amazonaws.com",
        conditions={"StringEquals": {"aws:SourceAccount": stack.account, "aws:SourceArn": group}},
    )
    return iam.Role(
        scope,
        "SchedulerRole",
        assumed_by=principal(service),
        inline_policies={"Call": iam.PolicyDocument(statements=list(statements))},
    )


def minute_window() -> scheduler.CfnSchedule.FlexibleTimeWindowProperty:
    """Return the time window of a schedule that runs within the minute."""
    return scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF")


def retries_within(age: timedelta) -> scheduler.CfnSchedule.RetryPolicyProperty:
    """Return the policy that retries a call for ``age``, within the service's limits."""
    allowed = min(max(age, _SHORTEST_RETRY), _LONGEST_RETRY)
    return scheduler.CfnSchedule.RetryPolicyProperty(
        maximum_event_age_in_seconds=int(allowed.total_seconds()),
        maximum_retry_attempts=_MOST_RETRIES,
    )


class ScheduledFunction(Construct):
    """Defines the function, its access to the cluster, and its schedule.

    The function runs in the VPC, as the API server's endpoint may be private. CloudWatch takes
    metrics from its log events, so it needs no permission to write metrics. Its permissions in the
    cluster come from a chart that another stack applies.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: FunctionPlan,
        cluster: ClusterContext,
        handler: str,
        description: str,
        purpose: str,
        placeholders: Mapping[str, str] | None = None,
    ) -> None:
        """Define the function.

        Args:
            scope: Parent.
            id: Construct id.
            plan: The function.
            cluster: The cluster whose API server it calls.
            handler: Its handler, ``lambdas.<package>.<module>.<function>``.
            description: Description of the function.
            purpose: Description of the schedule.
            placeholders: Values of placeholders in the function's input.
        """
        super().__init__(scope, id)
        group = define_log_group(self, retention_days=plan.log_retention_days)
        role = function_role(self, group, cluster=cluster)
        self.role = role  # Role of the function
        function = define_function(
            self,
            "Resource",
            description=description,
            handler=handler,
            role=role,
            group=group,
            timeout=Duration.seconds(plan.timeout_seconds),
            memory_mib=plan.memory_mib,
            # The next call of the schedule is the retry.
            retry_attempts=0,
            cluster=cluster,
        )
        access = eks.CfnAccessEntry(
            self,
            "Access",
            cluster_name=cluster.name,
            principal_arn=role.role_arn,
            type="STANDARD",
            kubernetes_groups=[plan.group],
        )
        # The entry is too long for environment variables, which hold 4 kB together.
        # The CDK's own JSON drops keys whose value is null.
        sent = json.dumps(plan.input, separators=(",", ":"))
        for placeholder, value in (placeholders or {}).items():
            sent = sent.replace(placeholder, value)
        self._schedule(plan, function, purpose, sent).node.add_dependency(access)

    def _schedule(
        self, plan: FunctionPlan, function: lambda_.Function, purpose: str, sent: str
    ) -> scheduler.CfnSchedule:
        minutes = plan.interval_minutes
        role = scheduler_role(
            self,
            iam.PolicyStatement(
                actions=["lambda:InvokeFunction"], resources=[function.function_arn]
            ),
        )
        return scheduler.CfnSchedule(
            self,
            "Schedule",
            description=purpose,
            flexible_time_window=minute_window(),
            schedule_expression=f"rate({minutes} minute{'s' if minutes > 1 else ''})",
            target=scheduler.CfnSchedule.TargetProperty(
                arn=function.function_arn,
                role_arn=role.role_arn,
                input=sent,
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_event_age_in_seconds=60, maximum_retry_attempts=0
                ),
            ),
        )
