"""One entry of the calendar, and what keeping it takes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from .decision import Phase, Window, decide
from .reservation import Reservation


class Target(Protocol):
    """What has a number of nodes."""

    @property
    def scales_in(self) -> bool:
        """Whether the calendar takes its nodes away."""
        ...

    @property
    def waits(self) -> bool:
        """Whether it gets its nodes only once the reservation is active."""
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
    entry: Entry, *, now: datetime, reservation_state: Callable[[], str], target: Target
) -> str:
    """Give the pool the nodes that it shall have at ``now``, and return what was done and why.

    It can be repeated: what is done already is left alone, and the size is set last, so that a run
    that fails on the way leaves the whole to the next one.

    Args:
        entry: The pool.
        now: The moment.
        reservation_state: Asks EC2 for the state of the reservation.
        target: What has the nodes.

    Raises:
        ReservationLostError: The window is open, and the reservation will never be active.
        Exception: Whatever an API answers. Nothing was set then.
    """
    phase = entry.window.phase(now)
    if phase is Phase.AHEAD:
        return _log(entry, "left alone", phase.value)
    if phase is not Phase.OPEN and not target.scales_in:
        return _log(entry, "left to EKS", phase.value)
    state = reservation_state() if phase is Phase.OPEN else None
    current = target.size()
    action = decide(
        now=now,
        window=entry.window,
        reservation_state=state,
        waits=target.waits,
        size=entry.size,
        current=current,
    )
    if action.drain:
        target.drain(warning(entry))
    if action.size is None:
        return _log(entry, "left alone", action.reason)
    target.set_size(action.size, was=current)
    return _log(entry, f"set from {current} to {action.size} nodes", action.reason)


def warning(entry: Entry) -> str:
    """Return what the users of the pool's nodes are told at the end."""
    return (
        f"the Capacity Block of pool {entry.pool} ends: its nodes are drained now, and EC2 "
        f"terminates them from {entry.window.reclaimed_from:%Y-%m-%d %H:%M} UTC on"
    )


def _log(entry: Entry, done: str, reason: str) -> str:
    return f"pool {entry.pool} {done}: {reason}"
