"""The block calendar, with a clock that stands where the test puts it."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ultrascale.lambdas.block_calendar.decision import ReservationLostError, Window, decide
from ultrascale.lambdas.block_calendar.entry import Entry, keep
from ultrascale.lambdas.block_calendar.reservation import Reservation

SIZE = 16
MINUTE = timedelta(minutes=1)
STARTS = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
ENDS = datetime(2026, 12, 8, 11, 30, tzinfo=UTC)
WINDOW = Window(
    starts=STARTS,
    usable_until=ENDS - 40 * MINUTE,
    reclaimed_from=ENDS - 30 * MINUTE,
    ends=ENDS,
)
ENTRY = Entry(
    pool="train",
    window=WINDOW,
    size=SIZE,
    reservation=Reservation(id="cr-0123456789abcdef0", tags={}),
)
INSIDE = STARTS + timedelta(days=2)
MOMENTS = {
    "long before": STARTS - timedelta(days=30),
    "just before": STARTS - MINUTE,
    "at the start": STARTS,
    "inside": INSIDE,
    "just before the usable end": WINDOW.usable_until - MINUTE,
    "at the usable end": WINDOW.usable_until,
    "just before the reclaim": WINDOW.reclaimed_from - MINUTE,
    "at the reclaim": WINDOW.reclaimed_from,
    "at the end": ENDS,
    "long after": ENDS + timedelta(days=30),
}
OPEN = ("at the start", "inside", "just before the usable end")
DRAINING = ("at the usable end", "just before the reclaim")
RECLAIMED = ("at the reclaim", "at the end", "long after")
NOT_YET = ("pending", "scheduled", "payment-pending", "assessing", "delayed", "unavailable")
LOST = ("expired", "cancelled", "failed", "payment-failed")


class ApiError(Exception):
    """What an API answers that is down."""


@dataclass
class Pool:
    """A target that remembers what happened to it, and whose APIs can be down."""

    nodes: int
    scales_in: bool = True
    waits: bool = True
    down: str | None = None
    calls: list[str] = field(default_factory=list[str])

    def size(self) -> int:
        self._call("size")
        return self.nodes

    def set_size(self, size: int, *, was: int) -> None:
        self._call("set_size")
        assert was == self.nodes
        self.nodes = size

    def drain(self, message: str) -> None:
        self._call("drain")
        self.message = message

    def _call(self, name: str) -> None:
        if name == self.down:
            raise ApiError
        self.calls.append(name)


def run(pool: Pool, now: datetime, state: str = "active") -> str:
    def reservation_state() -> str:
        pool.calls.append("reservation")
        return state

    return keep(ENTRY, now=now, reservation_state=reservation_state, target=pool)


@pytest.mark.parametrize("moment", ["long before", "just before"])
def test_before_the_start_it_asks_no_api(moment: str) -> None:
    pool = Pool(nodes=0)

    run(pool, MOMENTS[moment])

    assert pool.calls == []


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


@pytest.mark.parametrize("state", NOT_YET)
def test_a_group_that_tries_again_by_itself_does_not_wait(state: str) -> None:
    pool = Pool(nodes=0, waits=False)

    run(pool, INSIDE, state)

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

    assert pool.calls == ["size", "drain", "set_size"]
    assert pool.nodes == 0
    assert "EC2 terminates them from 2026-12-08 11:00 UTC on" in pool.message


@pytest.mark.parametrize("moment", RECLAIMED)
def test_once_ec2_takes_the_nodes_no_warning_holds_the_scale_in_up(moment: str) -> None:
    pool = Pool(nodes=SIZE, down="drain")

    run(pool, MOMENTS[moment])

    assert pool.nodes == 0


@pytest.mark.parametrize("moment", DRAINING + RECLAIMED)
def test_after_the_usable_end_the_reservation_does_not_matter(moment: str) -> None:
    pool = Pool(nodes=SIZE)

    run(pool, MOMENTS[moment], "expired")

    assert "reservation" not in pool.calls


@pytest.mark.parametrize("moment", DRAINING + RECLAIMED)
def test_after_the_usable_end_an_empty_pool_is_left_alone(moment: str) -> None:
    pool = Pool(nodes=0)

    run(pool, MOMENTS[moment])

    assert pool.calls == ["size"]


@pytest.mark.parametrize("moment", DRAINING + RECLAIMED)
def test_a_group_that_eks_scales_in_is_left_to_eks(moment: str) -> None:
    pool = Pool(nodes=SIZE, scales_in=False)

    run(pool, MOMENTS[moment])

    assert pool.calls == []


def test_a_group_that_eks_scales_in_is_still_scaled_out() -> None:
    pool = Pool(nodes=0, scales_in=False)

    run(pool, STARTS)

    assert pool.nodes == SIZE


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

    def unreachable() -> str:
        raise ApiError

    with pytest.raises(ApiError):
        keep(ENTRY, now=INSIDE, reservation_state=unreachable, target=pool)

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


@pytest.mark.parametrize(
    ("now", "concerned"),
    [
        (STARTS - MINUTE, False),
        (STARTS, True),
        (INSIDE, True),
        (ENDS, True),
        (ENDS + 59 * MINUTE, True),
        (ENDS + 60 * MINUTE, False),
    ],
)
def test_a_schedule_has_nothing_to_do_outside_the_window(now: datetime, concerned: bool) -> None:
    assert WINDOW.concerns(now) is concerned


@given(
    minutes=st.integers(min_value=-60, max_value=8 * 24 * 60),
    state=st.sampled_from(("active", *NOT_YET)),
    waits=st.booleans(),
    current=st.integers(min_value=0, max_value=64),
)
def test_nodes_are_added_only_to_an_empty_pool_and_taken_only_at_the_end(
    minutes: int, state: str, waits: bool, current: int
) -> None:
    now = STARTS + minutes * MINUTE

    action = decide(
        now=now,
        window=WINDOW,
        reservation_state=state,
        waits=waits,
        size=SIZE,
        current=current,
    )

    usable = STARTS <= now < WINDOW.usable_until
    assert (action.size == SIZE) == (usable and (state == "active" or not waits) and current == 0)
    assert (action.size == 0) == (now >= WINDOW.usable_until and current > 0)
    assert action.drain <= (action.size == 0 and now < WINDOW.reclaimed_from)


def test_a_window_of_an_ultraserver_ends_earlier() -> None:
    ultraserver = replace(
        WINDOW, usable_until=ENDS - 70 * MINUTE, reclaimed_from=ENDS - 60 * MINUTE
    )

    action = decide(
        now=ENDS - 70 * MINUTE,
        window=ultraserver,
        reservation_state=None,
        waits=True,
        size=SIZE,
        current=SIZE,
    )

    assert (action.size, action.drain) == (0, True)
