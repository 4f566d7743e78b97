"""Counts of writes by minute, and their log events for CloudWatch's embedded metric format."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .settings import Settings

if TYPE_CHECKING:
    from ..events import Json, LogEvent

_MINUTE = 60


@dataclass
class _Minute:
    good: int = 0
    total: int = 0
    milliseconds: list[float] = field(default_factory=list[float])


@dataclass
class Counts:
    """Outcomes of the writes of each minute.

    Attributes:
        settings: The settings, with names of metrics.
    """

    settings: Settings
    _minutes: dict[int, _Minute] = field(default_factory=dict[int, _Minute])

    def add(self, second: int, seconds: float | None = None) -> None:
        """Count the write that was due at ``second``.

        Args:
            second: Due time, in seconds since 1970.
            seconds: Its duration; None for a write that failed, or never began.
        """
        minute = self._minutes.setdefault(second // _MINUTE, _Minute())
        minute.total += 1
        if seconds is not None:
            minute.good += seconds <= self.settings.threshold_seconds
            minute.milliseconds.append(round(seconds * 1000, 3))

    def events(self, *, before: int | None = None) -> "Iterator[LogEvent]":
        """Yield the log event of each minute, and forget the minute.

        Args:
            before: A second: its minute and later ones are kept. None keeps none.

        Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
        """
        for number in sorted(self._minutes):
            if before is None or number < before // _MINUTE:
                yield self._event(number, self._minutes.pop(number))

    def _event(self, number: int, minute: _Minute) -> "LogEvent":
        names = self.settings
        metrics = [{"Name": name, "Unit": "Count"} for name in (names.good, names.total)]
        values: dict[str, Json] = {names.good: minute.good, names.total: minute.total}
        if minute.milliseconds:
            metrics.append({"Name": names.duration, "Unit": "Milliseconds"})
            values[names.duration] = minute.milliseconds
        return {
            "_aws": {
                "Timestamp": number * _MINUTE * 1000,
                "CloudWatchMetrics": [
                    {
                        "Namespace": names.namespace,
                        "Dimensions": [["ClusterName"]],
                        "Metrics": metrics,
                    }
                ],
            },
            "ClusterName": names.cluster,
            **values,
        }
