"""Settings of the canary, from its schedule's input."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..events import CanaryInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the canary.

    Attributes:
        cluster: Name of the cluster.
        path: Path of the Lease.
        threshold_seconds: The longest duration of a good write.
        seconds: Duration of a run that no other run takes over.
        namespace: CloudWatch namespace.
        good: Metric of the number of good writes.
        total: Metric of the number of all writes.
        duration: Metric of their duration, in milliseconds.
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
        """Return the settings that ``event`` holds."""
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
