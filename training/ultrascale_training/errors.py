"""Errors that a user can solve, and errors that follow from another worker's failure."""

import errno

_FULL = (errno.ENOSPC, errno.EDQUOT)


class TrainingError(Exception):
    """A mistake in arguments, data or set-up; each line of the message says what to change."""


class OutsideError(TrainingError):
    """Error outside the run, such as a lost mount or device; a later start may work."""


class VoteLost(RuntimeError):  # noqa: N818 - it says what happened: a worker was lost
    """Another worker has gone, or does not answer; this worker cannot go on without it.

    Args:
        told: Message of the error.
        rank: Worker whose connection to this one has ended; None if another worker reported it.
        node: That worker's node.
    """

    def __init__(self, told: str, *, rank: int | None = None, node: str | None = None) -> None:
        super().__init__(told)
        self.rank, self.node = rank, node


def full_disk(error: BaseException) -> TrainingError | None:
    """Return the remedy for a full disk or quota; None for other errors."""
    if not isinstance(error, OSError) or error.errno not in _FULL:
        return None
    what = repr(error.filename) if error.filename else "a file"
    return TrainingError(
        f"the disk is full: {what} could not be written ({error.strerror}); free some room, "
        "enlarge it, or lower --keep. The checkpoints before are complete"
    )
