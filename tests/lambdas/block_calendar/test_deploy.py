"""The block calendar as a custom resource: its work in a deployment, and its answers."""

from datetime import datetime
from functools import partial

import pytest

from tests.support.calendar_calls import (
    BEFORE,
    INSIDE,
    MANAGED,
    NODE_POOL,
    SELF_MANAGED,
    START,
    USABLE_END,
    Clock,
    deploy,
)
from tests.support.calendar_fixtures import Answers
from tests.support.calendar_services import Aws
from ultrascale.lambdas.block_calendar import handler
from ultrascale.lambdas.block_calendar import handler as retry


# After the first hour no schedule makes up for a reservation that is late.
@pytest.mark.parametrize("state", ["active", "pending"])
@pytest.mark.parametrize("now", [START, INSIDE], ids=["start", "inside"])
def test_a_deploy_inside_the_window_scales_a_managed_node_group_up_at_once(
    aws: Aws, answers: Answers, at: Clock, now: datetime, state: str
) -> None:
    at(now)
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
    aws.refuse("eks:DescribeNodegroup", "ServiceUnavailable")

    with pytest.raises(Exception, match="ServiceUnavailable"):
        handler.on_event(deploy(MANAGED))

    (answer,) = answers
    assert answer["Status"] == "FAILED"
    assert answer["Reason"].startswith("pool train: ClientError: ")


def test_an_unknown_reservation_fails_the_deploy(aws: Aws, answers: Answers, at: Clock) -> None:
    at(START)
    aws.refuse("ec2:DescribeCapacityReservations", "InvalidCapacityReservationId.NotFound")

    with pytest.raises(Exception, match="NotFound"):
        handler.on_event(deploy(MANAGED))

    assert [answer["Status"] for answer in answers] == ["FAILED"]


def test_one_unknown_reservation_does_not_roll_back_the_other_node_pools(
    aws: Aws, answers: Answers, at: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(START)
    monkeypatch.setattr(handler, "_target", dict)
    aws.refuse("ec2:DescribeCapacityReservations", "InvalidCapacityReservationId.NotFound")

    with pytest.raises(Exception, match="NotFound"):
        handler.on_event(deploy(NODE_POOL))

    assert [answer["Status"] for answer in answers] == ["SUCCESS"]


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


@pytest.mark.parametrize(("before", "nodes", "after"), [(8, 8, 16), (24, 24, 16), (8, 12, None)])
def test_a_count_that_the_file_changes_is_set_unless_somebody_set_another(
    aws: Aws, answers: Answers, at: Clock, before: int, nodes: int, after: int | None
) -> None:
    at(INSIDE)
    aws.reservation("active")
    aws.node_group(nodes)
    if after is not None:
        aws.set_node_group(after)

    handler.on_event(deploy(MANAGED, "Update", size_before=before))

    assert [answer["Status"] for answer in answers] == ["SUCCESS"]


def test_rights_that_are_not_known_yet_fail_no_deploy(
    aws: Aws, answers: Answers, at: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(handler, "until_settled", partial(retry.until_settled, sleep=waits.append))
    at(START)
    aws.refuse("ec2:DescribeCapacityReservations", "UnauthorizedOperation")
    aws.reservation("active")
    aws.refuse("eks:DescribeNodegroup", "AccessDeniedException")
    aws.reservation("active")
    aws.node_group(0)
    aws.set_node_group(16)

    handler.on_event(deploy(MANAGED))

    assert [answer["Status"] for answer in answers] == ["SUCCESS"]
    assert len(waits) == 2
