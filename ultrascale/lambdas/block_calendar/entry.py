"""One entry of the calendar, and what keeping it takes."""

from collections.abc import Callable, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Protocol

from .decision import Phase, Window, decide
from .reservation import Block, Reservation

if TYPE_CHECKING:
    from ..events import CalendarProperties

_LAST_MINUTES = (Phase.DRAINING, Phase.RECLAIMED)
# EC2 may write a moment down a little later than the purchase says.
_ALIKE = timedelta(minutes=1)
# As many minutes as the alarm looks at: fewer would not raise it.
_EACH_HOUR_MINUTES = 5


class WindowError(Exception):
    """The window in the file is not the one that EC2 keeps."""


class Target(Protocol):
    """What has a number of nodes."""

    @property
    def emptied_by_eks(self) -> bool:
        """Whether EKS takes its nodes away by itself before most blocks end."""
        ...

    @property
    def filled_again(self) -> bool:
        """Whether it gets its nodes whenever it has none inside the window.

        Only such a target can wait for the reservation: to the others nobody returns later.
        """
        ...

    def size(self) -> int:
        """Return the nodes that it is set to."""
        ...

    def set_size(self, size: int, *, was: int) -> None:
        """Set its nodes."""
        ...

    def drain(self, message: str) -> None:
        """Prepare its nodes for their end, and warn whoever uses them."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Deploy:
    """A deploy, which asks for the pool's nodes wherever the window stands.

    Attributes:
        size_before: Size that the calendar had for the pool until now; None for a new pool.
    """

    size_before: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A pool on a Capacity Block.

    Attributes:
        pool: Name of the pool.
        window: When its capacity is there.
        size: Nodes that it has then.
        reservation: What holds the capacity.
    """

    pool: str
    window: Window
    size: int
    reservation: Reservation

    @classmethod
    def parse(cls, properties: "CalendarProperties") -> "Entry":
        """Return the entry in the properties of the custom resource, or the input of a schedule."""
        window = properties["Window"]
        reservation = properties["Reservation"]
        return cls(
            pool=properties["Pool"],
            window=Window(
                starts=datetime.fromisoformat(window["Starts"]),
                usable_until=datetime.fromisoformat(window["UsableUntil"]),
                reclaimed_from=datetime.fromisoformat(window["ReclaimedFrom"]),
                ends=datetime.fromisoformat(window["Ends"]),
            ),
            # CloudFormation makes text of every number.
            size=int(properties["Size"]),
            reservation=Reservation(
                id=reservation.get("Id"),
                tags={tag["Key"]: tag["Value"] for tag in reservation.get("Tags", ())},
            ),
        )

    def has_work(self, now: datetime) -> bool:
        """Return whether the schedule has anything to do at ``now``.

        Before the start it only compares the window, which each hour is often enough for.
        """
        if self.window.phase(now) is not Phase.AHEAD:
            return True
        return self._is_compared(now) and now.minute < _EACH_HOUR_MINUTES

    def difference(self, block: Callable[[], Block], *, now: datetime) -> str:
        """Return where the window is not that of ``block``, and what to do; empty if it is.

        A start matters until it has passed by both accounts, an end until it has.
        """
        if not self._is_compared(now):
            return ""
        found, window = block(), self.window
        wrong: list[str] = []
        if found.starts and now < max(found.starts, window.starts):
            wrong += _differ("starts", window.starts, found.starts)
        if found.ends:
            wrong += _differ("ends", window.ends, found.ends)
        if not wrong:
            return ""
        return f"{'; '.join(wrong)}: correct the file; purchase.extended is for a longer block"

    def _is_compared(self, now: datetime) -> bool:
        # Far from the window, tags may find the block before this one, or the one after.
        phase = self.window.phase(now)
        near = phase in (Phase.OPEN, Phase.DRAINING)
        return near or (self.reservation.id is not None and phase is not Phase.OVER)


def keep(
    entry: Entry,
    *,
    now: datetime,
    deploy: Deploy | None,
    block: Callable[[], Block],
    target: Target,
) -> str:
    """Give the pool the nodes that it shall have at ``now``, and return what was done and why.

    It can be repeated: what is done already is left alone, and the size is set last, so that a run
    that fails on the way leaves the whole to the next one.

    Args:
        entry: The pool.
        now: The moment.
        deploy: The deploy that calls; None for the schedule.
        block: Asks EC2 for the reservation.
        target: What has the nodes.

    Raises:
        ReservationLostError: The window is open, and the reservation will never be active.
        UnusedNodesError: The schedule finds a pool at 0 whose paid nodes nobody asks for.
        WindowError: The schedule finds another window than EC2 keeps. What the one in the file
            asks for was done.
        Exception: Whatever an API answers.
    """
    ask = cache(block)
    done = _keep(entry, now=now, deploy=deploy, block=ask, target=target)
    # A deploy asks EC2 no more than it must: the schedule follows.
    compared = deploy is None or entry.window.phase(now) is Phase.OPEN
    wrong = entry.difference(ask, now=now) if compared else ""
    if wrong and deploy is None:
        raise WindowError(f"{done}; {wrong}")
    return f"{done}; {wrong}" if wrong else done


def _keep(
    entry: Entry,
    *,
    now: datetime,
    deploy: Deploy | None,
    block: Callable[[], Block],
    target: Target,
) -> str:
    window = entry.window
    phase = window.phase(now)
    if phase is Phase.AHEAD:
        return _log(entry, "left alone", phase.value)
    if phase in _LAST_MINUTES and target.emptied_by_eks and window.emptied_by_eks:
        return _log(entry, "left to EKS", phase.value)
    state = block().state if phase is Phase.OPEN else None
    current = target.size()
    action = decide(
        now=now,
        window=window,
        reservation_state=state,
        waits=target.filled_again,
        size=entry.size,
        own=_own_sizes(deploy, empty=target.filled_again or window.begins(now)),
        current=current,
    )
    if action.drain:
        target.drain(warning(entry))
    if action.size is None:
        return _log(entry, "left alone", action.reason)
    target.set_size(action.size, was=current)
    return _log(entry, f"set from {current} to {action.size} nodes", action.reason)


def _own_sizes(deploy: Deploy | None, *, empty: bool) -> Set[int]:
    """Return the sizes that nobody but the calendar has set.

    Args:
        deploy: The deploy that calls; None for the schedule.
        empty: Whether 0 is among them when the schedule calls.
    """
    if deploy is None:
        return {0} if empty else set()
    return {0} if deploy.size_before is None else {0, deploy.size_before}


def warning(entry: Entry) -> str:
    """Return what the users of the pool's nodes are told at the end."""
    return (
        f"the Capacity Block of pool {entry.pool} ends: its nodes are drained now, and EC2 "
        f"terminates them from {entry.window.reclaimed_from:%Y-%m-%d %H:%M} UTC on"
    )


def _differ(what: str, said: datetime, found: datetime) -> list[str]:
    if abs(found - said) <= _ALIKE:
        return []
    return [f"the file has purchase.{what} {said:%Y-%m-%d %H:%M}Z, EC2 {found:%Y-%m-%d %H:%M}Z"]


def _log(entry: Entry, done: str, reason: str) -> str:
    return f"pool {entry.pool} {done}: {reason}"
