"""Decision on the nodes of a Capacity Block pool: request, keep or return them."""

from collections.abc import Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

ACTIVE = "active"
"""State of a reservation in which instances can be launched into it."""
# Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CapacityReservation.html
LOST = frozenset({"cancelled", "expired", "failed", "payment-failed"})
"""Final states of a reservation, which never holds capacity again."""

# Time before a block's end at which EKS drains a managed node group.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/capacity-blocks-mng.html
EKS_BEFORE_END = timedelta(minutes=40)
# Long enough for failures around the start. EKS wants a block's group at 0 during an upgrade, so a
# 0 that somebody sets later must stay.
_AT_THE_START = timedelta(hours=1)


class ReservationLostError(Exception):
    """Error: the reservation that the file relies on will never hold capacity (again)."""


class UnusedNodesError(Exception):
    """Error: the nodes are paid for, but nobody has requested them."""


class Phase(Enum):
    """Phase of a window."""

    AHEAD = "before the start"
    OPEN = "the nodes can be used"
    DRAINING = "the nodes are emptied before EC2 takes them"
    RECLAIMED = "EC2 takes the nodes"
    OVER = "the block is over"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Window of a Capacity Block, in UTC."""

    starts: datetime  # Start of the block
    usable_until: datetime  # Start of the drain of its nodes
    reclaimed_from: datetime  # Start of EC2's termination of its instances
    ends: datetime  # End of the block

    def phase(self, now: datetime) -> Phase:
        """Return the phase of the window at ``now``."""
        if now < self.starts:
            return Phase.AHEAD
        if now < self.usable_until:
            return Phase.OPEN
        if now < self.reclaimed_from:
            return Phase.DRAINING
        return Phase.RECLAIMED if now < self.ends else Phase.OVER

    def begins(self, now: datetime) -> bool:
        """Return whether ``now`` is in the first hour of the window."""
        return self.starts <= now < self.starts + _AT_THE_START

    @property
    def emptied_by_eks(self) -> bool:
        """Return whether EKS drains a managed group in time: for UltraServers it is too late."""
        return self.usable_until >= self.ends - EKS_BEFORE_END


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Action on a pool."""

    size: int | None  # New number of nodes; None leaves it alone
    drain: bool = False  # Whether its nodes are cordoned and their pods warned first
    reason: str  # Reason, for the log


def decide(
    *,
    now: datetime,
    window: Window,
    reservation_state: str | None,
    waits: bool,
    size: int,
    own: Set[int],
    current: int,
) -> Action:
    """Return the action on a pool that has ``current`` nodes.

    Inside the window, a size that somebody else has set stays.

    Args:
        now: The moment.
        window: The window.
        reservation_state: EC2's state of the reservation; None outside the open window, where it
            does not matter.
        waits: Whether the pool gets its nodes only once the reservation is active.
        size: Nodes of the pool inside the window.
        own: Sizes that only the calendar sets.
        current: Desired nodes of the pool now.

    Raises:
        ReservationLostError: The window is open, and the reservation will never be active.
        UnusedNodesError: The reservation is active, and somebody has set the pool to 0.
    """
    match window.phase(now):
        case Phase.AHEAD:
            return Action(size=None, reason=f"the block starts at {window.starts:%Y-%m-%d %H:%M}Z")
        case Phase.OPEN:
            return _action_in_window(
                reservation_state, waits=waits, size=size, own=own, current=current
            )
        case phase if current > 0:
            # Once EC2 takes the nodes back, a failed warning must not stop the remaining steps.
            return Action(size=0, drain=phase is Phase.DRAINING, reason=phase.value)
        case _:
            return Action(size=None, reason="it has no nodes")


def _action_in_window(
    state: str | None, *, waits: bool, size: int, own: Set[int], current: int
) -> Action:
    if state in LOST:
        raise ReservationLostError(
            f"the reservation is {state} although its window is open; put the block that you have "
            "into the cluster file"
        )
    if waits and state != ACTIVE:
        return Action(size=None, reason=f"waits for the reservation, which is {state}")
    if current == size:
        return Action(size=None, reason=f"has its {current} nodes already")
    if current not in own:
        if current == 0 and state == ACTIVE:
            raise UnusedNodesError(
                f"it is set to 0 nodes while its reservation is active: {size} paid nodes stand "
                f"unused until somebody sets it to {size} again"
            )
        return Action(size=None, reason=f"somebody has set it to {current} nodes")
    return Action(size=size, reason=f"the reservation is {state}")
