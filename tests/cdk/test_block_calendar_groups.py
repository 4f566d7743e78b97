"""The calendar of a node group in its stack."""

import json
from collections.abc import Mapping
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk.assertions import Template
from msgspec.structs import replace

from tests.support.block_calendars import (
    CALENDAR,
    FUNCTION,
    GROUP_ARN,
    MANAGED_ARN,
    OF_EVERY_FUNCTION,
    SCHEDULE,
    alarm_on,
    block_pool,
    direct_calls,
    group_calendar,
    read_back,
    rights,
    schedules,
    text,
    trusts_of_schedules,
)
from tests.support.construct_stacks import make_stack, resources, the
from tests.support.pools import CAPACITY_BLOCK
from ultrascale.lambdas.block_calendar.entry import Entry
from ultrascale_constructs.block_calendar import NodeGroupCalendar

KINDS = ("managed-node-group", "self-managed")


@pytest.fixture(scope="module")
def groups() -> Mapping[str, Template]:
    """The calendar of a group of each kind."""
    return {provisioner: group_calendar(provisioner) for provisioner in KINDS}


@pytest.fixture(scope="module")
def managed(groups: Mapping[str, Template]) -> Template:
    return groups["managed-node-group"]


@pytest.fixture(scope="module")
def self_managed(groups: Mapping[str, Template]) -> Template:
    return groups["self-managed"]


def test_at_the_start_eks_is_called_to_scale_a_managed_node_group_up_and_scales_in_itself(
    managed: Template,
) -> None:
    ((expression, schedule),) = direct_calls(managed).items()

    assert expression == schedule["ScheduleExpression"] == "cron(30 11 1 12 ? *)"
    assert schedule["ScheduleExpressionTimezone"] == "UTC"
    assert schedule["FlexibleTimeWindow"] == {"Mode": "OFF"}
    assert schedule["Target"]["Arn"] == "arn:aws:scheduler:::aws-sdk:eks:updateNodegroupConfig"
    assert json.loads(schedule["Target"]["Input"]) == {
        "ClusterName": "research",
        "NodegroupName": "train-1",
        "ScalingConfig": {"DesiredSize": 16},
    }


def test_auto_scaling_is_called_at_the_start_and_at_the_usable_end(self_managed: Template) -> None:
    calls = direct_calls(self_managed)

    assert len(calls) == 2
    for expression, size, seconds in (
        ("cron(30 11 1 12 ? *)", 16, 24 * 3600),
        ("cron(50 10 8 12 ? *)", 0, 40 * 60),
    ):
        target = calls[expression]["Target"]
        assert target["Arn"] == "arn:aws:scheduler:::aws-sdk:autoscaling:setDesiredCapacity"
        asked = {"AutoScalingGroupName": "train-1", "DesiredCapacity": size}
        assert json.loads(target["Input"]) == asked
        # A call is repeated while it makes sense.
        assert target["RetryPolicy"]["MaximumEventAgeInSeconds"] == seconds


# A minute is the least that EventBridge Scheduler takes.
@pytest.mark.parametrize(("usable_minutes", "seconds"), [(600, 36_000), (1, 60), (0, 60)])
def test_the_start_of_a_short_block_is_not_repeated_beyond_its_usable_end(
    usable_minutes: int, seconds: int
) -> None:
    plan = block_pool("managed-node-group")
    assert plan.window is not None
    starts = plan.window.usable_until - timedelta(minutes=usable_minutes)
    template = group_calendar(
        "managed-node-group", replace(plan, window=replace(plan.window, starts=starts))
    )

    (schedule,) = direct_calls(template).values()

    assert schedule["Target"]["RetryPolicy"]["MaximumEventAgeInSeconds"] == seconds


@pytest.mark.parametrize("provisioner", KINDS)
def test_a_call_that_never_succeeds_and_a_function_that_fails_on_raise_alarms(
    groups: Mapping[str, Template], provisioner: str
) -> None:
    template = groups[provisioner]
    (queue,) = template.find_resources("AWS::SQS::Queue")
    (function,) = template.find_resources(FUNCTION)
    (calendar,) = resources(template, CALENDAR)
    letters = alarm_on(template, "ApproximateNumberOfMessagesVisible")
    target = schedules(template)["rate(1 minute)"]["Target"]

    for expression, schedule in direct_calls(template).items():
        dead = schedule["Target"]["DeadLetterConfig"]["Arn"]
        assert dead == {"Fn::GetAtt": [queue, "Arn"]}
        assert expression.endswith(" ? *)")
    name = {"Name": "QueueName", "Value": {"Fn::GetAtt": [queue, "QueueName"]}}
    assert (letters["Dimensions"], letters["Threshold"]) == ([name], 1)
    # The function looks each minute.
    assert target["Arn"] == {"Fn::GetAtt": [function, "Arn"]}
    assert Entry.parse(json.loads(target["Input"])) == read_back(template)
    errors = alarm_on(template, "Errors")["Dimensions"]
    assert errors == [{"Name": "FunctionName", "Value": {"Ref": function}}]
    # A deploy calls it once every schedule stands, none of which has a date: a later deploy
    # would be refused for it.
    assert set(template.find_resources(SCHEDULE)) <= set(calendar["DependsOn"])
    for schedule in schedules(template).values():
        assert not {"StartDate", "EndDate"} & set(schedule)


def test_what_fails_in_the_first_minutes_of_an_hour_before_the_start_raises_the_alarm(
    managed: Template,
) -> None:
    entry = read_back(managed)
    alarm = alarm_on(managed, "Errors")
    hour = entry.window.starts.replace(minute=0) - timedelta(days=1)

    minutes = [minute for minute in range(60) if entry.has_work(hour.replace(minute=minute))]

    assert alarm["Period"] == 60
    assert minutes == list(range(alarm["EvaluationPeriods"]))


@pytest.mark.parametrize(
    ("provisioner", "command"),
    [
        (
            "managed-node-group",
            "aws eks update-nodegroup-config --cluster-name research --nodegroup-name train-1 "
            "--scaling-config desiredSize=SIZE",
        ),
        (
            "self-managed",
            "aws autoscaling set-desired-capacity --auto-scaling-group-name train-1 "
            "--desired-capacity SIZE",
        ),
    ],
)
def test_every_alarm_says_how_the_size_is_set_by_hand(
    groups: Mapping[str, Template], provisioner: str, command: str
) -> None:
    for metric in ("Errors", "ApproximateNumberOfMessagesVisible"):
        description = alarm_on(groups[provisioner], metric)["AlarmDescription"]
        assert command in description
        assert "16 inside the window" in description
        assert len(description) < 1024


def test_the_calendar_of_a_managed_node_group_may_touch_that_group_alone(managed: Template) -> None:
    assert rights(managed) - OF_EVERY_FUNCTION == {
        ("autoscaling:DescribeAutoScalingGroups", "*"),
        ("autoscaling:DescribeScalingActivities", "*"),
        ("autoscaling:DescribeScheduledActions", "*"),
        ("cloudformation:DescribeStacks", "AWS::StackId"),
        ("eks:DescribeNodegroup", MANAGED_ARN),
        ("eks:UpdateNodegroupConfig", MANAGED_ARN),
        ("lambda:InvokeFunction", "Arn"),
        ("sqs:SendMessage", "Arn"),
    }


def test_the_calendar_of_a_self_managed_group_may_touch_that_group_alone(
    self_managed: Template,
) -> None:
    assert rights(self_managed) - OF_EVERY_FUNCTION == {
        ("autoscaling:DescribeAutoScalingGroups", "*"),
        ("cloudformation:DescribeStacks", "AWS::StackId"),
        ("autoscaling:SetDesiredCapacity", GROUP_ARN),
        ("lambda:InvokeFunction", "Arn"),
        ("sqs:SendMessage", "Arn"),
    }


def test_the_target_is_the_group_under_the_name_that_cloudformation_gave_it() -> None:
    stack = make_stack()
    group = autoscaling.CfnAutoScalingGroup(stack, "Group", min_size="0", max_size="16")
    NodeGroupCalendar(
        stack,
        "Calendar",
        plan=block_pool("self-managed"),
        cluster_name="research",
        group_name=group.ref,
        group_arn=group.attr_auto_scaling_group_arn,
        log_retention_days=90,
    )
    template = Template.from_stack(stack)

    assert the(template, CALENDAR)["Target"]["Name"] == {"Ref": "Group"}
    inputs = [json.dumps(body["Properties"]) for body in resources(template, SCHEDULE)]
    assert all('{"Ref": "Group"}' in each for each in inputs)
    assert "auto-scaling-group-name * " in text(alarm_on(template, "Errors")["AlarmDescription"])


@pytest.mark.parametrize(
    "change", [{"max_nodes": 8}, {"ami_release": "1.35.0-20261120"}, {}], ids=str
)
def test_a_deploy_calls_the_function_when_it_touches_the_pool(
    managed: Template, change: dict[str, Any]
) -> None:
    plan = replace(block_pool("managed-node-group"), **change)
    changed = the(group_calendar("managed-node-group", plan), CALENDAR)

    assert (changed != the(managed, CALENDAR)) is bool(change)


def test_the_function_of_a_node_group_lies_in_no_vpc_and_its_handler_in_the_asset(
    managed: Template,
) -> None:
    found = the(managed, FUNCTION)
    module, _, function = found["Handler"].rpartition(".")

    assert "VpcConfig" not in found
    assert callable(getattr(import_module(f"ultrascale.{module}"), function))


@pytest.mark.parametrize("provisioner", KINDS)
def test_what_the_stack_sends_is_what_the_function_reads(
    groups: Mapping[str, Template], provisioner: str
) -> None:
    window = block_pool(provisioner).window

    entry = read_back(groups[provisioner])

    assert (entry.pool, entry.size) == ("train", 16)
    assert entry.reservation.id == CAPACITY_BLOCK["reservation"]
    for moment in ("starts", "usable_until", "reclaimed_from", "ends"):
        assert getattr(entry.window, moment) == getattr(window, moment)


@pytest.mark.parametrize("provisioner", KINDS)
def test_no_schedule_of_another_account_can_use_a_role(
    groups: Mapping[str, Template], provisioner: str
) -> None:
    statements = trusts_of_schedules(groups[provisioner])

    assert len(statements) == 2
    for statement in statements:
        condition = statement["Condition"]["StringEquals"]
        assert condition["aws:SourceAccount"] == {"Ref": "AWS::AccountId"}
        assert ":schedule-group/default" in json.dumps(condition["aws:SourceArn"])
