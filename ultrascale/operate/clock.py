"""A command's clock, and waits for changes in AWS and Kubernetes."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

from ultrascale.errors import ClusterError, RefusedError, UnansweredError
from ultrascale.frozen import Frozen

_PUT_OFF, _SERVER_FAULT = 429, 500


def _now() -> datetime:
    return datetime.now(UTC)


class Clock(Frozen, kw_only=False):
    """The clock of a command; tests replace it."""

    now: Callable[[], datetime] = _now  # Returns the time, in UTC
    sleep: Callable[[float], None] = time.sleep  # Waits for so many seconds


def wait(
    clock: Clock,
    look: Callable[[], str],
    *,
    minutes: float,
    every: float,
    say: Callable[[str], None],
    stuck: Callable[[], str] = lambda: "",
) -> None:
    """Wait until ``look`` returns an empty text.

    A look that AWS or the API server leaves unanswered is repeated: an upgrade of the control plane
    or a broken connection must not end hours of work.

    Args:
        clock: The clock.
        look: Returns the reason to wait; empty once there is none.
        minutes: Longest wait, in minutes.
        every: Seconds between two looks.
        say: Is called with each new reason.
        stuck: Returns the cause that AWS or Kubernetes states, once the time is up.

    Raises:
        ClusterError: The time is up, or the API server refuses a look.
        UnansweredError: AWS denies a look.
    """
    started, said = clock.now(), ""
    while waiting := _reason_to_wait(look):
        if waiting != said:
            say(waiting)
            said = waiting
        if (clock.now() - started).total_seconds() >= minutes * 60:
            why = stuck()
            raise ClusterError(
                f"not within {minutes:.0f} minutes: {waiting}{f'; {why}' if why else ''}"
            )
        clock.sleep(every)


def _reason_to_wait(look: Callable[[], str]) -> str:
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
