"""What no deploy may do to a block that runs: put the next one in its place."""

from collections.abc import Callable
from datetime import datetime

from .decision import Phase
from .entry import Entry

_NEEDS_ITS_END = (Phase.OPEN, Phase.DRAINING)


class RunningBlockError(Exception):
    """A deploy would leave the nodes of a block that runs without their end."""


def breaks_off(before: Entry, after: Entry, *, now: datetime) -> bool:
    """Return whether ``after`` takes the place of a block that runs, and is none itself.

    A window that is corrected, or a block that is extended, keeps its id. Tags may find another
    block in another window.
    """
    same = before.reservation == after.reservation and after.reservation.id is not None
    return (
        not same
        and before.window.phase(now) in _NEEDS_ITS_END
        and after.window.phase(now) is not Phase.OPEN
    )


def let_pass(before: Entry, *, size: Callable[[], int], rolls_back: Callable[[], bool]) -> None:
    """Return only where the block of ``before`` may go: no node runs, or a stack rolls back.

    Args:
        before: What the calendar has kept until now.
        size: Asks for the nodes that the pool is set to.
        rolls_back: Asks whether CloudFormation takes back what it did: a rollback that is stopped
            leaves a stack that nobody can deploy.

    Raises:
        RunningBlockError: It may not; it says what to do.
        Exception: Whatever an API answers.
    """
    nodes = size()
    if nodes == 0 or rolls_back():
        return
    ends = f"{before.window.ends:%Y-%m-%d %H:%M}Z"
    raise RunningBlockError(
        f"{nodes} nodes run on the Capacity Block that the file no longer names, and nobody would "
        f"drain them before it ends at {ends}. Add a second pool for the next block, or deploy "
        f"this change after {ends}; a pool at 0 nodes may change its block at any time"
    )
