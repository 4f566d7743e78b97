"""The wish to stop, from a signal to a decision that all workers take at the same step."""

import signal
from types import FrameType

# EX_TEMPFAIL of sysexits.h. A run that stopped early must not look like success: torchrun on the
# nodes that stay forms a smaller world, and a job controller starts the job again.
STOPPED_EARLY = 75


class StopRequest:
    """Notes SIGTERM and SIGUSR1.

    torchrun sends SIGTERM to its workers when the node stops, and also when another node joins.
    """

    def __init__(self) -> None:
        self.requested = False
        for number in (signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
