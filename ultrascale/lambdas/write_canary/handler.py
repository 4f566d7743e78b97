"""Function of the write canary; a schedule calls it each minute."""

import json
import math
import os
import ssl
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from botocore.session import Session

from ..kubernetes import JSON_PATCH, MERGE_PATCH, bearer_token, look_up, tls_context

if TYPE_CHECKING:
    from ..events import CanaryInput, Context, Json, LogEvent


# --- Writes to one Lease over one connection ------------------------------------------------------


_FIELD_MANAGER = "write-canary"
# Errors if the server has closed the connection since the last write.
_CLOSED = (ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError)


class WriteError(Exception):
    """Error: a write failed, or its outcome is not known."""


class TakenError(Exception):
    """Error: another run has taken the Lease."""


class Lease:
    """A Lease that a run takes from the run before: only the last run writes.

    Every write changes `renewTime`: the API server does not store a write without a change.
    """

    def __init__(
        self, connect: Callable[[], HTTPConnection], *, path: str, token: str, holder: str
    ) -> None:
        """Create a client, which connects at its first write.

        Args:
            connect: Returns a connection to the API server, not yet open.
            path: Path of the Lease.
            token: Bearer token.
            holder: Id of the run that takes the Lease.
        """
        self._connection = connect()
        self._path = f"{path}?fieldManager={_FIELD_MANAGER}"
        self._token = token
        self._holder = holder
        self._held = False

    def write(self, moment: str) -> None:
        """Write ``moment``: take the Lease, or renew it if this run has it.

        A write on a closed connection is sent again over a new one.

        Raises:
            TakenError: Another run has taken the Lease since.
            WriteError: The API server refused, did not answer, or could not be reached.
        """
        kind, patch = self._patch(moment)
        body = json.dumps(patch).encode()
        status, text = self._send(kind, body)
        # The patch contains a test for the holder; this status answers a failed test.
        # https://github.com/kubernetes/kubernetes/blob/master/staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go
        if self._held and status == HTTPStatus.UNPROCESSABLE_ENTITY:
            raise TakenError
        if status != HTTPStatus.OK:
            raise WriteError(f"{status}: {text[:500].decode(errors='replace')}")
        self._held = True

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _patch(self, moment: str) -> "tuple[str, Json]":
        if not self._held:
            return MERGE_PATCH, {"spec": {"holderIdentity": self._holder, "renewTime": moment}}
        return JSON_PATCH, [
            {"op": "test", "path": "/spec/holderIdentity", "value": self._holder},
            {"op": "replace", "path": "/spec/renewTime", "value": moment},
        ]

    def _send(self, kind: str, body: bytes) -> tuple[int, bytes]:
        kept = self._connection.sock is not None
        try:
            try:
                return self._exchange(kind, body)
            except _CLOSED:
                if not kept:
                    raise
                self._connection.close()
                return self._exchange(kind, body)
        except (OSError, HTTPException) as error:
            self._connection.close()
            raise WriteError(f"{type(error).__name__}: {error}") from error

    def _exchange(self, kind: str, body: bytes) -> tuple[int, bytes]:
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Accept": "application/json",
            "Content-Type": kind,
        }
        self._connection.request("PATCH", self._path, body, headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()


# --- Settings of the canary, from its schedule's input --------------------------------------------


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


# --- Function of the write canary; a schedule calls it each minute --------------------------------


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
