"""Guard of a running block: a deployment must not put the next block in its place."""

from collections.abc import Callable
from datetime import datetime

from .decision import Phase
from .entry import Entry

_NEEDS_ITS_END = (Phase.OPEN, Phase.DRAINING)


class RunningBlockError(Exception):
    """A deployment would leave the nodes of a running block without a drain."""


def breaks_off(before: Entry, after: Entry, *, now: datetime) -> bool:
    """Return whether ``after`` replaces a running block, and is not running itself.

    A corrected window or an extended block keeps its id. Tags may find another block in another
    window.
    """
    same = before.reservation == after.reservation and after.reservation.id is not None
    return (
        not same
        and before.window.phase(now) in _NEEDS_ITS_END
        and after.window.phase(now) is not Phase.OPEN
    )


def let_pass(before: Entry, *, size: Callable[[], int], rolls_back: Callable[[], bool]) -> None:
    """Raise where nodes run on the block of ``before``, except in a rollback.

    Args:
        before: The previous entry.
        size: Returns the desired size of the pool.
        rolls_back: Returns whether the stack rolls back: a stopped rollback leaves a stack that
            nobody can deploy.

    Raises:
        RunningBlockError: Nodes run; the message says what to do.
        Exception: Any error of an API.
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
