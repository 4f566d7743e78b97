"""The clock, and waits for changes in AWS and Kubernetes."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from ultrascale.errors import ClusterError, RefusedError, UnansweredError

_PUT_OFF, _SERVER_FAULT = 429, 500


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

    A look that AWS or the API server does not answer is tried again like any other: an upgrade of
    the control plane, or a connection that breaks, ends no work of hours.

    Args:
        clock: The clock.
        look: Says what is still waited for; empty once it is there.
        minutes: How long at most.
        every: Seconds between two looks.
        say: Is told each time that what is waited for changes.
        stuck: Says what AWS or Kubernetes tells of the cause, where the time is up.

    Raises:
        ClusterError: The time is up, or a look is refused.
        UnansweredError: A look is denied.
    """
    started, said = clock.now(), ""
    while waiting := _look(look):
        if waiting != said:
            say(waiting)
            said = waiting
        if (clock.now() - started).total_seconds() >= minutes * 60:
            why = stuck()
            raise ClusterError(
                f"not within {minutes:.0f} minutes: {waiting}{f'; {why}' if why else ''}"
            )
        clock.sleep(every)


def _look(look: Callable[[], str]) -> str:
    try:
        return look()
    except RefusedError as error:
        if error.status < _SERVER_FAULT and error.status != _PUT_OFF:
            raise
        return str(error)
    except UnansweredError as error:
        if error.denied:
            raise
        return str(error)
    except ClusterError as error:
        return str(error)
