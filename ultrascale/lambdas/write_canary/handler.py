"""Function of the write canary; a schedule calls it each minute."""

import json
import math
import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.client import HTTPSConnection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from botocore.session import Session

from ..cluster import look_up
from ..kubernetes import bearer_token, tls_context
from .lease import Lease, TakenError, WriteError
from .settings import Settings

if TYPE_CHECKING:
    from ..events import CanaryInput, Context, Json, LogEvent


# --- Counts of writes by minute, and their log events for CloudWatch's embedded metric format -----


_MINUTE = 60


@dataclass
class _Minute:
    good: int = 0
    total: int = 0
    milliseconds: list[float] = field(default_factory=list[float])


@dataclass
class Counts:
    """Number and duration of the writes of each minute."""

    settings: Settings  # The settings, with names of metrics
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
        """Yield the log event of each finished minute, and forget the minute.

        Args:
            before: A second: its minute and later minutes are kept. None keeps no minute.

        Source:
        https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
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


# --- A run of the canary: a write on each second, until the next run takes over -------------------


class Clock:
    """A clock that never jumps within a run: it reads the time once and counts on."""

    def __init__(self) -> None:
        self._offset = time.time() - time.perf_counter()

    def now(self) -> float:
        """Return the time, in seconds since 1970."""
        return self._offset + time.perf_counter()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


def run(lease: Lease, settings: Settings, clock: Clock) -> "Iterator[LogEvent | str]":
    """Write once a second, and yield the lines of the log.

    The first write takes the Lease from the previous run. It is not counted: only a client's first
    write waits for the TLS handshake, and for the API server to verify the token. Later writes
    count with all waiting, even for a new connection.

    A write that takes longer than a second makes the next write miss its second. A missed write
    counts as failed: otherwise, a slower API server would show fewer slow writes.
    """
    counts, errors = Counts(settings), Counter[str]()
    ends = clock.now() + settings.seconds
    try:
        lease.write(_micro_time(clock.now()))
    except WriteError as error:
        yield f"the Lease could not be taken: {error}"
    due = math.floor(clock.now()) + 1
    while due < ends:
        clock.sleep(max(due - clock.now(), 0))
        began = clock.now()
        try:
            lease.write(_micro_time(began))
            # The clock's own precision: a float of that size has no more digits.
            counts.add(due, round(clock.now() - began, 6))
        except TakenError:
            break
        except WriteError as error:
            counts.add(due)
            errors[str(error)] += 1
        following = max(math.floor(clock.now()), due) + 1
        for missed in range(due + 1, following):
            counts.add(missed)
        due = following
        yield from counts.events(before=due)
    yield from counts.events()
    for error, times in errors.items():
        yield f"{times} writes failed: {error}"


def _micro_time(now: float) -> str:
    """Return a moment as Kubernetes' MicroTime.

    Source: https://pkg.go.dev/k8s.io/apimachinery/pkg/apis/meta/v1#MicroTime
    """
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


# Seconds, above the threshold. A longer write is given up together with its connection.
_GRACE_SECONDS = 5


def on_event(event: "CanaryInput", context: "Context") -> None:
    """Write until the next run takes over, and log the outcomes.

    Args:
        event: The settings.
        context: Lambda's context, with the id of the run.

    Raises:
        Exception: The run could not begin. An alarm counts missing data as a fault.
    """
    settings = Settings.parse(event)
    lease = _lease(settings, context.aws_request_id)
    try:
        for line in run(lease, settings, Clock()):
            text = line if isinstance(line, str) else json.dumps(line, separators=(",", ":"))
            print(text, flush=True)
    finally:
        lease.close()


def _lease(settings: Settings, holder: str) -> Lease:
    server = look_up(settings.cluster)
    endpoint = urlsplit(server.endpoint)
    tls = tls_context(server.certificate_authority)
    timeout = settings.threshold_seconds + _GRACE_SECONDS
    assert endpoint.hostname is not None
    host, port = endpoint.hostname, endpoint.port or 443
    return Lease(
        lambda: HTTPSConnection(host, port, timeout=timeout, context=tls),
        path=settings.path,
        token=bearer_token(Session(), cluster=settings.cluster, region=os.environ["AWS_REGION"]),
        holder=holder,
    )
