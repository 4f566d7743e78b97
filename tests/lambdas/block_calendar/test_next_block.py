"""Deployments that put the next Capacity Block in the place of the running one."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.calendar_calls import (
    BEFORE,
    INSIDE,
    MANAGED,
    NEXT_BLOCK,
    NODE_POOL,
    SELF_MANAGED,
    USABLE_END,
    Clock,
    deploy,
)
from tests.support.calendar_fixtures import Answers
from tests.support.calendar_services import ENDS, Aws
from ultrascale.lambdas.block_calendar import handler
from ultrascale.lambdas.block_calendar.handler import RunningBlockError

TAGS = {"Tags": [{"Key": "team", "Value": "core"}]}


def update(target: dict[str, str], *, old: dict[str, Any], new: dict[str, Any]) -> Any:
    """Return an update in which parts of what is said of the block change."""
    request = deploy(target, "Update")
    request["OldResourceProperties"] |= old
    request["ResourceProperties"] |= new
    return request


@pytest.mark.parametrize("now", [INSIDE, USABLE_END], ids=["open", "draining"])
def test_the_block_of_a_node_group_that_runs_must_not_leave_the_file(
    aws: Aws, answers: Answers, at: Clock, now: datetime
) -> None:
    at(now)
    aws.auto_scaling_group(16)
    aws.stack("UPDATE_IN_PROGRESS")

    with pytest.raises(RunningBlockError):
        handler.on_event(update(SELF_MANAGED, old={}, new=NEXT_BLOCK))

    (answer,) = answers
    assert answer["Status"] == "FAILED"
    assert "16 nodes run" in answer["Reason"]
    assert "Add a second pool for the next block" in answer["Reason"]
    assert "after 2026-12-08 11:30Z" in answer["Reason"]
    assert len(answer["Reason"]) < 500


def test_nor_that_of_a_managed_one(aws: Aws, answers: Answers, at: Clock) -> None:
    at(INSIDE)
    aws.node_group(16)
    aws.stack("UPDATE_IN_PROGRESS")

    with pytest.raises(RunningBlockError):
        handler.on_event(update(MANAGED, old={}, new=NEXT_BLOCK))

    assert [answer["Status"] for answer in answers] == ["FAILED"]


def test_a_group_without_nodes_may_change_its_block(aws: Aws, answers: Answers, at: Clock) -> None:
    at(INSIDE)
    aws.auto_scaling_group(0)

    handler.on_event(update(SELF_MANAGED, old={}, new=NEXT_BLOCK))

    assert [answer["Status"] for answer in answers] == ["SUCCESS"]


def test_a_rollback_may_take_a_block_that_runs_back(aws: Aws, answers: Answers, at: Clock) -> None:
    at(INSIDE)
    aws.auto_scaling_group(16)
    aws.stack("UPDATE_ROLLBACK_IN_PROGRESS")

    handler.on_event(update(SELF_MANAGED, old={}, new=NEXT_BLOCK))

    assert [answer["Status"] for answer in answers] == ["SUCCESS"]


def test_the_rollback_of_what_was_refused_is_not_refused(
    aws: Aws, answers: Answers, at: Clock
) -> None:
    at(INSIDE)
    aws.reservation("active")
    aws.auto_scaling_group(16)

    handler.on_event(update(SELF_MANAGED, old=NEXT_BLOCK, new={}))

    assert [answer["Status"] for answer in answers] == ["SUCCESS"]


def test_the_block_that_runs_may_come_in_the_place_of_a_wrong_one(
    aws: Aws, answers: Answers, at: Clock
) -> None:
    at(INSIDE)
    aws.reservation("active")
    aws.auto_scaling_group(16)

    handler.on_event(update(SELF_MANAGED, old={"Reservation": NEXT_BLOCK["Reservation"]}, new={}))

    assert [answer["Status"] for answer in answers] == ["SUCCESS"]


def test_the_window_of_one_reservation_may_be_corrected(
    aws: Aws, answers: Answers, at: Clock
) -> None:
    at(INSIDE)

    handler.on_event(update(SELF_MANAGED, old={}, new={"Window": NEXT_BLOCK["Window"]}))

    assert [answer["Status"] for answer in answers] == ["SUCCESS"]


@pytest.mark.parametrize(
    "now", [BEFORE, ENDS, ENDS + timedelta(days=1)], ids=["before", "at its end", "after"]
)
def test_a_block_that_does_not_run_may_leave_the_file(
    aws: Aws, answers: Answers, at: Clock, now: datetime
) -> None:
    at(now)

    handler.on_event(update(SELF_MANAGED, old={}, new=NEXT_BLOCK))

    assert [answer["Status"] for answer in answers] == ["SUCCESS"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, NEXT_BLOCK),
        # The tags that stay find the next block in its window.
        ({"Reservation": TAGS}, NEXT_BLOCK | {"Reservation": TAGS}),
    ],
    ids=["id", "tags"],
)
def test_of_a_node_pool_it_is_only_said_as_its_stack_is_shared(
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
