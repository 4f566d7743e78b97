"""Measures by dimension, their log events for CloudWatch, and amounts of resources."""

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
POOL = "Pool"
REASON = "Reason"
SERVICE = "Service"

# A dimension beside the cluster, with its value; None for the whole cluster.
Key = tuple[str, str] | None


@dataclass
class Measures:
    """Sums, each for the whole cluster or for one value of one dimension."""

    _values: dict[Key, dict[str, float]] = field(default_factory=dict[Key, dict[str, float]])

    def add(self, measure: str, amount: float, *keys: Key) -> None:
        """Add ``amount`` to ``measure`` for each of ``keys``; adding 0 makes the measure known."""
        for key in keys:
            values = self._values.setdefault(key, {})
            values[measure] = values.get(measure, 0) + amount

    def get(self, measure: str, key: Key = None) -> float | None:
        """Return ``measure`` for ``key``; None if it is not known."""
        return self._values.get(key, {}).get(measure)

    def items(self) -> Iterator[tuple[Key, Mapping[str, float]]]:
        """Yield the known measures by key."""
        yield from self._values.items()


def log_events(measures: Measures, settings: Settings, *, now: float) -> "Iterator[LogEvent]":
    """Yield one log event in the embedded metric format for each key.

    Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
    """
    for key, values in measures.items():
        dimensions = {CLUSTER: settings.cluster, **dict([key] if key else [])}
        named = {tuple(settings.metrics[measure]): value for measure, value in values.items()}
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


# --- Amounts of extended resources, as Kubernetes writes them -------------------------------------


# Extended resources are whole numbers, which Kubernetes may still write as 16k or 1Mi.
# Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
_SUFFIXES = {"k": 1000, "M": 1000**2, "G": 1000**3, "Ki": 1024, "Mi": 1024**2, "Gi": 1024**3}


def whole(text: str) -> int:
    """Return the whole number that a quantity stands for.

    Raises:
        ValueError: The text is no quantity of an extended resource.
    """
    digits = text.rstrip("kKMGi")
    suffix = text[len(digits) :]
    return int(digits) * (_SUFFIXES[suffix] if suffix else 1)
