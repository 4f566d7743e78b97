"""The block calendar each minute, called by the schedule."""

from collections.abc import Iterator
from datetime import timedelta
from operator import itemgetter
from unittest.mock import Mock

import pytest

from tests.support.calendar_calls import (
    BEFORE,
    INSIDE,
    MANAGED,
    NEXT_YEAR,
    NODE_POOL,
    SELF_MANAGED,
    START,
    USABLE_END,
    Clock,
    entry,
)
from tests.support.calendar_services import ENDS, STARTS, Aws
from tests.support.stub_api_http import serve
from tests.support.stub_api_server import StubApiServer
from ultrascale.lambdas.block_calendar import handler
from ultrascale.lambdas.block_calendar.decision import UnusedNodesError
from ultrascale.lambdas.block_calendar.entry import WindowError
from ultrascale.lambdas.block_calendar.scheduled_end import EarlyEndError
from ultrascale.lambdas.kubernetes import ApiServer

KIND = itemgetter("Kind")
PATH = "/apis/karpenter.sh/v1/nodepools/train"


@pytest.mark.parametrize(
    "target", [MANAGED, SELF_MANAGED, NODE_POOL], ids=lambda each: each["Kind"]
)
def test_before_the_start_it_calls_no_api(
    aws: Aws, at: Clock, target: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLUSTER_ENDPOINT", raising=False)
    at(BEFORE)

    handler.on_event(entry(target))


def test_it_fills_a_managed_node_group_that_the_start_missed(aws: Aws, at: Clock) -> None:
    at(START)
    aws.reservation("active")
    aws.node_group(0)
    aws.set_node_group(16)

    handler.on_event(entry(MANAGED))


def test_it_fills_an_auto_scaling_group_that_the_start_missed(aws: Aws, at: Clock) -> None:
    at(START)
    aws.reservation("pending")
    aws.auto_scaling_group(0)
    aws.set_auto_scaling_group(16)

    handler.on_event(entry(SELF_MANAGED))


def test_it_leaves_a_managed_node_group_at_0_that_is_upgraded_but_raises(
    aws: Aws, at: Clock
) -> None:
    at(INSIDE)
    aws.reservation("active")
    aws.node_group(0)
    aws.scheduled_end(ENDS - timedelta(minutes=40), cause="a user request update")

    with pytest.raises(UnusedNodesError, match="paid nodes stand unused"):
        handler.on_event(entry(MANAGED))


def test_a_group_that_eks_emptied_at_the_old_end_of_a_longer_block_is_filled_again(
    aws: Aws, at: Clock
) -> None:
    at(INSIDE)
    aws.reservation("active")
    aws.node_group(0)
    aws.scheduled_end(None, cause="At 10:50 a scheduled action update of constraints to min: 0")
    aws.set_node_group(16)
    aws.scheduled_end(None, cause="a user request update")

    handler.on_event(entry(MANAGED))


def test_an_end_that_eks_set_too_early_raises_a_day_ahead(aws: Aws, at: Clock) -> None:
    """The block was extended, and EKS made its action when it made the group."""
    at(INSIDE)
    aws.reservation("active")
    aws.node_group(16)
    aws.scheduled_end(INSIDE + timedelta(hours=23), cause="a user request update")

    with pytest.raises(EarlyEndError, match="EKS empties the group at 2026-12-04 08:00Z"):
        handler.on_event(entry(MANAGED))


def test_a_group_that_eks_has_not_emptied_is_emptied_by_the_calendar(aws: Aws, at: Clock) -> None:
    at(ENDS - timedelta(minutes=34))
    aws.reservation("active")
    aws.node_group(16)
    aws.set_node_group(0)

    handler.on_event(entry(MANAGED))


def test_a_window_that_ec2_keeps_longer_raises(aws: Aws, at: Clock) -> None:
    at(INSIDE)
    aws.reservation("active", ends=ENDS + timedelta(days=7))
    aws.node_group(16)

    with pytest.raises(WindowError, match="2026-12-08 11:30Z, EC2 2026-12-15 11:30Z"):
        handler.on_event(entry(MANAGED))


@pytest.mark.parametrize("target", [MANAGED, NODE_POOL], ids=KIND)
def test_a_start_that_the_file_misses_is_told_before_it_comes(
    aws: Aws, at: Clock, target: dict[str, str], cluster: StubApiServer
) -> None:
    at(BEFORE.replace(minute=4))
    aws.reservation("scheduled", starts=STARTS - timedelta(days=7))

    with pytest.raises(WindowError, match=r"purchase\.starts"):
        handler.on_event(entry(target))

    assert cluster.requests == []


def test_it_empties_an_auto_scaling_group_that_the_end_missed(aws: Aws, at: Clock) -> None:
    at(USABLE_END)
    aws.auto_scaling_group(16)
    aws.set_auto_scaling_group(0)
    aws.reservation("active")

    handler.on_event(entry(SELF_MANAGED))


def test_it_takes_back_what_the_start_asks_for_a_year_later(aws: Aws, at: Clock) -> None:
    at(NEXT_YEAR)
    aws.node_group(16)
    aws.set_node_group(0)

    handler.on_event(entry(MANAGED))


@pytest.mark.parametrize("target", [MANAGED, SELF_MANAGED], ids=KIND)
@pytest.mark.parametrize("state", ["expired", "cancelled", "payment-failed"])
def test_a_node_group_whose_reservation_is_lost_raises_for_the_alarm(
    aws: Aws, at: Clock, state: str, target: dict[str, str]
) -> None:
    at(INSIDE)
    aws.reservation(state)
    if target is MANAGED:
        aws.node_group(16)
    else:
        aws.auto_scaling_group(16)

    with pytest.raises(Exception, match=state):
        handler.on_event(entry(target))


def test_a_managed_node_group_that_is_gone_is_an_error(aws: Aws, at: Clock) -> None:
    at(START)
    aws.reservation("active")
    aws.refuse("eks:DescribeNodegroup", "ResourceNotFoundException")

    with pytest.raises(LookupError, match="train"):
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
        monkeypatch.setattr(handler, "look_up", {"research": found}.__getitem__)
        monkeypatch.setattr(handler, "tls_context", Mock(return_value=None))
        yield server


def replicas(cluster: StubApiServer) -> int:
    return cluster.objects[PATH]["spec"]["replicas"]


def test_a_schedule_scales_a_node_pool_up_as_soon_as_its_reservation_is_active(
    aws: Aws, at: Clock, cluster: StubApiServer
) -> None:
    at(START)

    aws.reservation("pending")
    handler.on_event(entry(NODE_POOL))
    assert replicas(cluster) == 0

    aws.reservation("active")
    handler.on_event(entry(NODE_POOL))
    assert replicas(cluster) == 16
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


def test_a_schedule_that_meets_a_lost_reservation_raises_for_the_alarm(
    aws: Aws, at: Clock, cluster: StubApiServer
) -> None:
    at(START)
    aws.reservation("expired")

    with pytest.raises(Exception, match="expired"):
        handler.on_event(entry(NODE_POOL))

    assert replicas(cluster) == 0


def test_a_node_pool_is_not_touched_while_ec2_does_not_answer(
    aws: Aws, at: Clock, cluster: StubApiServer
) -> None:
    at(START)
    aws.refuse("ec2:DescribeCapacityReservations", "RequestLimitExceeded")

    with pytest.raises(Exception, match="RequestLimitExceeded"):
        handler.on_event(entry(NODE_POOL))

    assert cluster.requests == []
