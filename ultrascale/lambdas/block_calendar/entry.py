"""An entry of the calendar, and the actions that enforce it."""

import time
from collections.abc import Callable, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from .decision import ACTIVE, Phase, Window, decide
from .reservation import Block, Reservation
from .scheduled_end import EndedByEks, refuse_early

if TYPE_CHECKING:
    from ..events import CalendarProperties


_LAST_MINUTES = (Phase.DRAINING, Phase.RECLAIMED)
# EC2 may record a time a little later than the purchase states.
_ALIKE = timedelta(minutes=1)
# Minutes over which the alarm counts: errors in fewer minutes would not raise it.
_EACH_HOUR_MINUTES = 5


# EKS's action runs on the minute.
_EKS_IS_LATE = timedelta(minutes=5)
ALWAYS = Window(
    starts=datetime.min.replace(tzinfo=UTC),
    usable_until=datetime.max.replace(tzinfo=UTC),
    reclaimed_from=datetime.max.replace(tzinfo=UTC),
    ends=datetime.max.replace(tzinfo=UTC),
)
"""Window for capacity that has no window."""


class WindowError(Exception):
    """Error: the window in the file differs from EC2's window."""


class Target(Protocol):
    """A node group or NodePool whose size the calendar can set."""

    @property
    def emptied_by_eks(self) -> bool:
        """Whether EKS drains the target's nodes by itself before most blocks end."""
        ...

    @property
    def filled_again(self) -> bool:
        """Whether the calendar sets the target's size whenever it has no nodes inside the window.

        Only such a target can wait for the reservation: the calendar sets other targets once.
        """
        ...

    def size(self) -> int:
        """Return the desired number of nodes."""
        ...

    def set_size(self, size: int, *, was: int) -> None:
        """Set the desired number of nodes to ``size``; ``was`` is the number read before."""
        ...

    def drain(self, message: str) -> None:
        """Prepare the nodes for their end, and warn their users with ``message``."""
        ...


# --- Nodes that a static NodePool can have now: running ones, and free ones of the reservation ----
# A static NodePool launches `replicas` nodes without looking at its reservation. If that has fewer,
# Karpenter creates and deletes NodeClaims without end, and provisions no other pool meanwhile.
#
# Source: https://github.com/kubernetes-sigs/karpenter/issues/3198


# A launch takes an instance of the reservation some seconds before its NodeClaim names it.
_SECONDS_OF_A_LAUNCH = 20


class CapacityShortError(Exception):
    """Error: the reservation has fewer instances than the pool's desired size."""


@runtime_checkable
class Counted(Protocol):
    """A target that launches nodes whatever its reservation holds, and counts its running nodes."""

    def running(self) -> int:
        """Return the number of nodes that have an instance and are not ending."""
        ...

    def given(self) -> int | None:
        """Return the size that the calendar gave it last; None where it gave none."""
        ...


def room(
    target: Counted,
    *,
    wanted: int,
    current: int,
    free: int | None,
    again: Callable[[], Block],
) -> int:
    """Return the number of nodes that ``target`` can have now, at most ``wanted``.

    A single answer of EC2 never lowers the number: a launch takes an instance before it is counted.

    Args:
        target: The NodePool.
        wanted: Nodes that it is to have.
        current: Nodes that it asks for now.
        free: Instances that its reservation still takes, read just before; None where EC2 does not
            say.
        again: Asks EC2 for the reservation again.
    """
    found = _look(target, wanted, free)
    if found < min(current, wanted):
        _sleep(_SECONDS_OF_A_LAUNCH)
        found = max(found, _look(target, wanted, again().available))
    return found


def _sleep(seconds: float) -> None:
    time.sleep(seconds)


def _look(target: Counted, wanted: int, free: int | None) -> int:
    # EC2 is asked first: a launch between the two requests then counts twice instead of never.
    return wanted if free is None else min(wanted, target.running() + free)


# --- The entry, and what is done for it -----------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Deploy:
    """A deployment: it sets the pool's size once, for the whole window."""

    size_before: int | None  # The calendar's previous size of the pool; None for a new pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A pool on reserved capacity."""

    pool: str  # Name of the pool
    window: Window  # Window of its capacity
    size: int  # Nodes inside the window
    reservation: Reservation  # Reservation of the capacity
    # Whether the capacity has a window; an On-Demand Capacity Reservation has none
    is_dated: bool = True

    @classmethod
    def parse(cls, properties: "CalendarProperties") -> "Entry":
        """Return the entry in the properties of the custom resource, or the input of a schedule."""
        window = properties.get("Window")
        reservation = properties["Reservation"]
        return cls(
            pool=properties["Pool"],
            window=ALWAYS
            if window is None
            else Window(
                starts=datetime.fromisoformat(window["Starts"]),
                usable_until=datetime.fromisoformat(window["UsableUntil"]),
                reclaimed_from=datetime.fromisoformat(window["ReclaimedFrom"]),
                ends=datetime.fromisoformat(window["Ends"]),
            ),
            is_dated=window is not None,
            # CloudFormation turns every number into text.
            size=int(properties["Size"]),
            reservation=Reservation(
                id=reservation.get("Id"),
                tags={tag["Key"]: tag["Value"] for tag in reservation.get("Tags", ())},
            ),
        )

    def has_work(self, now: datetime) -> bool:
        """Return whether the schedule has anything to do at ``now``.

        Before the start it only compares the window, once an hour.
        """
        if self.window.phase(now) is not Phase.AHEAD:
            return True
        return self._is_compared(now) and now.minute < _EACH_HOUR_MINUTES

    def difference(self, block: Callable[[], Block], *, now: datetime) -> str:
        """Return how the window differs from ``block``, with the step to take; empty if equal.

        A start is compared until both starts have passed, an end until that end has passed.
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
        # Far from the window, tags may find the previous or the next block.
        if not self.is_dated:
            return False
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
    """Give the pool its nodes at ``now``, and return a line for the log.

    It can be repeated: it skips finished steps, and sets the size last, so that the next run
    repeats a failed run.

    Args:
        entry: The pool.
        now: The moment.
        deploy: The deployment that calls; None for the schedule.
        block: Asks EC2 for the reservation.
        target: The node group or NodePool.

    Raises:
        ReservationLostError: The window is open, and the reservation will never be active.
        UnusedNodesError: The schedule finds a pool at 0 whose nodes are paid for.
        EarlyEndError: EKS will empty the group within a day, before its block ends.
        CapacityShortError: The reservation takes fewer instances than the pool is to have.
        WindowError: The schedule finds another window in EC2. It has carried out the file's window.
        Exception: Any error of an API.
    """
    ask = cache(block)
    done = _keep(entry, now=now, deploy=deploy, block=ask, target=target, again=block)
    # A deployment asks EC2 as little as possible: the schedule follows.
    compared = deploy is None or entry.window.phase(now) is Phase.OPEN
    wrong = entry.difference(ask, now=now) if compared else ""
    if wrong and deploy is None:
        raise WindowError(f"{done}; {wrong}")
    if deploy is None and now.minute < _EACH_HOUR_MINUTES:
        _alarm_each_hour(entry, now=now, block=ask, target=target)
    return f"{done}; {wrong}" if wrong else done


def _alarm_each_hour(
    entry: Entry, *, now: datetime, block: Callable[[], Block], target: Target
) -> None:
    """Raise an error if EKS or EC2 keeps the pool from nodes that are paid for.

    Raises:
        EarlyEndError: EKS will empty the group within a day, before its block ends.
        CapacityShortError: The reservation takes fewer instances than the pool is to have.
    """
    if entry.window.phase(now) is not Phase.OPEN:
        return
    if isinstance(target, EndedByEks) and target.emptied_by_eks:
        refuse_early(target.scheduled_end(), entry.window, now=now)
    if isinstance(target, Counted):
        current, given = target.size(), target.given()
        if current == given and current < entry.size and block().state == ACTIVE:
            raise CapacityShortError(
                f"pool {entry.pool} has {current} of {entry.size} nodes: EC2 gives no more of its "
                "reservation. Paid slots stand unused; see which instances run in it, and open a "
                "support case for a host that is broken"
            )


def _keep(
    entry: Entry,
    *,
    now: datetime,
    deploy: Deploy | None,
    block: Callable[[], Block],
    target: Target,
    again: Callable[[], Block],
) -> str:
    window = entry.window
    phase = window.phase(now)
    if phase is Phase.AHEAD:
        return _log_line(entry, "left alone", phase.value)
    if (
        phase in _LAST_MINUTES
        and target.emptied_by_eks
        and window.emptied_by_eks
        and (now < window.usable_until + _EKS_IS_LATE or not isinstance(target, EndedByEks))
    ):
        return _log_line(entry, "left to EKS", phase.value)
    state = block().state if phase is Phase.OPEN else None
    current = target.size()
    fills = deploy is not None or _fills(target, window, now, current)
    size, own = entry.size, {*_own_sizes(deploy, empty=fills)}
    if phase is Phase.OPEN and isinstance(target, Counted):
        given = target.given()
        own |= {entry.size} if given is None else {entry.size, given}
        if current in own and state == ACTIVE:
            free = block().available
            size = room(target, wanted=size, current=current, free=free, again=again)
    action = decide(
        now=now,
        window=window,
        reservation_state=state,
        waits=target.filled_again,
        size=size,
        own=own,
        current=current,
    )
    if action.drain:
        target.drain(warning(entry))
    if action.size is None:
        return _log_line(entry, "left alone", action.reason)
    target.set_size(action.size, was=current)
    return _log_line(entry, f"set from {current} to {action.size} nodes", action.reason)


def _fills(target: Target, window: Window, now: datetime, current: int) -> bool:
    """Return whether the calendar fills a pool that has no nodes inside its window."""
    if target.filled_again or window.begins(now):
        return True
    # EKS emptied this group at the old end of a block that was extended.
    is_open = current == 0 and window.phase(now) is Phase.OPEN
    return is_open and isinstance(target, EndedByEks) and target.scheduled_end().fired


def _own_sizes(deploy: Deploy | None, *, empty: bool) -> Set[int]:
    """Return the sizes that the calendar sets and no user does.

    Args:
        deploy: The deployment that calls; None for the schedule.
        empty: Whether 0 is one of them when the schedule calls.
    """
    if deploy is None:
        return {0} if empty else set()
    return {0} if deploy.size_before is None else {0, deploy.size_before}


def warning(entry: Entry) -> str:
    """Return the text that warns users of the pool's nodes about the end."""
    return (
        f"the Capacity Block of pool {entry.pool} ends: its nodes are drained now, and EC2 "
        f"terminates them from {entry.window.reclaimed_from:%Y-%m-%d %H:%M} UTC on"
    )


def _differ(what: str, of_file: datetime, of_ec2: datetime) -> list[str]:
    if abs(of_ec2 - of_file) <= _ALIKE:
        return []
    return [f"the file has purchase.{what} {of_file:%Y-%m-%d %H:%M}Z, EC2 {of_ec2:%Y-%m-%d %H:%M}Z"]


def _log_line(entry: Entry, done: str, reason: str) -> str:
    return f"pool {entry.pool} {done}: {reason}"
