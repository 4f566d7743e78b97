"""The block calendar of a static NodePool, before, at, inside and after its window."""

from datetime import datetime

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.calendar_targets import (
    DRAINING,
    INSIDE,
    LOST,
    MINUTE,
    MOMENTS,
    NOT_YET,
    OPEN,
    OVER,
    RECLAIMED,
    SIZE,
    STARTS,
    ULTRASERVER,
    WINDOW,
    ApiError,
    Pool,
    entry,
    run,
)
from ultrascale.lambdas.block_calendar.decision import ReservationLostError, decide
from ultrascale.lambdas.block_calendar.entry import keep
from ultrascale.lambdas.block_calendar.reservation import Block


@pytest.mark.parametrize("moment", ["long before", "just before"])
def test_before_the_start_no_node_is_touched_nor_asked_for(moment: str) -> None:
    pool = Pool(nodes=0)

    run(pool, MOMENTS[moment])

    assert pool.calls == ["reservation"]


@pytest.mark.parametrize("moment", OPEN)
def test_inside_the_window_an_active_reservation_gets_its_nodes(moment: str) -> None:
    pool = Pool(nodes=0)

    report = run(pool, MOMENTS[moment])

    assert pool.nodes == SIZE
    assert report == "pool train set from 0 to 16 nodes: the reservation is active"


@pytest.mark.parametrize("state", NOT_YET)
def test_inside_the_window_it_waits_until_the_reservation_is_active(state: str) -> None:
    pool = Pool(nodes=0)

    assert state in run(pool, INSIDE, state)
    assert pool.nodes == 0

    run(pool, INSIDE + MINUTE, "active")
    assert pool.nodes == SIZE


@pytest.mark.parametrize("state", LOST)
def test_a_reservation_that_is_lost_inside_its_window_is_an_error(state: str) -> None:
    pool = Pool(nodes=0)

    with pytest.raises(ReservationLostError, match=state):
        run(pool, INSIDE, state)

    assert pool.nodes == 0


@pytest.mark.parametrize("nodes", [1, SIZE - 1, SIZE, SIZE + 4])
def test_inside_the_window_a_size_that_someone_set_stays(nodes: int) -> None:
    pool = Pool(nodes=nodes)

    run(pool, INSIDE)

    assert pool.nodes == nodes
    assert "set_size" not in pool.calls


@pytest.mark.parametrize("moment", DRAINING)
def test_at_the_usable_end_jobs_are_warned_before_the_nodes_go(moment: str) -> None:
    pool = Pool(nodes=SIZE)

    run(pool, MOMENTS[moment])

    assert pool.calls == ["size", "drain", "set_size", "reservation"]
    assert pool.nodes == 0
    assert "EC2 terminates them from 2026-12-08 11:00 UTC on" in pool.message


@pytest.mark.parametrize("moment", RECLAIMED + OVER)
def test_once_ec2_takes_the_nodes_no_warning_holds_the_scale_in_up(moment: str) -> None:
    pool = Pool(nodes=SIZE, down="drain")

    run(pool, MOMENTS[moment])

    assert pool.nodes == 0


@pytest.mark.parametrize("moment", DRAINING + RECLAIMED + OVER)
def test_after_the_usable_end_the_state_of_the_reservation_does_not_matter(moment: str) -> None:
    pool = Pool(nodes=SIZE)

    run(pool, MOMENTS[moment], "expired")

    assert pool.nodes == 0


@pytest.mark.parametrize("moment", DRAINING + RECLAIMED + OVER)
def test_after_the_usable_end_an_empty_pool_is_left_alone(moment: str) -> None:
    pool = Pool(nodes=0)

    run(pool, MOMENTS[moment])

    assert not {"set_size", "drain"} & set(pool.calls)


@pytest.mark.parametrize(
    ("call", "now", "before", "after"),
    [
        ("size", INSIDE, 0, SIZE),
        ("set_size", INSIDE, 0, SIZE),
        ("size", WINDOW.usable_until, SIZE, 0),
        ("drain", WINDOW.usable_until, SIZE, 0),
        ("set_size", WINDOW.usable_until, SIZE, 0),
    ],
)
def test_what_an_api_failed_to_do_the_next_run_completes(
    call: str, now: datetime, before: int, after: int
) -> None:
    pool = Pool(nodes=before, down=call)

    with pytest.raises(ApiError):
        run(pool, now)
    assert pool.nodes == before

    pool.down = None
    run(pool, now + MINUTE)
    assert pool.nodes == after


def test_while_ec2_does_not_answer_nothing_is_set() -> None:
    pool = Pool(nodes=0)

    def unreachable() -> Block:
        raise ApiError

    with pytest.raises(ApiError):
        keep(entry(), now=INSIDE, deploy=None, block=unreachable, target=pool)

    assert pool.calls == []


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_second_run_changes_nothing(moment: str) -> None:
    pool = Pool(nodes=3)
    run(pool, MOMENTS[moment])
    nodes = pool.nodes
    pool.calls.clear()

    run(pool, MOMENTS[moment])

    assert pool.nodes == nodes
    assert not {"set_size", "drain"} & set(pool.calls)


@given(
    minutes=st.integers(min_value=-60, max_value=8 * 24 * 60),
    state=st.sampled_from(("active", *NOT_YET)),
    waits=st.booleans(),
    own=st.sets(st.integers(min_value=0, max_value=64)),
    current=st.integers(min_value=0, max_value=64),
)
def test_inside_the_window_only_its_own_sizes_change_and_nodes_go_only_at_the_end(
    minutes: int, state: str, waits: bool, own: set[int], current: int
) -> None:
    now = STARTS + minutes * MINUTE
    usable = STARTS <= now < WINDOW.usable_until
    assume(not (usable and state == "active" and current == 0 and 0 not in own))

    action = decide(
        now=now,
        window=WINDOW,
        reservation_state=state,
        waits=waits,
        size=SIZE,
        own=own,
        current=current,
    )

    filled = usable and (state == "active" or not waits) and current in own and current != SIZE
    assert (action.size == SIZE) == filled
    assert (action.size == 0) == (now >= WINDOW.usable_until and current > 0)
    assert action.drain <= (action.size == 0 and now < WINDOW.reclaimed_from)


def test_a_window_of_an_ultraserver_ends_earlier() -> None:
    pool = Pool(nodes=SIZE)

    run(pool, ULTRASERVER.usable_until, window=ULTRASERVER)

    assert pool.calls == ["size", "drain", "set_size", "reservation"]
    assert pool.nodes == 0
