"""A static NodePool is never asked for more nodes than its reservation has."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.calendar_targets import BY_ID, INSIDE, Pool, entry
from tests.support.cases import for_each
from tests.support.fake_aws import FakeAws
from ultrascale.lambdas.block_calendar import entry as rooms
from ultrascale.lambdas.block_calendar.entry import (
    ALWAYS,
    CapacityShortError,
    Deploy,
    Entry,
    keep,
    room,
)
from ultrascale.lambdas.block_calendar.reservation import Block, Reservation, find_on_demand

QUIET = INSIDE.replace(minute=30)
ODCR = replace(entry(window=ALWAYS), is_dated=False)


@dataclass
class Counting(Pool):
    """A static NodePool with a number of instances, and the size that the calendar gave it."""

    instances: int = 0
    own: int | None = None

    def running(self) -> int:
        return self.instances

    def given(self) -> int | None:
        return self.own

    def set_size(self, size: int, *, was: int) -> None:
        super().set_size(size, was=was)
        self.own = size


def free(count: int) -> Callable[[], Block]:
    return lambda: Block(state="active", starts=None, ends=None, available=count)


def upkeep(pool: Counting, available: int, *, of: Entry = ODCR, now: datetime = QUIET) -> str:
    return keep(of, now=now, deploy=None, block=free(available), target=pool)


@pytest.fixture(autouse=True)
def _no_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(_: float) -> None: ...

    monkeypatch.setattr(rooms, "_sleep", sleep)


@for_each(
    {
        "all at once": (0, 0, 16, 16),
        "as much as there is": (0, 0, 9, 9),
        "more as it comes": (9, 9, 4, 13),
        "without the host that died": (16, 15, 0, 15),
        "all again once it is back": (15, 15, 1, 16),
        "none where there is none": (0, 0, 0, 0),
    }
)
def test_it_asks_for_what_runs_and_what_is_free(
    current: int, instances: int, available: int, expected: int
) -> None:
    """For more, Karpenter makes NodeClaims without end, and no other pool gets nodes."""
    for reserved in (ODCR, entry()):
        pool = Counting(nodes=current, instances=instances, own=current)
        upkeep(pool, available, of=reserved)
        assert pool.nodes == expected


def test_a_size_that_somebody_else_set_stays() -> None:
    pool = Counting(nodes=8, instances=8, own=16)
    upkeep(pool, 8)
    assert pool.nodes == 8


def test_a_launch_under_way_takes_no_node_from_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """EC2 counts an instance seconds before its NodeClaim names it."""
    pool = Counting(nodes=16, instances=10, own=16)
    answers = iter([0, 0])

    def launched(_: float) -> None:
        pool.instances = 16

    monkeypatch.setattr(rooms, "_sleep", launched)
    found = room(
        pool, wanted=16, current=16, free=next(answers), again=lambda: free(next(answers))()
    )

    assert found == 16


def test_paid_slots_that_take_no_instance_raise_each_hour() -> None:
    pool = Counting(nodes=15, instances=15, own=15)
    with pytest.raises(CapacityShortError, match="15 of 16 nodes"):
        upkeep(pool, 0, now=QUIET.replace(minute=0))
    assert upkeep(pool, 0)


def test_a_deployment_gives_a_changed_pool_its_new_size() -> None:
    pool = Counting(nodes=8, instances=8, own=8)
    keep(ODCR, now=QUIET, deploy=Deploy(size_before=8), block=free(8), target=pool)
    assert pool.nodes == 16


def test_reservations_with_the_same_tags_add_up() -> None:
    def reservation(number: int, **changes: Any) -> dict[str, Any]:
        return {
            "CapacityReservationId": f"cr-{number}",
            "ReservationType": "default",
            "State": "active",
            "AvailableInstanceCount": 4,
        } | changes

    aws = FakeAws(
        answers={
            "ec2:DescribeCapacityReservations": {
                "CapacityReservations": [
                    reservation(1),
                    reservation(2),
                    reservation(3, State="cancelled"),
                    reservation(4, ReservationType="capacity-block"),
                ]
            }
        }
    )

    found = find_on_demand(aws.client("ec2"), Reservation(id=None, tags={"team": "core"}))

    assert (found.state, found.available) == ("active", 8)


def test_capacity_without_a_window_is_always_open() -> None:
    parsed = Entry.parse(
        {
            "Pool": "train",
            "Size": "16",
            "Reservation": {"Id": str(BY_ID.id)},
            "Target": {"Kind": "NodePool", "Name": "train", "Cluster": "research"},
        }
    )

    assert parsed == replace(ODCR, is_dated=False)
    assert parsed.has_work(datetime(2030, 1, 1, tzinfo=UTC))
