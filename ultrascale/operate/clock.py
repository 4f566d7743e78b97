"""Waiting for what AWS and Kubernetes do, so that tests need not."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from ultrascale.errors import ClusterError


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Clock:
    """What tells the time, and lets some of it pass.

    Attributes:
        now: Returns the time, in UTC.
        sleep: Waits for so many seconds.
    """

    now: Callable[[], datetime] = _now
    sleep: Callable[[float], None] = time.sleep


def wait(
    clock: Clock,
    look: Callable[[], str],
    *,
    minutes: float,
    every: float,
    say: Callable[[str], None],
    stuck: Callable[[], str] = lambda: "",
) -> None:
    """Return once ``look`` says that nothing is left to wait for.

    Args:
        clock: The clock.
        look: Says what is still waited for; empty once it is there.
        minutes: How long at most.
        every: Seconds between two looks.
        say: Is told each time that what is waited for changes.
        stuck: Says what AWS or Kubernetes tells of the cause, where the time is up.

    Raises:
        ClusterError: The time is up.
    """
    started, said = clock.now(), ""
    while waiting := look():
        if waiting != said:
            say(waiting)
            said = waiting
        if (clock.now() - started).total_seconds() >= minutes * 60:
            why = stuck()
            raise ClusterError(
                f"not within {minutes:g} minutes: {waiting}{f'; {why}' if why else ''}"
            )
        clock.sleep(every)
