"""A run of the canary: a write on each second, until the next run takes over."""

import math
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from .counts import Counts
from .lease import Lease, TakenError, WriteError
from .settings import Settings

if TYPE_CHECKING:
    from ..events import LogEvent


class Clock:
    """A clock that never jumps within a run: it reads the time once, and counts on from there."""

    def __init__(self) -> None:
        self._offset = time.time() - time.perf_counter()

    def now(self) -> float:
        """Return the time, in seconds since 1970."""
        return self._offset + time.perf_counter()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


def run(lease: Lease, settings: Settings, clock: Clock) -> "Iterator[LogEvent | str]":
    """Write on each second, and yield the lines of the log.

    The first write takes the Lease from the previous run. It is not counted: only a client's first
    write waits for the TLS handshake, and for the API server to verify the token. All waiting of
    later writes counts, that for a new connection included.

    A write that takes longer than a second makes the next one miss its second. A missed write
    counts as failed: otherwise, a slower API server would have fewer slow writes.
    """
    counts, errors = Counts(settings), Counter[str]()
    ends = clock.now() + settings.seconds
    try:
        lease.write(_text(clock.now()))
    except WriteError as error:
        yield f"the Lease could not be taken: {error}"
    due = math.floor(clock.now()) + 1
    while due < ends:
        clock.sleep(max(due - clock.now(), 0))
        began = clock.now()
        try:
            lease.write(_text(began))
            # As fine as the clock: a float of that size has no more digits.
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


def _text(now: float) -> str:
    """Return a moment as Kubernetes' MicroTime.

    Source: https://pkg.go.dev/k8s.io/apimachinery/pkg/apis/meta/v1#MicroTime
    """
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
