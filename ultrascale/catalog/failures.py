"""Published rate of failures of training nodes.

Meta trained Llama 3 405B on 16,384 H100 GPUs, eight to a node, and counted 419 unexpected
interruptions in 54 days. No other public figure states nodes, time and count together.

Source: https://arxiv.org/abs/2407.21783 (section 3.3.4, table 5)
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRecord:
    """Failures of a fleet over a time.

    Attributes:
        interruptions: Unexpected ends of the job.
        nodes: Nodes that it ran on.
        days: Time, in days.
        source: Where that is written.
    """

    interruptions: int
    nodes: int
    days: int
    source: str

    @property
    def node_hours_between(self) -> float:
        """Node-hours between two failures."""
        return self.nodes * self.days * 24 / self.interruptions


PUBLISHED = FailureRecord(
    interruptions=419, nodes=16_384 // 8, days=54, source="https://arxiv.org/abs/2407.21783"
)
