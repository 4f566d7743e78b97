"""Custom resources of node groups: what CloudFormation asks, what AWS says, the answer.

Each case lists the requests to AWS in their order: one that is not foreseen fails it.
"""

import json
import urllib.request
from collections.abc import Sequence
from typing import Any
from unittest.mock import call

from tests.support.cases import rows
from tests.support.node_group_services import CLUSTER, STACK, Aws
from ultrascale.lambdas.node_groups.handler import answer


def request(kind: str, properties: dict[str, Any], **changes: Any) -> Any:
    return {
        "RequestType": "Create",
        "ResourceType": kind,
        "ResponseURL": "https://cloudformation.example/answer",
        "StackId": STACK,
        "RequestId": "request",
        "LogicalResourceId": "It",
        "ResourceProperties": properties,
    } | changes


def update(kind: str, properties: dict[str, Any], before: dict[str, Any]) -> Any:
    return request(
        kind,
        properties,
        RequestType="Update",
        PhysicalResourceId="there",
        OldResourceProperties=before,
    )


def delete(kind: str, properties: dict[str, Any]) -> Any:
    return request(kind, properties, RequestType="Delete", PhysicalResourceId="there")


def answers(aws: Aws, event: Any) -> dict[str, Any]:
    """Return the one answer that CloudFormation gets."""
    sent: list[urllib.request.Request] = []
    answer(event, clients=aws.clients, send=sent.append)
    aws.verify()
    (only,) = sent
    assert only.full_url == event["ResponseURL"]
    assert isinstance(only.data, bytes)
    return json.loads(only.data)


SIZE, TAGS = "Custom::NodeGroupSize", "Custom::AutoScalingGroupTags"
GUARD, ZONES = "Custom::NodeGroupGuard", "Custom::SuspendedZoneRebalancing"
LISTED, THERE = call.lists("train-x"), call.describes("train-x")
LIST, DESCRIBE = "eks:ListNodegroups", "eks:DescribeNodegroup"
GONE = call.fails(DESCRIBE, "ResourceNotFoundException")
DENIED = call.fails(DESCRIBE, "AccessDeniedException")


def answered(event: Any, calls: Sequence[Any]) -> dict[str, Any]:
    """Return the answer to CloudFormation where AWS answers ``calls``, and nothing else."""
    aws = Aws()
    for name, arguments, keywords in calls:
        getattr(aws, name)(*arguments, **keywords)
    return answers(aws, event)


def labels(shard: str, pool: str = "train") -> dict[str, str]:
    return {"ultrascale.dev/pool": pool, "ultrascale.dev/shard": shard}


# --- sizes --------------------------------------------------------------------------------------

SIZES = {
    "ServiceToken": "arn",
    "ClusterName": CLUSTER,
    "Labels": labels(""),
    # CloudFormation hands every number over as text.
    "MinSize": "1",
    "MaxSize": "8",
    "InitialSize": "2",
}


@rows(
    "shard, calls, size",
    {
        "the first of a pool": ("", [call.lists()], 2),
        "what something else gave it": ("", [LISTED, THERE, call.has("eks-train-x", 5)], 5),
        **{
            f"{standing} within the bounds": (
                "",
                [LISTED, THERE, call.has("eks-train-x", standing)],
                deployed,
            )
            for standing, deployed in ((0, 1), (1, 1), (8, 8), (20, 8))
        },
        **{
            f"a group of {own}": ("", [call.lists("other"), call.describes("other", labels=own)], 2)
            for own in ({}, {"ultrascale.dev/pool": "other"}, labels("1"))
        },
        "a shard": (
            "2",
            [
                *(call.lists("one", "two"), call.describes("one", labels=labels("1"))),
                *(call.describes("two", labels=labels("2")), call.has("eks-two", 7)),
            ],
            7,
        ),
        "on a later page": (
            "",
            [
                *(call.lists("other", token="next"), call.describes("other", labels={})),
                *(call.lists("train-x", after="next"), THERE, call.has("eks-train-x", 5)),
            ],
            5,
        ),
        **{
            f"beside one in {status}": (
                "",
                [
                    *(call.lists("train-x", "train-y"), call.describes("train-x", status=status)),
                    *(call.describes("train-y"), call.has("eks-train-y", 3)),
                ],
                3,
            )
            for status in ("CREATING", "DELETING", "CREATE_FAILED", "DELETE_FAILED")
        },
        **{
            f"in {status}, with its nodes": (
                "",
                [LISTED, call.describes("train-x", status=status), call.has("eks-train-x", 6)],
                6,
            )
            for status in ("UPDATING", "DEGRADED")
        },
        "while one takes the place of another": (
            "",
            [
                *(call.lists("old", "new"), call.describes("old"), call.has("eks-old", 6)),
                *(call.describes("new"), call.has("eks-new", 2)),
            ],
            6,
        ),
        "one that goes while it is looked at": ("", [LISTED, GONE], 2),
    },
)
def test_no_node_is_taken_from_under_a_job_nor_paid_for_that_nobody_wants(
    shard: str, calls: list[Any], size: int
) -> None:
    told = answered(request(SIZE, SIZES | {"Labels": labels(shard)}), calls)
    assert (told["Status"], told["Data"]["DesiredSize"]) == ("SUCCESS", size)


@rows(
    "event, calls, reason",
    {
        # A default would be a size that nobody chose.
        **{
            f"{operation} {code}": (
                request(SIZE, SIZES),
                [*([LISTED] if operation == DESCRIBE else []), call.fails(operation, code)],
                code,
            )
            for operation, code in (
                *((LIST, "AccessDeniedException"), (LIST, "ResourceNotFoundException")),
                *((DESCRIBE, "AccessDeniedException"), (DESCRIBE, "ServerException")),
            )
        },
        "no Auto Scaling group": (
            request(SIZE, SIZES),
            [LISTED, THERE, call.has_lost("eks-train-x")],
            "train-x has lost its Auto Scaling group",
        ),
        "an unknown resource": (request("Custom::Other", {}), [], ""),
    },
)
def test_a_look_up_that_failed_fails_the_deploy(event: Any, calls: list[Any], reason: str) -> None:
    told = answered(event, calls)
    assert (told["Status"], told["Data"]) == ("FAILED", {})
    assert reason in told["Reason"]


def test_a_size_is_the_same_resource_for_ever() -> None:
    again = answered(update(SIZE, SIZES, SIZES), [call.lists()])
    failed = answered(update(SIZE, SIZES, SIZES), [call.fails(LIST, "ServerException")])
    assert {again["PhysicalResourceId"], failed["PhysicalResourceId"]} == {"there"}
    assert answered(delete(SIZE, SIZES), [])["Status"] == "SUCCESS"


# --- tags, by which the Cluster Autoscaler scales a group from zero -----------------------------


def tagged(name: str = "train-x", **tags: str) -> dict[str, Any]:
    return {"ServiceToken": "arn", "ClusterName": CLUSTER, "NodegroupName": name, "Tags": tags}


@rows(
    "event, calls, status, id",
    {
        "set on the group and not on instances": (
            request(TAGS, tagged(a="1", b="2")),
            [THERE, call.tags("eks-train-x", {"a": "1", "b": "2"})],
            *("SUCCESS", "train-x"),
        ),
        "gone ones are taken away": (
            update(TAGS, tagged(b="3"), tagged(a="1", b="2")),
            [THERE, call.untags("eks-train-x", "a"), call.tags("eks-train-x", {"b": "3"})],
            *("SUCCESS", "train-x"),
        ),
        "a new group starts from nothing": (
            update(TAGS, tagged("train-y", b="2"), tagged(a="1")),
            [call.describes("train-y"), call.tags("eks-train-y", {"b": "2"})],
            *("SUCCESS", "train-y"),
        ),
        "without the resource the autoscaler lets go": (
            delete(TAGS, tagged(a="1", b="2")),
            [THERE, call.untags("eks-train-x", "a", "b")],
            *("SUCCESS", "there"),
        ),
        "a group that is gone": (delete(TAGS, tagged(a="1")), [GONE], "SUCCESS", "there"),
        **{
            f"a group that goes, in {status}": (
                delete(TAGS, tagged(a="1")),
                [call.describes("train-x", status=status, groups=())],
                *("SUCCESS", "there"),
            )
            for status in ("DELETING", "CREATE_FAILED")
        },
        "a group that is not there": (request(TAGS, tagged(a="1")), [GONE], "FAILED", None),
        "no Auto Scaling group": (
            request(TAGS, tagged(a="1")),
            [call.describes("train-x", groups=())],
            *("FAILED", None),
        ),
        "a refusal": (delete(TAGS, tagged(a="1")), [DENIED], "FAILED", "there"),
    },
)
def test_tags_of_a_group_are_those_of_the_file(
    event: Any, calls: list[Any], status: str, id: str | None
) -> None:
    told = answered(event, calls)
    assert told["Status"] == status
    assert id is None or told["PhysicalResourceId"] == id


# --- the guard: a roll of reserved nodes breaks their job off, and has no place for a second set --

LAUNCHED = {"Provisioner": "managed-node-group", "Purchase": "odcr", "Release": "1"}
BEFORE: dict[str, Any] = {
    "ServiceToken": "arn",
    "ClusterName": CLUSTER,
    "Labels": labels(""),
    "Guarded": "true",
    "SizedBy": "file",
    "LaunchedFrom": LAUNCHED,
}
AFTER = BEFORE | {"LaunchedFrom": LAUNCHED | {"Release": "2"}}
OWN = BEFORE | {"LaunchedFrom": {"Provisioner": "self-managed", "Purchase": "odcr"}}
BOUGHT = OWN | {"LaunchedFrom": {"Provisioner": "self-managed", "Purchase": "on-demand"}}
OPEN, SCALED = {"Guarded": "false"}, {"SizedBy": "cluster-autoscaler"}
UPDATES = call.has_stack("UPDATE_IN_PROGRESS")
SHOWN, LONGEST_CLUSTER_NAME = 500, 40


def runs(nodes: int, name: str = "train-x") -> list[Any]:
    return [UPDATES, call.lists(name), call.describes(name), call.has(f"eks-{name}", nodes)]


def self_managed(nodes: int) -> list[Any]:
    return [UPDATES, call.lists(), call.has_self_managed(own=nodes)]


@rows(
    "after, before, calls, reasons",
    {
        "nodes that run": (
            *(AFTER, BEFORE),
            [
                *(UPDATES, call.lists("other", "train-x"), call.describes("other", labels={})),
                *(THERE, call.has("eks-train-x", 16)),
            ],
            [
                "train-x runs 16 nodes",
                "When their jobs are done, scale it to 0",
                "aws eks update-nodegroup-config --cluster-name research --nodegroup-name train-x "
                "--scaling-config minSize=0,desiredSize=0;",
                "minSize=1,desiredSize=16",
            ],
        ),
        "the guard that it takes away": (AFTER | OPEN, BEFORE, runs(16), []),
        "the guard that it brings": (AFTER, BEFORE | OPEN, runs(16), []),
        # They would have the group filled again.
        "jobs that scale it up": (
            *(AFTER, BEFORE | SCALED),
            runs(16),
            ["Suspend its jobs first (they scale it up), then scale it to 0: aws eks"],
        ),
        **{
            f"the longest advice, {name}": (
                *(AFTER, BEFORE | changes),
                runs(450, "NodeGroup" + "x" * 54),
                ["minSize=1,desiredSize=450"],
            )
            for name, changes in (("fixed", {}), ("scaled", SCALED))
        },
        "self-managed nodes that run": (
            *(AFTER, OWN),
            self_managed(8),
            ["own runs 8 nodes", "--auto-scaling-group-name own --min-size 0 --desired-capacity 0"],
        ),
        "a refusal of EKS": (
            *(AFTER, BEFORE),
            [UPDATES, call.fails(LIST, "AccessDeniedException")],
            [],
        ),
        "a stack that cannot be read": (AFTER, BEFORE, [call.has_no_stack()], []),
    },
)
def test_nodes_that_run_fail_the_deploy_with_advice_that_is_shown_whole(
    after: dict[str, Any], before: dict[str, Any], calls: list[Any], reasons: list[str]
) -> None:
    told = answered(update(GUARD, after, before), calls)
    reason = told["Reason"]
    assert (told["Status"], told["PhysicalResourceId"]) == ("FAILED", "there")
    assert [each for each in reasons if each not in reason] == []
    assert not reasons or "desiredSize" not in reasons[-1] or reason.endswith(reasons[-1])
    assert len(reason) + LONGEST_CLUSTER_NAME - len(CLUSTER) <= SHOWN


@rows(
    "event, calls",
    {
        "not guarded": (update(GUARD, AFTER | OPEN, BEFORE | OPEN), []),
        **{
            f"nodes outlive {changes}": (update(GUARD, BEFORE | changes, BEFORE), [])
            for changes in (OPEN, SCALED, {"ServiceToken": "new"})
        },
        "an empty group": (update(GUARD, AFTER, BEFORE), runs(0)),
        "a group that goes": (
            update(GUARD, AFTER, BEFORE),
            [UPDATES, LISTED, call.describes("train-x", status="DELETING")],
        ),
        "an empty self-managed group": (update(GUARD, AFTER, OWN), self_managed(0)),
        "another purchase of self-managed nodes": (
            update(GUARD, BOUGHT, OWN),
            [UPDATES, call.lists()],
        ),
        **{
            status: (update(GUARD, BEFORE, AFTER), [call.has_stack(status)])
            for status in (
                *("UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"),
            )
        },
        "made": (request(GUARD, BEFORE), []),
        "deleted": (delete(GUARD, BEFORE), []),
    },
)
def test_a_change_that_no_running_node_feels_is_not_stopped(event: Any, calls: list[Any]) -> None:
    assert answered(event, calls)["Status"] == "SUCCESS"


# --- zones: a node that moves to another one for balance takes its job down ----------------------

MANAGED = {"ServiceToken": "arn", "ClusterName": CLUSTER, "NodegroupName": "train-x"}
SELF_MANAGED = {"ServiceToken": "arn", "AutoScalingGroupName": "train-asg"}
SUSPENDED = call.suspends_rebalancing("train-asg")


@rows(
    "event, calls, status, id",
    {
        "managed": (
            request(ZONES, MANAGED),
            [THERE, call.suspends_rebalancing("eks-train-x")],
            *("SUCCESS", "train-x"),
        ),
        "self-managed": (request(ZONES, SELF_MANAGED), [SUSPENDED], "SUCCESS", "train-asg"),
        "in the place of another": (
            update(ZONES, SELF_MANAGED, SELF_MANAGED | {"AutoScalingGroupName": "old"}),
            [SUSPENDED],
            *("SUCCESS", "train-asg"),
        ),
        "managed, deleted": (delete(ZONES, MANAGED), [], "SUCCESS", "there"),
        "self-managed, deleted": (delete(ZONES, SELF_MANAGED), [], "SUCCESS", "there"),
        "not there": (request(ZONES, MANAGED), [GONE], "FAILED", None),
        "refused": (request(ZONES, SELF_MANAGED), [call.does_not_suspend()], "FAILED", None),
    },
)
def test_zones_of_a_group_are_left_as_they_are(
    event: Any, calls: list[Any], status: str, id: str | None
) -> None:
    told = answered(event, calls)
    assert told["Status"] == status
    assert id is None or told["PhysicalResourceId"] == id
