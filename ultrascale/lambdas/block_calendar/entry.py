"""One entry of the calendar, and what keeping it takes."""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from .decision import Phase, Window, decide
from .reservation import Reservation

_LAST_MINUTES = (Phase.DRAINING, Phase.RECLAIMED)


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
    def parse(cls, properties: Mapping[str, Any]) -> "Entry":
        """Return the entry in the properties of the custom resource, or the input of a schedule."""
        window = {
            key: datetime.fromisoformat(properties["Window"][name])
            for key, name in {
                "starts": "Starts",
                "usable_until": "UsableUntil",
                "reclaimed_from": "ReclaimedFrom",
                "ends": "Ends",
            }.items()
        }
        reservation = properties["Reservation"]
        return cls(
            pool=properties["Pool"],
            window=Window(**window),
            # CloudFormation makes text of every number.
            size=int(properties["Size"]),
            reservation=Reservation(
                id=reservation.get("Id"),
                tags={tag["Key"]: tag["Value"] for tag in reservation.get("Tags", ())},
            ),
        )


def keep(
    entry: Entry,
    *,
    now: datetime,
    deploy: Deploy | None,
    reservation_state: Callable[[], str],
    target: Target,
) -> str:
    """Give the pool the nodes that it shall have at ``now``, and return what was done and why.

    It can be repeated: what is done already is left alone, and the size is set last, so that a run
    that fails on the way leaves the whole to the next one.

    Args:
        entry: The pool.
        now: The moment.
        deploy: The deploy that calls; None for the schedule.
        reservation_state: Asks EC2 for the state of the reservation.
        target: What has the nodes.

    Raises:
        ReservationLostError: The window is open, and the reservation will never be active.
        Exception: Whatever an API answers. Nothing was set then.
    """
    window = entry.window
    phase = window.phase(now)
    if phase is Phase.AHEAD:
        return _log(entry, "left alone", phase.value)
    if phase in _LAST_MINUTES and target.emptied_by_eks and window.emptied_by_eks:
        return _log(entry, "left to EKS", phase.value)
    state = reservation_state() if phase is Phase.OPEN else None
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


def _log(entry: Entry, done: str, reason: str) -> str:
    return f"pool {entry.pool} {done}: {reason}"
