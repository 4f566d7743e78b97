"""Requests to stop: from a signal to a decision that all workers make at the same step."""

import signal
from types import FrameType

# EX_TEMPFAIL of sysexits.h. A run that stopped early must not look like a success: torchrun on the
# remaining nodes continues with fewer workers, and a job controller starts the job again.
STOPPED_EARLY = 75


class StopRequest:
    """Record of the signals SIGTERM and SIGUSR1.

    torchrun sends SIGTERM to its workers when the node stops, and when another node joins.
    """

    def __init__(self) -> None:
        self.requested = False
        for number in (signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
