"""Settings of the canary, from its schedule's input."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..events import CanaryInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the canary."""

    cluster: str  # Name of the cluster
    path: str  # Path of the Lease
    threshold_seconds: float  # The longest duration of a good write
    seconds: float  # Duration of a run that no other run takes over
    namespace: str  # CloudWatch namespace
    good: str  # Metric of the number of good writes
    total: str  # Metric of the number of all writes
    duration: str  # Metric of their duration, in milliseconds

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
