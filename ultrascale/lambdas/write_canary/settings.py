"""What the canary is told with each call."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..events import CanaryInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The canary as the cluster's plan has it.

    Attributes:
        cluster: Name of the cluster.
        path: Path of the Lease.
        threshold_seconds: A write that is answered within it is a good one.
        seconds: How long a run goes on where no other takes over.
        namespace: CloudWatch namespace.
        good: Metric that counts the good writes.
        total: Metric that counts all writes.
        duration: Metric of how long they took, in milliseconds.
    """

    cluster: str
    path: str
    threshold_seconds: float
    seconds: float
    namespace: str
    good: str
    total: str
    duration: str

    @classmethod
    def parse(cls, event: "CanaryInput") -> "Settings":
        """Return what ``event`` says."""
        metrics = event["Metrics"]
        return cls(
            cluster=event["Cluster"],
            path=event["Path"],
            threshold_seconds=event["ThresholdMilliseconds"] / 1000,
            seconds=event["Seconds"],
            namespace=event["Namespace"],
            good=metrics["Good"],
            total=metrics["Total"],
            duration=metrics["Duration"],
        )
