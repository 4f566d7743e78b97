"""The calendar of a static NodePool in its stack and in its cluster."""

import json
from typing import Any

import pytest
from aws_cdk.assertions import Template
from msgspec.structs import replace

from tests.support.applied import applied
from tests.support.block_calendars import (
    CALENDAR,
    FUNCTION,
    OF_EVERY_FUNCTION,
    SCHEDULE,
    block_node_pool,
    pool_calendar,
    read_back,
    rights,
    schedules,
    trusts_of_schedules,
)
from tests.support.construct_stacks import resources, the
from tests.support.kubernetes_schemas import validate_core
from tests.support.pools import CAPACITY_BLOCK
from ultrascale.lambdas.block_calendar.entry import Entry
from ultrascale.plan.model import NodePoolPlan, ReservationPlan
from ultrascale_k8s.block_calendar import block_calendar_objects


@pytest.fixture(scope="module")
def node_pool() -> NodePoolPlan:
    return block_node_pool()


@pytest.fixture(scope="module")
def of_node_pool(node_pool: NodePoolPlan) -> Template:
    return pool_calendar(node_pool)


def test_the_calendar_of_a_node_pool_may_change_nothing_through_aws(of_node_pool: Template) -> None:
    assert rights(of_node_pool) - OF_EVERY_FUNCTION == {
        ("eks:DescribeCluster", "arn:aws:eks:us-west-2:*:cluster/research"),
        ("lambda:InvokeFunction", "Arn"),
    }


def test_a_schedule_calls_the_function_with_what_a_deploy_calls_it_with(
    of_node_pool: Template,
) -> None:
    properties = the(of_node_pool, CALENDAR)
    (schedule,) = schedules(of_node_pool).values()

    entry = json.loads(schedule["Target"]["Input"])
    whole: Any = properties

    assert schedule["ScheduleExpression"] == "rate(1 minute)"
    assert entry == {key: properties[key] for key in entry}
    assert Entry.parse(entry) == Entry.parse(whole)
    assert entry["Target"] == {"Kind": "NodePool", "Cluster": "research", "Name": "train"}


def test_a_reservation_can_be_found_by_tags(node_pool: NodePoolPlan) -> None:
    tags = {"team": "core", "purpose": "pretraining"}
    reservation = ReservationPlan(id=None, tags=tags, resource_group=None, spill=False)

    assert node_pool.calendar is not None
    calendar = replace(node_pool.calendar, reservation=reservation)
    template = pool_calendar(replace(node_pool, calendar=calendar))
    there: Any = the(template, CALENDAR)

    assert Entry.parse(there).reservation.tags == tags
    assert there["Reservation"]["Tags"][0]["Key"] == "purpose"


def test_the_function_of_a_node_pool_reaches_the_private_endpoint(of_node_pool: Template) -> None:
    function = the(of_node_pool, FUNCTION)

    assert function["VpcConfig"] == {
        "SecurityGroupIds": ["sg-0123456789abcdef0"],
        "SubnetIds": ["subnet-a", "subnet-b"],
    }
    # EKS rotates the cluster's authority: each call would fail from then on.
    assert "Environment" not in function
    assert "Y2VydGlmaWNhdGU=" not in str(of_node_pool.to_json())
    # An account with the smallest quota of Lambda can deploy it.
    assert "ReservedConcurrentExecutions" not in function


def test_a_function_that_fails_again_and_again_raises_an_alarm(of_node_pool: Template) -> None:
    (function,) = of_node_pool.find_resources(FUNCTION)

    alarm = the(of_node_pool, "AWS::CloudWatch::Alarm")

    assert (alarm["MetricName"], alarm["DatapointsToAlarm"]) == ("Errors", 3)
    assert alarm["Dimensions"] == [{"Name": "FunctionName", "Value": {"Ref": function}}]
    assert "kubectl scale nodepool train --replicas=SIZE" in alarm["AlarmDescription"]


def test_the_function_is_known_in_the_cluster_by_its_group_before_it_is_called(
    of_node_pool: Template,
) -> None:
    ((access, body),) = of_node_pool.find_resources("AWS::EKS::AccessEntry").items()
    (calendar,) = resources(of_node_pool, CALENDAR)

    assert body["Properties"]["KubernetesGroups"] == ["ultrascale:block-calendar:train"]
    assert body["Properties"]["Type"] == "STANDARD"
    assert "AccessPolicies" not in body["Properties"]
    assert {access, *of_node_pool.find_resources(SCHEDULE)} <= set(calendar["DependsOn"])


def test_the_function_may_scale_its_node_pool_cordon_nodes_and_warn(
    node_pool: NodePoolPlan,
) -> None:
    role, binding = applied(block_calendar_objects(node_pool))
    name = "ultrascale:block-calendar:train"

    assert not [finding for each in (role, binding) for finding in validate_core(each, "1.36")]
    assert role["metadata"]["name"] == binding["roleRef"]["name"] == name
    rights = {
        (*rule["apiGroups"], *rule["resources"]): (rule["verbs"], rule.get("resourceNames"))
        for rule in role["rules"]
    }
    assert rights == {
        ("karpenter.sh", "nodepools"): (["get", "patch"], ["train"]),
        ("karpenter.sh", "nodeclaims"): (["list"], None),
        ("", "nodes"): (["list", "patch"], None),
        ("", "pods"): (["list"], None),
        ("", "events"): (["create"], None),
    }
    group = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": name}
    assert binding["subjects"] == [group]


def test_what_the_stack_sends_is_what_the_function_reads(
    of_node_pool: Template, node_pool: NodePoolPlan
) -> None:
    entry = read_back(of_node_pool)

    assert (entry.pool, entry.size) == ("train", 16)
    assert entry.reservation.id == CAPACITY_BLOCK["reservation"]
    assert node_pool.calendar is not None
    window = node_pool.calendar.window
    for moment in ("starts", "usable_until", "reclaimed_from", "ends"):
        assert getattr(entry.window, moment) == getattr(window, moment)


def test_no_schedule_of_another_account_can_use_the_role(of_node_pool: Template) -> None:
    condition = trusts_of_schedules(of_node_pool)[0]["Condition"]["StringEquals"]
    (schedule,) = schedules(of_node_pool).values()

    assert condition["aws:SourceAccount"] == {"Ref": "AWS::AccountId"}
    assert ":schedule-group/default" in json.dumps(condition["aws:SourceArn"])
    # A later deploy would be refused for a date.
    assert not {"StartDate", "EndDate"} & set(schedule)
