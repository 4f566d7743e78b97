"""Nodes that are slower than other nodes, by the time that they work in a step.

All nodes wait for the slowest, so their steps take the same time. Only work that waits for no other
node shows the difference: reading data, a forward pass without collectives, a probe.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ultrascale_training.progress import Progress
from ultrascale_training.vote import NodeTime, StopVote

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
        slow = {each.node: each for each in times if each.seconds > limit}
        self._slow = {node: self._slow.get(node, 0) + 1 for node in slow}
        return [
            Straggler(node=node, rank=each.rank, seconds=each.seconds, median=median)
            for node, each in slow.items()
            if self._slow[node] == self._reports
        ]
