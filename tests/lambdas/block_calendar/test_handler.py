"""The function behind the block calendar: what it asks AWS and sets, in a minute and a deployment.

Each case lists the requests in their order: one that is not foreseen fails it, as one that is not
sent does.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from unittest.mock import Mock, call

import pytest

from tests.support.calendar_fixtures import Answers, Clock
from tests.support.calendar_services import ENDS, RESERVATION, STARTS, Aws
from tests.support.cases import rows
from tests.support.stub_api_http import serve
from tests.support.stub_api_server import StubApiServer
from ultrascale.lambdas import kubernetes
from ultrascale.lambdas.block_calendar import handler
from ultrascale.lambdas.block_calendar import handler as retry
from ultrascale.lambdas.block_calendar.decision import UnusedNodesError
from ultrascale.lambdas.block_calendar.entry import WindowError
from ultrascale.lambdas.block_calendar.handler import RunningBlockError
from ultrascale.lambdas.block_calendar.scheduled_end import EarlyEndError
from ultrascale.lambdas.kubernetes import ApiServer

BEFORE = datetime(2026, 12, 1, 11, 29, tzinfo=UTC)
START = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
INSIDE = datetime(2026, 12, 3, 9, 0, tzinfo=UTC)
USABLE_END = datetime(2026, 12, 8, 10, 50, tzinfo=UTC)
NEXT_YEAR = datetime(2027, 12, 1, 11, 31, tzinfo=UTC)
MANAGED = {"Kind": "ManagedNodeGroup", "Cluster": "research", "Name": "train"}
SELF_MANAGED = {"Kind": "AutoScalingGroup", "Cluster": "research", "Name": "train-asg"}
NODE_POOL = {"Kind": "NodePool", "Cluster": "research", "Name": "train"}


NEXT_BLOCK = {
    "Window": {
        "Starts": "2026-12-10T11:30:00Z",
        "UsableUntil": "2026-12-12T10:50:00Z",
        "ReclaimedFrom": "2026-12-12T11:00:00Z",
        "Ends": "2026-12-12T11:30:00Z",
    },
    "Reservation": {"Id": "cr-11111111111111111"},
}


def entry(target: dict[str, str], size: int = 16) -> Any:
    """Return what a schedule calls the function with."""
    return {
        "Pool": "train",
        "Window": {
            "Starts": "2026-12-01T11:30:00Z",
            "UsableUntil": "2026-12-08T10:50:00Z",
            "ReclaimedFrom": "2026-12-08T11:00:00Z",
            "Ends": "2026-12-08T11:30:00Z",
        },
        "Size": str(size),
        "Reservation": {"Id": RESERVATION},
        "Target": target,
    }


def deploy(target: dict[str, str], kind: str = "Create", *, size_before: int | None = None) -> Any:
    """Return what CloudFormation calls it with; an update is one of a pool of ``size_before``."""
    request = {
        "RequestType": kind,
        "ResourceProperties": {"ServiceToken": "arn"} | entry(target),
        "PhysicalResourceId": "block-calendar-train",
        "StackId": "stack",
        "RequestId": "request",
        "LogicalResourceId": "AtDeploy",
        "ResponseURL": "https://responses.example",
    }
    if kind == "Update":
        request["OldResourceProperties"] = entry(target, size_before or 16)
    return request


PATH = "/apis/karpenter.sh/v1/nodepools/train"
RESERVATIONS = "ec2:DescribeCapacityReservations"
ACTIVE, FILL = call.reservation("active"), call.set_node_group(16)
DELETED = "At 10:50 a scheduled action update of constraints to min: 0"
BY_USER = "a user request update"


def foresee(aws: Aws, calls: Sequence[Any]) -> None:
    for name, arguments, keywords in calls:
        getattr(aws, name)(*arguments, **keywords)


# --- each minute --------------------------------------------------------------------------------


@rows(
    "now, target, calls",
    {
        "a managed group that the start missed": (
            START,
            MANAGED,
            [ACTIVE, call.node_group(0), FILL],
        ),
        "a self-managed group that the start missed": (
            START,
            SELF_MANAGED,
            [
                call.reservation("pending"),
                call.auto_scaling_group(0),
                call.set_auto_scaling_group(16),
            ],
        ),
        "emptied by EKS at the old end of a longer block": (
            INSIDE,
            MANAGED,
            [
                *(ACTIVE, call.node_group(0), call.scheduled_end(None, cause=DELETED)),
                *(FILL, call.scheduled_end(None, cause=BY_USER)),
            ],
        ),
        "not emptied by EKS": (
            ENDS - timedelta(minutes=34),
            MANAGED,
            [ACTIVE, call.node_group(16), call.set_node_group(0)],
        ),
        "a self-managed group that the end missed": (
            USABLE_END,
            SELF_MANAGED,
            [call.auto_scaling_group(16), call.set_auto_scaling_group(0), ACTIVE],
        ),
        "what the start asks for a year later": (
            NEXT_YEAR,
            MANAGED,
            [call.node_group(16), call.set_node_group(0)],
        ),
        **{
            f"before the start, {target['Kind']}": (BEFORE, target, [])
            for target in (MANAGED, SELF_MANAGED, NODE_POOL)
        },
    },
)
def test_a_minute_sets_the_size_of_the_block(
    aws: Aws,
    at: Clock,
    monkeypatch: pytest.MonkeyPatch,
    now: datetime,
    target: dict[str, str],
    calls: list[Any],
) -> None:
    monkeypatch.delenv("CLUSTER_ENDPOINT", raising=False)
    at(now)
    foresee(aws, calls)
    handler.on_event(entry(target))


@rows(
    "now, calls, error, says",
    {
        "upgraded, and its nodes paid for": (
            INSIDE,
            [
                *(ACTIVE, call.node_group(0)),
                call.scheduled_end(ENDS - timedelta(minutes=40), cause=BY_USER),
            ],
            UnusedNodesError,
            "paid nodes stand unused",
        ),
        # The block was extended, and EKS made its action when it made the group.
        "an end that EKS set too early": (
            INSIDE,
            [
                *(ACTIVE, call.node_group(16)),
                call.scheduled_end(INSIDE + timedelta(hours=23), cause=BY_USER),
            ],
            EarlyEndError,
            "EKS empties the group at 2026-12-04 08:00Z",
        ),
        "a window that EC2 keeps longer": (
            INSIDE,
            [call.reservation("active", ends=ENDS + timedelta(days=7)), call.node_group(16)],
            WindowError,
            "2026-12-08 11:30Z, EC2 2026-12-15 11:30Z",
        ),
        "a group that is gone": (
            START,
            [ACTIVE, call.refuse("eks:DescribeNodegroup", "ResourceNotFoundException")],
            LookupError,
            "train",
        ),
        "a start that the file misses": (
            BEFORE.replace(minute=4),
            [call.reservation("scheduled", starts=STARTS - timedelta(days=7))],
            WindowError,
            r"purchase\.starts",
        ),
        **{
            f"a reservation that is {state}": (
                INSIDE,
                [call.reservation(state), call.node_group(16)],
                Exception,
                state,
            )
            for state in ("expired", "cancelled", "payment-failed")
        },
    },
)
def test_paid_nodes_that_nobody_can_use_raise_for_the_alarm(
    aws: Aws, at: Clock, now: datetime, calls: list[Any], error: type[Exception], says: str
) -> None:
    at(now)
    foresee(aws, calls)
    with pytest.raises(error, match=says):
        handler.on_event(entry(MANAGED))


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[StubApiServer]:
    """A cluster with a static NodePool without nodes, as the function's environment names it."""
    server = StubApiServer(token=None, strict=False)
    server.groups.add("/apis/karpenter.sh/v1")
    server.put("/api/v1/namespaces/default", {"kind": "Namespace"})
    server.put(PATH, {"spec": {"replicas": 0}})
    with serve(server):
        monkeypatch.setenv("AWS_REGION", "us-west-2")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        found = ApiServer(endpoint=server.url, certificate_authority="")
        monkeypatch.setattr(kubernetes, "look_up", {"research": found}.__getitem__)
        monkeypatch.setattr(kubernetes, "tls_context", Mock(return_value=None))
        yield server


def replicas(cluster: StubApiServer) -> int:
    return cluster.objects[PATH]["spec"]["replicas"]


def test_a_schedule_scales_a_node_pool_up_as_soon_as_its_reservation_is_active(
    aws: Aws, at: Clock, cluster: StubApiServer
) -> None:
    at(START)
    for state, expected in (("pending", 0), ("active", 16)):
        aws.reservation(state)
        handler.on_event(entry(NODE_POOL))
        assert replicas(cluster) == expected
    tokens = [each.headers["authorization"] for each in cluster.requests]
    assert all(token.startswith("Bearer k8s-aws-v1.") for token in tokens)


def test_a_schedule_at_the_usable_end_empties_a_node_pool(
    aws: Aws, at: Clock, cluster: StubApiServer
) -> None:
    at(USABLE_END)
    aws.reservation("active")
    cluster.update(PATH, spec={"replicas": 16})
    labels = {"karpenter.sh/nodepool": "train"}
    cluster.put("/api/v1/nodes/n1", {"metadata": {"labels": labels}, "spec": {}})

    handler.on_event(entry(NODE_POOL))

    assert replicas(cluster) == 0
    assert cluster.objects["/api/v1/nodes/n1"]["spec"] == {"unschedulable": True}
    assert "Capacity Block of pool train ends" in cluster.asked("POST")[0].body["message"]


@rows(
    "now, calls, says",
    {
        "lost": (START, [call.reservation("expired")], "expired"),
        "EC2 does not answer": (
            START,
            [call.refuse(RESERVATIONS, "RequestLimitExceeded")],
            "RequestLimitExceeded",
        ),
        "a start that the file misses": (
            BEFORE.replace(minute=4),
            [call.reservation("scheduled", starts=STARTS - timedelta(days=7))],
            r"purchase\.starts",
        ),
    },
)
def test_a_node_pool_is_not_touched_while_its_reservation_is_none(
    aws: Aws, at: Clock, cluster: StubApiServer, now: datetime, calls: list[Any], says: str
) -> None:
    at(now)
    foresee(aws, calls)
    with pytest.raises(Exception, match=says):
        handler.on_event(entry(NODE_POOL))
    assert replicas(cluster) == 0
    assert cluster.asked("PATCH") == []


# --- in a deployment ----------------------------------------------------------------------------

OPENS = [ACTIVE, call.node_group(0), FILL]


def resized(before: int, nodes: int, *calls: Any) -> tuple[datetime, Any, list[Any]]:
    event = deploy(MANAGED, "Update", size_before=before)
    return INSIDE, event, [ACTIVE, call.node_group(nodes), *calls]


def update(target: dict[str, str], *, old: dict[str, Any], new: dict[str, Any]) -> Any:
    """Return an update that changes parts of the block."""
    request = deploy(target, "Update")
    request["OldResourceProperties"] |= old
    request["ResourceProperties"] |= new
    return request


NEXT = update(SELF_MANAGED, old={}, new=NEXT_BLOCK)


@rows(
    "now, event, calls",
    {
        "at the start": (START, deploy(MANAGED), OPENS),
        "inside": (INSIDE, deploy(MANAGED), OPENS),
        # After the first hour no schedule makes up for a reservation that is late.
        "inside, pending": (INSIDE, deploy(MANAGED), [call.reservation("pending"), *OPENS[1:]]),
        "a self-managed group": (
            START,
            deploy(SELF_MANAGED, "Update"),
            [ACTIVE, call.auto_scaling_group(0), call.set_auto_scaling_group(16)],
        ),
        "a self-managed group at the end": (
            USABLE_END,
            deploy(SELF_MANAGED, "Update"),
            [call.auto_scaling_group(16), call.set_auto_scaling_group(0)],
        ),
        "a managed group at the end, which is left to EKS": (
            USABLE_END,
            deploy(MANAGED, "Update"),
            [],
        ),
        "before the start, managed": (BEFORE, deploy(MANAGED), []),
        "before the start, self-managed": (BEFORE, deploy(SELF_MANAGED), []),
        "a pool that is deleted": (START, deploy(MANAGED, "Delete"), []),
        # No rollback would help.
        "a lost reservation": (
            START,
            deploy(MANAGED),
            [call.reservation("payment-failed"), call.node_group(0)],
        ),
        "a larger count of the file": resized(8, 8, FILL),
        "a smaller count of the file": resized(24, 24, FILL),
        "a count that somebody set": resized(8, 12),
        "the next block, of a group without nodes": (INSIDE, NEXT, [call.auto_scaling_group(0)]),
        "a rollback, of a block that runs": (
            INSIDE,
            NEXT,
            [call.auto_scaling_group(16), call.stack("UPDATE_ROLLBACK_IN_PROGRESS")],
        ),
        "the rollback of what was refused": (
            INSIDE,
            update(SELF_MANAGED, old=NEXT_BLOCK, new={}),
            [ACTIVE, call.auto_scaling_group(16)],
        ),
        "the block that runs, in the place of a wrong one": (
            INSIDE,
            update(SELF_MANAGED, old={"Reservation": NEXT_BLOCK["Reservation"]}, new={}),
            [ACTIVE, call.auto_scaling_group(16)],
        ),
        "a corrected window of one reservation": (
            INSIDE,
            update(SELF_MANAGED, old={}, new={"Window": NEXT_BLOCK["Window"]}),
            [],
        ),
        "the next block, before this one": (BEFORE, NEXT, []),
        "the next block, at the end of this one": (ENDS, NEXT, []),
        "the next block, after this one": (ENDS + timedelta(days=1), NEXT, []),
    },
)
def test_a_deployment_sets_the_size_of_the_block_and_succeeds(
    aws: Aws, answers: Answers, at: Clock, now: datetime, event: Any, calls: list[Any]
) -> None:
    at(now)
    foresee(aws, calls)
    handler.on_event(event)
    # Under the same id, so that an update deletes nothing.
    assert [(answer["Status"], answer["PhysicalResourceId"]) for answer in answers] == [
        ("SUCCESS", "block-calendar-train")
    ]


NOT_FOUND = "InvalidCapacityReservationId.NotFound"


@rows(
    "now, event, calls, error, reasons",
    {
        "an API that fails": (
            START,
            deploy(MANAGED),
            [ACTIVE, call.refuse("eks:DescribeNodegroup", "ServiceUnavailable")],
            "ServiceUnavailable",
            ["pool train: ClientError: "],
        ),
        "an unknown reservation": (
            START,
            deploy(MANAGED),
            [call.refuse(RESERVATIONS, NOT_FOUND)],
            "NotFound",
            [],
        ),
        "a group that is gone": (
            USABLE_END,
            deploy(SELF_MANAGED),
            [call.auto_scaling_group()],
            "train-asg",
            [],
        ),
        **{
            f"a block that runs and leaves the file, at {now:%d}": (
                now,
                NEXT,
                [call.auto_scaling_group(16), call.stack("UPDATE_IN_PROGRESS")],
                "16 nodes run",
                ["Add a second pool for the next block", "after 2026-12-08 11:30Z"],
            )
            for now in (INSIDE, USABLE_END)
        },
        "a block that runs in a managed group": (
            INSIDE,
            update(MANAGED, old={}, new=NEXT_BLOCK),
            [call.node_group(16), call.stack("UPDATE_IN_PROGRESS")],
            "16 nodes run",
            [],
        ),
    },
)
def test_what_a_deployment_cannot_do_fails_it_with_its_reason_and_raises_for_the_alarm(
    aws: Aws,
    answers: Answers,
    at: Clock,
    now: datetime,
    event: Any,
    calls: list[Any],
    error: str,
    reasons: list[str],
) -> None:
    at(now)
    foresee(aws, calls)

    with pytest.raises(Exception, match=error) as raised:
        handler.on_event(event)

    (answer,) = answers
    assert answer["Status"] == "FAILED"
    assert [reason for reason in reasons if reason not in answer["Reason"]] == []
    assert len(answer["Reason"]) < 500
    assert isinstance(raised.value, RunningBlockError) == ("nodes run" in error)


def test_one_unknown_reservation_does_not_roll_back_the_other_node_pools(
    aws: Aws, answers: Answers, at: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(START)
    monkeypatch.setattr(handler, "_target", dict)
    aws.refuse(RESERVATIONS, NOT_FOUND)
    with pytest.raises(Exception, match="NotFound"):
        handler.on_event(deploy(NODE_POOL))
    assert [answer["Status"] for answer in answers] == ["SUCCESS"]


TAGS = {"Reservation": {"Tags": [{"Key": "team", "Value": "core"}]}}


@pytest.mark.parametrize(
    ("old", "new"),
    # The tags that stay find the next block in its window.
    [({}, NEXT_BLOCK), (TAGS, NEXT_BLOCK | TAGS)],
    ids=["id", "tags"],
)
def test_of_a_node_pools_block_that_runs_it_is_only_said_as_its_stack_is_shared(
    aws: Aws,
    answers: Answers,
    at: Clock,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    old: dict[str, Any],
    new: dict[str, Any],
) -> None:
    monkeypatch.setattr(handler, "_target", dict)
    at(INSIDE)
    handler.on_event(update(NODE_POOL, old=old, new=new))
    assert [answer["Status"] for answer in answers] == ["SUCCESS"]
    assert "no longer drains its nodes" in capsys.readouterr().out


def test_rights_that_are_not_known_yet_fail_no_deploy(
    aws: Aws, answers: Answers, at: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(handler, "until_settled", partial(retry.until_settled, sleep=waits.append))
    at(START)
    denied = call.refuse("eks:DescribeNodegroup", "AccessDeniedException")
    foresee(aws, [call.refuse(RESERVATIONS, "UnauthorizedOperation"), ACTIVE, denied, *OPENS])
    handler.on_event(deploy(MANAGED))
    assert [answer["Status"] for answer in answers] == ["SUCCESS"]
    assert len(waits) == 2
