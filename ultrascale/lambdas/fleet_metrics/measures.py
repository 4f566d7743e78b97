"""Measures by dimension, and the log events that CloudWatch makes metrics of."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .settings import Settings

if TYPE_CHECKING:
    from ..events import LogEvent

CLUSTER = "Cluster"
NODE_TYPE = "NodeType"
CAPACITY = "Capacity"
TEAM = "Team"
QUEUE = "Queue"

# The dimension beside the cluster and its value; neither for the cluster as a whole.
Key = tuple[str, str] | None


@dataclass
class Measures:
    """Numbers, each for the cluster as a whole or for one value of one dimension."""

    _values: dict[Key, dict[str, float]] = field(default_factory=dict[Key, dict[str, float]])

    def add(self, measure: str, amount: float, *keys: Key) -> None:
        """Add ``amount`` to ``measure`` for each of ``keys``; an amount of 0 makes it known."""
        for key in keys:
            values = self._values.setdefault(key, {})
            values[measure] = values.get(measure, 0) + amount

    def get(self, measure: str, key: Key = None) -> float | None:
        """Return ``measure`` for ``key``; None where nothing is known of it."""
        return self._values.get(key, {}).get(measure)

    def items(self) -> Iterator[tuple[Key, Mapping[str, float]]]:
        """Yield what is known, by key."""
        yield from self._values.items()


def log_events(measures: Measures, settings: Settings, *, now: float) -> "Iterator[LogEvent]":
    """Yield one log event in the embedded metric format for each key.

    Args:
        measures: What was measured.
        settings: What the metrics are called.
        now: The moment, in seconds since 1970.

    Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
    """
    for key, values in measures.items():
        dimensions = {CLUSTER: settings.cluster, **dict([key] if key else [])}
        named = {settings.metrics[measure]: value for measure, value in values.items()}
        yield {
            "_aws": {
                "Timestamp": math.floor(now * 1000),
                "CloudWatchMetrics": [
                    {
                        "Namespace": settings.namespace,
                        "Dimensions": [[*dimensions]],
                        "Metrics": [{"Name": name, "Unit": unit} for name, unit in named],
                    }
                ],
            },
            **dimensions,
            **{name: value for (name, _), value in named.items()},
        }
