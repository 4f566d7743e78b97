"""Published rate of failures of training nodes.

Meta trained Llama 3 405B on 16,384 H100 GPUs, eight to a node, and counted 419 unexpected
interruptions in 54 days. No other public figure states nodes, time and count together.

Source: https://arxiv.org/abs/2407.21783 (section 3.3.4, table 5)
"""

from ultrascale.frozen import Frozen


class FailureRecord(Frozen):
    """Failures of a fleet over a time."""

    interruptions: int  # Unexpected ends of the training job
    nodes: int  # Nodes that the job ran on
    days: int  # Time, in days
    source: str  # Page that states it

    @property
    def node_hours_between(self) -> float:
        """Node-hours between two failures."""
        return self.nodes * self.days * 24 / self.interruptions


PUBLISHED = FailureRecord(
    interruptions=419, nodes=16_384 // 8, days=54, source="https://arxiv.org/abs/2407.21783"
)
