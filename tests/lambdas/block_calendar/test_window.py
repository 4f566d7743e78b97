"""Windows of the cluster file that differ from EC2's."""

from datetime import datetime, timedelta

import pytest

from tests.support.calendar_targets import (
    BY_ID,
    BY_TAGS,
    ENDS,
    FIRST_DEPLOY,
    HOUR,
    INSIDE,
    MINUTE,
    MOMENTS,
    OVER,
    SIZE,
    STARTS,
    WINDOW,
    ApiError,
    Pool,
    entry,
    node_group,
    run,
)
from ultrascale.lambdas.block_calendar.entry import WindowError
from ultrascale.lambdas.block_calendar.reservation import Reservation

DAY = timedelta(days=1)
WEEK = timedelta(days=7)


@pytest.mark.parametrize("reservation", [BY_ID, BY_TAGS], ids=["id", "tags"])
@pytest.mark.parametrize("ends", [ENDS + WEEK, ENDS - DAY, ENDS + 2 * MINUTE], ids=str)
def test_another_end_is_an_error_once_the_nodes_are_there(
    ends: datetime, reservation: Reservation
) -> None:
    pool = Pool(nodes=0)
    with pytest.raises(WindowError, match="set from 0 to 16") as error:
        run(pool, INSIDE, ends=ends, reservation=reservation)
    assert pool.nodes == SIZE
    assert "purchase.ends 2026-12-08 11:30Z" in str(error.value)
    assert f"EC2 {ends:%Y-%m-%d %H:%M}Z" in str(error.value)
    assert "extended" in str(error.value)


@pytest.mark.parametrize("off", [timedelta(seconds=-60), timedelta(seconds=60)], ids=str)
def test_a_minute_is_no_difference(off: timedelta) -> None:
    run(Pool(nodes=SIZE), INSIDE, ends=ENDS + off)


def test_the_end_in_the_file_is_kept_although_ec2_has_a_later_one() -> None:
    pool = Pool(nodes=SIZE)
    with pytest.raises(WindowError):
        run(pool, WINDOW.usable_until, ends=ENDS + WEEK)
    assert pool.nodes == 0
    assert pool.message


def test_a_managed_group_that_is_left_to_eks_tells_of_another_end() -> None:
    with pytest.raises(WindowError, match="left to EKS"):
        run(node_group(SIZE, emptied_by_eks=True), WINDOW.reclaimed_from, ends=ENDS + WEEK)


def test_a_deploy_only_says_that_the_window_is_another() -> None:
    pool = Pool(nodes=0)
    report = run(pool, INSIDE, ends=ENDS + WEEK, deploy=FIRST_DEPLOY)
    assert "EC2 2026-12-15 11:30Z" in report
    assert pool.nodes == SIZE


@pytest.mark.parametrize("days", [1, -1])
@pytest.mark.parametrize("minute", range(5))
def test_before_the_start_another_start_or_end_is_an_error_each_hour_for_the_alarms_five_minutes(
    minute: int, days: int
) -> None:
    pool = Pool(nodes=0)
    now = (STARTS - 3 * DAY).replace(minute=minute)
    assert entry().has_work(now)
    assert not any(entry().has_work(now.replace(minute=later)) for later in (5, 30, 59))
    with pytest.raises(WindowError, match=r"starts .*ends "):
        run(pool, now, "scheduled", starts=STARTS + days * DAY, ends=ENDS + days * DAY)
    assert pool.calls == ["reservation"]


def test_by_tags_nothing_is_compared_before_the_start_as_they_may_find_the_block_before() -> None:
    pool = Pool(nodes=0)
    now = (STARTS - 3 * DAY).replace(minute=0)
    assert not entry(reservation=BY_TAGS).has_work(now)
    run(pool, now, starts=STARTS - WEEK, ends=STARTS, reservation=BY_TAGS)
    assert pool.calls == []


def test_by_tags_nothing_is_compared_once_ec2_takes_the_nodes_as_they_may_find_the_next() -> None:
    pool = Pool(nodes=0)
    run(pool, WINDOW.reclaimed_from, starts=ENDS, ends=ENDS + WEEK, reservation=BY_TAGS)
    # Nor is a block that is over.
    for moment in OVER:
        run(pool, MOMENTS[moment], ends=ENDS + WEEK)
    assert "reservation" not in pool.calls


def test_a_block_that_starts_later_than_the_file_says_is_an_error_until_it_has_started() -> None:
    starts = STARTS + 2 * HOUR
    with pytest.raises(WindowError, match=r"purchase\.starts"):
        run(Pool(nodes=0), STARTS + HOUR, "scheduled", starts=starts)
    run(Pool(nodes=0), starts, starts=starts)


def test_what_fails_is_told_before_the_window() -> None:
    pool = Pool(nodes=0, down="set_size")
    with pytest.raises(ApiError):
        run(pool, INSIDE, ends=ENDS + WEEK)
