"""A pool on a Capacity Block, and a clock that stands where the test puts it."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from ultrascale.lambdas.block_calendar.decision import Window
from ultrascale.lambdas.block_calendar.entry import Deploy, Entry, keep
from ultrascale.lambdas.block_calendar.reservation import Block, Reservation

SIZE = 16
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
STARTS = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
ENDS = datetime(2026, 12, 8, 11, 30, tzinfo=UTC)
WINDOW = Window(
    starts=STARTS, usable_until=ENDS - 40 * MINUTE, reclaimed_from=ENDS - 30 * MINUTE, ends=ENDS
)
ULTRASERVER = Window(
    starts=STARTS, usable_until=ENDS - 70 * MINUTE, reclaimed_from=ENDS - 60 * MINUTE, ends=ENDS
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
    "just before the end": ENDS - MINUTE,
    "at the end": ENDS,
    "a year after the start": STARTS + timedelta(days=365),
}
OPEN = ("at the start", "inside", "just before the usable end")
DRAINING = ("at the usable end", "just before the reclaim")
RECLAIMED = ("at the reclaim", "just before the end")
OVER = ("at the end", "a year after the start")
NOT_YET = ("pending", "scheduled", "payment-pending", "assessing", "delayed", "unavailable")
LOST = ("expired", "cancelled", "failed", "payment-failed")
FIRST_DEPLOY = Deploy(size_before=None)


class ApiError(Exception):
    """Error of an API that is down."""


@dataclass
class Pool:
    """A target that remembers what happened to it, and whose APIs can be down."""

    nodes: int
    emptied_by_eks: bool = False
    filled_again: bool = True
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


def node_group(nodes: int, *, emptied_by_eks: bool = False, down: str | None = None) -> Pool:
    return Pool(nodes=nodes, emptied_by_eks=emptied_by_eks, filled_again=False, down=down)


BY_ID = Reservation(id="cr-0123456789abcdef0", tags={})
BY_TAGS = Reservation(id=None, tags={"team": "core"})


def entry(window: Window = WINDOW, size: int = SIZE, *, reservation: Reservation = BY_ID) -> Entry:
    return Entry(pool="train", window=window, size=size, reservation=reservation)


def run(
    pool: Pool,
    now: datetime,
    state: str = "active",
    *,
    deploy: Deploy | None = None,
    window: Window = WINDOW,
    size: int = SIZE,
    starts: datetime | None = None,
    ends: datetime | None = None,
    reservation: Reservation = BY_ID,
) -> str:
    """Keep the calendar of ``pool`` once, by the schedule or by ``deploy``.

    EC2 has the window of the file, unless ``starts`` or ``ends`` are other.
    """

    def block() -> Block:
        pool.calls.append("reservation")
        return Block(state=state, starts=starts or window.starts, ends=ends or window.ends)

    return keep(
        entry(window, size, reservation=reservation),
        now=now,
        deploy=deploy,
        block=block,
        target=pool,
    )
