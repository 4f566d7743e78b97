"""The function behind the block calendar: who calls it, what it asks AWS for, what it answers."""

import json
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any
from unittest.mock import Mock

import boto3
import pytest

from tests.fake_aws import RESERVATION, Aws
from tests.fake_kubernetes import FakeKubernetes, serve
from ultrascale.lambdas import cloudformation
from ultrascale.lambdas.block_calendar import handler

BEFORE = datetime(2026, 12, 1, 11, 29, tzinfo=UTC)
START = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
USABLE_END = datetime(2026, 12, 8, 10, 50, tzinfo=UTC)
AFTER = datetime(2026, 12, 8, 12, 31, tzinfo=UTC)
MANAGED = {"Kind": "ManagedNodeGroup", "Cluster": "research", "Name": "train"}
SELF_MANAGED = {"Kind": "AutoScalingGroup", "Cluster": "research", "Name": "train-asg"}
NODE_POOL = {"Kind": "NodePool", "Cluster": "research", "Name": "train"}
PATH = "/apis/karpenter.sh/v1/nodepools/train"


def entry(target: dict[str, str]) -> dict[str, Any]:
    return {
        "Pool": "train",
        "Window": {
            "Starts": "2026-12-01T11:30:00Z",
            "UsableUntil": "2026-12-08T10:50:00Z",
            "ReclaimedFrom": "2026-12-08T11:00:00Z",
            "Ends": "2026-12-08T11:30:00Z",
        },
        "Size": "16",
        "Reservation": {"Id": RESERVATION},
        "Target": target,
    }


def deploy(target: dict[str, str], kind: str = "Create") -> dict[str, Any]:
    return {
        "RequestType": kind,
        "ResourceProperties": {"ServiceToken": "arn"} | entry(target),
        "PhysicalResourceId": "block-calendar-train",
        "StackId": "stack",
        "RequestId": "request",
        "LogicalResourceId": "AtDeploy",
        "ResponseURL": "https://responses.example",
    }


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Aws]:
    fake = Aws()
    monkeypatch.setattr(boto3, "client", fake.client)
    yield fake
    fake.verify()


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What CloudFormation was told."""
    bodies: list[dict[str, Any]] = []

    def send(request: urllib.request.Request) -> None:
        assert isinstance(request.data, bytes)
        bodies.append(json.loads(request.data))

    monkeypatch.setattr(handler, "respond", partial(cloudformation.respond, send=send))
    return bodies


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[datetime], None]:
    """Sets the clock."""
    return lambda moment: monkeypatch.setattr(handler, "clock", lambda: moment)


Clock = Callable[[datetime], None]
Answers = list[dict[str, Any]]


# No schedule comes later that would make up for a reservation that is some minutes late.
@pytest.mark.parametrize("state", ["active", "pending"])
def test_a_deploy_inside_the_window_scales_a_managed_node_group_up_at_once(
    aws: Aws, answers: Answers, at: Clock, state: str
) -> None:
    at(START)
    aws.reservation(state)
    aws.node_group(0)
    aws.set_node_group(16)

    handler.on_event(deploy(MANAGED))

    assert [answer["Status"] for answer in answers] == ["SUCCESS"]


def test_a_deploy_inside_the_window_scales_an_auto_scaling_group_up_at_once(
    aws: Aws, answers: Answers, at: Clock
) -> None:
    at(START)
    aws.reservation("active")
    aws.auto_scaling_group(0)
    aws.set_auto_scaling_group(16)

    handler.on_event(deploy(SELF_MANAGED, "Update"))

    assert [answer["Status"] for answer in answers] == ["SUCCESS"]


def test_a_deploy_at_the_end_empties_an_auto_scaling_group_that_its_schedule_missed(
    aws: Aws, answers: Answers, at: Clock
) -> None:
    at(USABLE_END)
    aws.auto_scaling_group(16)
    aws.set_auto_scaling_group(0)

    handler.on_event(deploy(SELF_MANAGED, "Update"))

    assert [answer["Status"] for answer in answers] == ["SUCCESS"]


def test_a_deploy_at_the_end_leaves_a_managed_node_group_to_eks(
    aws: Aws, answers: Answers, at: Clock
) -> None:
    at(USABLE_END)

    handler.on_event(deploy(MANAGED, "Update"))

    assert [answer["Status"] for answer in answers] == ["SUCCESS"]


@pytest.mark.parametrize("target", [MANAGED, SELF_MANAGED], ids=["managed", "self-managed"])
def test_a_deploy_before_the_start_calls_no_api(
    aws: Aws, answers: Answers, at: Clock, target: dict[str, str]
) -> None:
    at(BEFORE)

    handler.on_event(deploy(target))

    assert [answer["Status"] for answer in answers] == ["SUCCESS"]


def test_deleting_the_pool_calls_no_api(aws: Aws, answers: Answers, at: Clock) -> None:
    at(START)

    handler.on_event(deploy(MANAGED, "Delete"))

    assert [answer["Status"] for answer in answers] == ["SUCCESS"]


def test_the_resource_keeps_its_id_so_that_an_update_deletes_nothing(
    aws: Aws, answers: Answers, at: Clock
) -> None:
    at(BEFORE)

    for kind in ("Create", "Update", "Delete"):
        handler.on_event(deploy(MANAGED, kind))

    assert {answer["PhysicalResourceId"] for answer in answers} == {"block-calendar-train"}


def test_an_api_that_fails_fails_the_deploy_with_its_reason_and_raises_for_the_alarm(
    aws: Aws, answers: Answers, at: Clock
) -> None:
    at(START)
    aws.reservation("active")
    aws.refuse("eks", "describe_nodegroup", "ServiceUnavailable")

    with pytest.raises(Exception, match="ServiceUnavailable"):
        handler.on_event(deploy(MANAGED))

    (answer,) = answers
    assert answer["Status"] == "FAILED"
    assert answer["Reason"].startswith("pool train: ClientError: ")


def test_an_unknown_reservation_fails_the_deploy(aws: Aws, answers: Answers, at: Clock) -> None:
    at(START)
    aws.refuse("ec2", "describe_capacity_reservations", "InvalidCapacityReservationId.NotFound")

    with pytest.raises(Exception, match="NotFound"):
        handler.on_event(deploy(MANAGED))

    assert [answer["Status"] for answer in answers] == ["FAILED"]


def test_a_lost_reservation_fails_no_deploy_as_no_rollback_would_help(
    aws: Aws, answers: Answers, at: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    at(START)
    aws.reservation("payment-failed")
    aws.node_group(0)

    handler.on_event(deploy(MANAGED))

    assert [answer["Status"] for answer in answers] == ["SUCCESS"]
    assert "payment-failed" in capsys.readouterr().out


def test_an_auto_scaling_group_that_is_gone_is_an_error(
    aws: Aws, answers: Answers, at: Clock
) -> None:
    at(USABLE_END)
    aws.auto_scaling_group()

    with pytest.raises(LookupError, match="train-asg"):
        handler.on_event(deploy(SELF_MANAGED))

    assert [answer["Status"] for answer in answers] == ["FAILED"]


@pytest.mark.parametrize("moment", [BEFORE, AFTER], ids=["before", "after"])
def test_a_schedule_outside_the_window_calls_no_api(
    aws: Aws, at: Clock, moment: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLUSTER_ENDPOINT", raising=False)
    at(moment)

    handler.on_event(entry(NODE_POOL))


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeKubernetes]:
    """A cluster with a static NodePool without nodes, as the function's environment names it."""
    objects: dict[str, Any] = {
        PATH: {"spec": {"replicas": 0}},
        "/api/v1/nodes": [],
    }
    with serve(FakeKubernetes(objects)) as fake:
        monkeypatch.setenv("AWS_REGION", "us-west-2")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        monkeypatch.setenv("CLUSTER_ENDPOINT", fake.url)
        monkeypatch.setenv("CLUSTER_CERTIFICATE_AUTHORITY", "")
        monkeypatch.setattr(handler, "tls_context", Mock(return_value=None))
        yield fake


def replicas(cluster: FakeKubernetes) -> int:
    return cluster.objects[PATH]["spec"]["replicas"]


def test_a_schedule_scales_a_node_pool_up_as_soon_as_its_reservation_is_active(
    aws: Aws, at: Clock, cluster: FakeKubernetes
) -> None:
    at(START)

    aws.reservation("pending")
    handler.on_event(entry(NODE_POOL))
    assert replicas(cluster) == 0

    aws.reservation("active")
    handler.on_event(entry(NODE_POOL))
    assert replicas(cluster) == 16
    assert all(token.startswith("Bearer k8s-aws-v1.") for token in cluster.tokens)


def test_a_schedule_at_the_usable_end_empties_a_node_pool(
    aws: Aws, at: Clock, cluster: FakeKubernetes
) -> None:
    at(USABLE_END)
    cluster.objects[PATH]["spec"]["replicas"] = 16
    cluster.objects["/api/v1/pods"] = []
    node = {
        "metadata": {"name": "n1", "uid": "u", "labels": {"karpenter.sh/nodepool": "train"}},
        "spec": {},
    }
    cluster.objects |= {"/api/v1/nodes": [node], "/api/v1/nodes/n1": node}

    handler.on_event(entry(NODE_POOL))

    assert replicas(cluster) == 0
    assert node["spec"] == {"unschedulable": True}
    assert "Capacity Block of pool train ends" in cluster.created[0][1]["message"]


def test_a_schedule_that_meets_a_lost_reservation_raises_for_the_alarm(
    aws: Aws, at: Clock, cluster: FakeKubernetes
) -> None:
    at(START)
    aws.reservation("expired")

    with pytest.raises(Exception, match="expired"):
        handler.on_event(entry(NODE_POOL))

    assert replicas(cluster) == 0


def test_a_node_pool_is_not_touched_while_ec2_does_not_answer(
    aws: Aws, at: Clock, cluster: FakeKubernetes
) -> None:
    at(START)
    aws.refuse("ec2", "describe_capacity_reservations", "RequestLimitExceeded")

    with pytest.raises(Exception, match="RequestLimitExceeded"):
        handler.on_event(entry(NODE_POOL))

    assert cluster.requests == []
