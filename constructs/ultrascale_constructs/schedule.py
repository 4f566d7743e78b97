"""Schedules of EventBridge Scheduler."""

from datetime import datetime, timedelta

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from ultrascale_constructs.cdk_types import principal

# How long EventBridge Scheduler may be told to keep trying.
# Source: https://docs.aws.amazon.com/scheduler/latest/APIReference/API_RetryPolicy.html
_SHORTEST_RETRY = timedelta(minutes=1)
_LONGEST_RETRY = timedelta(hours=24)
_MOST_RETRIES = 185


def yearly(moment: datetime) -> str:
    """Return the expression of a schedule that runs at ``moment``, and each year after.

    EventBridge Scheduler refuses to create or change a schedule whose only moment, or whose
    `StartDate`, has passed: every deploy inside or after the window would fail. A pool that is
    still in the file a year later launches into an expired reservation, which costs nothing.

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


def on_time() -> scheduler.CfnSchedule.FlexibleTimeWindowProperty:
    """Return the time window of a schedule that runs within the minute."""
    return scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF")


def retried_for(age: timedelta) -> scheduler.CfnSchedule.RetryPolicyProperty:
    """Return the policy that retries a call for ``age``, or as near to it as the service allows."""
    allowed = min(max(age, _SHORTEST_RETRY), _LONGEST_RETRY)
    return scheduler.CfnSchedule.RetryPolicyProperty(
        maximum_event_age_in_seconds=int(allowed.total_seconds()),
        maximum_retry_attempts=_MOST_RETRIES,
    )
