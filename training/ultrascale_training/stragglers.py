"""Nodes that are slower than other nodes, by the time that they work in a step.

All nodes wait for the slowest, so their steps take the same time. Only work that waits for no other
node shows the difference: reading data, a forward pass without collectives, a probe.
"""

import statistics
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from ultrascale_training.progress import Progress
from ultrascale_training.vote import REPORT_EVERY, NodeTime, StopVote

# Hosts that held up a job on 12,288 GPUs were about a tenth slower than the others.
# Source: https://arxiv.org/abs/2402.15627 (computational stragglers)
RATIO = 1.1
# Limit of noise, in median distances from the median: three standard deviations of normal noise.
_DISTANCES = 4.5
# Slow reports after which a node counts as slow: a single pause is no fault.
REPORTS = 3


@dataclass(frozen=True, kw_only=True)
class Straggler:
    """A slow node."""

    node: int  # Its number
    rank: int  # Its slowest worker
    seconds: float  # That worker's work in a step
    median: float  # Median of this time over all nodes


class Stragglers:
    """Judge of the reports of a run.

    Args:
        ratio: A node is slow if its time exceeds the median by this factor, and the noise.
        reports: Slow reports in a row after which the node is reported.
    """

    def __init__(self, *, ratio: float = RATIO, reports: int = REPORTS) -> None:
        self._ratio = ratio
        self._reports = reports
        self._slow: dict[int, int] = {}

    def report(self, vote: StopVote, progress: Progress | None, step: int) -> None:
        """Report the nodes that have become slow, by a line on stdout and a line of JSON.

        Args:
            vote: Vote that has collected the times.
            progress: Progress, on the first worker; None on other workers, which report nothing.
            step: The number of steps done.
        """
        if progress is None:
            return
        for slow in self.judge(vote.take_times()):
            node, ratio = vote.name_of(slow.node), slow.seconds / slow.median
            print(
                f"straggler step={step} node={node} rank={slow.rank} seconds={slow.seconds:.4g} "
                f"median={slow.median:.4g} ratio={ratio:.2f}",
                flush=True,
            )
            progress.event(
                "straggler",
                **{"step": step, "node": node, "rank": slow.rank},
                **{"seconds": slow.seconds, "median": slow.median},
            )

    def judge(self, times: Sequence[NodeTime]) -> list[Straggler]:
        """Return the nodes that have become slow with these times; each is returned only once."""
        if len(times) < 2:
            return []
        # Of two nodes, the faster node is the standard.
        median = max(statistics.median_low([each.seconds for each in times]), 1e-9)
        distance = statistics.median_low([abs(each.seconds - median) for each in times])
        limit = max(self._ratio * median, median + _DISTANCES * distance)
        slow = {time.node: time for time in times if time.seconds > limit}
        self._slow = {node: self._slow.get(node, 0) + 1 for node in slow}
        return [
            Straggler(node=node, rank=each.rank, seconds=each.seconds, median=median)
            for node, each in slow.items()
            if self._slow[node] == self._reports
        ]


# --- Time in which a worker's device works without waiting for other workers ----------------------
# In a sharded model each forward pass waits for other workers, so products of two matrices are
# timed now and then. Both times show a slow, throttled or shared device.


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
