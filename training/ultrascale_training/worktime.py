"""Time in which a worker's device works without waiting for other workers.

In a sharded model each forward pass waits for other workers, so products of two matrices are timed
now and then. Both times show a slow, throttled or shared device.
"""

from collections import deque
from collections.abc import Generator
from contextlib import contextmanager

import torch

from ultrascale_training.vote import REPORT_EVERY, StopVote

# Rows of the probe's square matrices, and number of its products: about a millisecond on a CPU core
# and on a large GPU.
_ROWS = {"cpu": 256, "cuda": 4096}
_PRODUCTS = {"cpu": 1, "cuda": 5}


class WorkClock:
    """Clock that gives the vote the time of this worker's own work.

    Args:
        vote: Takes the time, in seconds.
        device: Device of this worker; work of a GPU is timed on the GPU, without waiting for it.
    """

    def __init__(self, vote: StopVote, device: torch.device) -> None:
        self._vote = vote
        self._device = device
        self._events: deque[tuple[torch.cuda.Event, torch.cuda.Event]] = deque()
        self._matrix: torch.Tensor | None = None

    @contextmanager
    def working(self) -> Generator[None]:
        """Measure work in which this worker waits for no other worker."""
        if self._device.type != "cuda":
            with self._vote.working():
                yield
            return
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        with self._vote.working(timed=False):
            yield
        end.record()
        self._events.append((begin, end))
        while self._events and self._events[0][1].query():
            first, last = self._events.popleft()
            self._vote.add(first.elapsed_time(last) / 1000)

    def probe(self, step: int) -> None:
        """Time a product of matrices, once in each report of the vote."""
        rows = _ROWS.get(self._device.type)
        if rows is None or step % REPORT_EVERY:
            return
        if self._matrix is None:
            kind = torch.bfloat16 if self._device.type == "cuda" else torch.float32
            # The run's own random numbers are not used. Zeros would need so little power that a hot
            # GPU would not slow down.
            source = torch.Generator(self._device).manual_seed(0)
            empty = torch.empty(rows, rows, dtype=kind, device=self._device)
            self._matrix = empty.normal_(generator=source)
        with self.working(), torch.no_grad():
            for _ in range(_PRODUCTS[self._device.type]):
                torch.mm(self._matrix, self._matrix)
