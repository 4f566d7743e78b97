"""State of a paid window at a given time: ahead, running or over."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.needs import SYSTEM, needs
from tests.support.pools import CAPACITY_BLOCK, ODCR, TRAINING_PLAN, make_cluster, pool_document
from ultrascale.errors import UltrascaleError
from ultrascale.plan.model import ClusterNeeds, WindowNeeds
from ultrascale.plan.needs.calendar import read_time, window_mistakes

# Both windows: 2026-12-01 11:30 to 2026-12-08 11:30.
BLOCK = pool_document(purchase=CAPACITY_BLOCK)
OTHER_ODCR = ODCR | {"reservation": "cr-0123456789abcdef1"}
PLAN = pool_document(name="hp", provisioner="hyperpod", purchase=TRAINING_PLAN, nodes={"static": 8})


def window_of(found: ClusterNeeds) -> WindowNeeds:
    (window,) = found.calendar
    return window


def numbers(window: WindowNeeds) -> dict[str, float | None]:
    return {key: figure.value for key, figure in window.figures.items()}


def time(day: int, clock: str, month: int = 12) -> datetime:
    return datetime.fromisoformat(f"2026-{month:02}-{day:02}T{clock}Z")


def test_the_hours_of_a_block_end_when_its_nodes_are_drained() -> None:
    """EC2 ends them half an hour before the block ends, and they are drained before that."""
    window = window_of(needs(BLOCK))
    assert numbers(window) == {"usable_hours": pytest.approx(7 * 24 - 40 / 60), "drain_minutes": 40}
    assert window.usable_until == time(8, "10:50")
    # A training plan gives its instances back an hour before its end.
    assert numbers(window_of(needs(PLAN)))["drain_minutes"] == 60
    # No command reads a clock to say what a file needs.
    assert (window.state, window.note) == (None, None)


@pytest.mark.parametrize(
    ("at", "state", "hours"),
    [
        (time(1, "11:29"), "ahead", {"hours_ahead": pytest.approx(1 / 60)}),
        (time(1, "11:30"), "running", {"hours_left": pytest.approx(7 * 24 - 40 / 60)}),
        (time(8, "10:49"), "running", {"hours_left": pytest.approx(1 / 60)}),
        (time(8, "10:50"), "draining", {}),
        (time(8, "11:29"), "draining", {}),
        (time(8, "11:30"), "over", {}),
    ],
)
def test_a_window_is_judged_by_the_minute(
    at: datetime, state: str, hours: dict[str, object]
) -> None:
    window = window_of(needs(BLOCK, at=at))
    assert window.state == state
    assert numbers(window).items() >= hours.items()
    assert len(window.figures) == 2 + len(hours)


@pytest.mark.parametrize(
    ("pool", "seller"), [(BLOCK, "EC2 sells blocks"), (PLAN, "SageMaker sells plans")]
)
def test_what_no_one_can_have_bought_yet_is_said(pool: dict[str, Any], seller: str) -> None:
    """Both are sold eight weeks ahead: the reservation of the file is a made-up one."""
    too_early = window_of(needs(pool, at=time(6, "11:29", month=10))).note or ""
    assert f"cannot have been bought yet: {seller} 8 weeks ahead" in too_early
    assert "from 2026-10-06 11:30 UTC on" in too_early
    assert window_of(needs(pool, at=time(6, "11:30", month=10))).note is None


def test_a_window_that_is_over_is_a_mistake_at_its_own_key() -> None:
    """After a pool whose purchase has no window, and so none that could be over."""
    at = time(9, "00:00")
    other = pool_document(name="other", purchase=OTHER_ODCR, nodes={"max": 2})

    found = needs(other, BLOCK, at=at)
    cluster = make_cluster(pools=[SYSTEM, other, BLOCK])
    (mistake,) = window_mistakes(cluster, found.calendar, at)

    assert mistake.at == ("pools", 2, "purchase", "ends")
    assert "train is over at 2026-12-09 00:00 UTC" in mistake.wrong
    assert "take the pool out" in mistake.todo


@pytest.mark.parametrize(
    "text", ["2026-12-15T00:00Z", "2026-12-15T01:00+01:00", "2026-12-15 00:00:00+00:00"]
)
def test_a_time_of_any_offset_is_held_against_utc(text: str) -> None:
    found = read_time(text)

    assert found == datetime(2026, 12, 15, tzinfo=UTC)
    assert found.tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        *("2026-12-15", "2026-12-15T00:00", "tomorrow", "", "1765756800"),
        *("0001-01-01T00:00+14:00", "9999-12-31T23:59-14:00"),
    ],
)
def test_a_time_that_may_be_another_one_elsewhere_is_refused(text: str) -> None:
    with pytest.raises(UltrascaleError, match=r"not a time in UTC.*write it as 2026-12-15T00:00Z"):
        read_time(text)
