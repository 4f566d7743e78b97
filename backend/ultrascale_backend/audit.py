"""Audit lines: who asked for what, and what was decided. No token is in them."""

import logging
from dataclasses import asdict, dataclass

from ultrascale_backend.limits import Buckets, Recent

_LOG = logging.getLogger(__name__)
_LONGEST = 200
# Lines for the refusals of one caller: one a second, and so many at first.
_LINES_PER_SECOND, _FIRST_LINES = 1.0, 20.0


@dataclass(slots=True, kw_only=True)
class Entry:
    """An HTTP request and its outcome.

    Attributes:
        method: HTTP method.
        path: Path, without its query.
        address: Address of the client.
        caller: Who asks; empty where nobody knows.
        verb: `submit`, `list`, `get`, `pods` or `cancel`; empty for an unknown path.
        request: Id of the request for a job; empty where the path names none.
        decision: The decision, such as `unauthenticated` or `limited`.
        why: The reason of a refusal.
        status: HTTP status.
        seconds: Time to answer.
        unwritten: Earlier refusals of the same caller that got no line of their own.
    """

    method: str
    path: str
    address: str
    caller: str = ""
    verb: str = ""
    request: str = ""
    decision: str = ""
    why: str = ""
    status: int = 500
    seconds: float = 0.0
    unwritten: int = 0


class Audit:
    """Writes a line for each request; of a flood of refusals, a few lines that count the others."""

    def __init__(self) -> None:
        self._lines = Buckets(_LINES_PER_SECOND, _FIRST_LINES)
        self._unwritten = Recent[str, int]()

    def write(self, entry: Entry, *, quiet: bool) -> None:
        """Write the line of a request.

        Args:
            entry: The request.
            quiet: Whether it is routine, such as a probe, and logged for debugging only.
        """
        if entry.decision in ("unauthenticated", "limited"):
            who = entry.caller or entry.address
            if self._lines.take(who):
                self._unwritten.put(who, (self._unwritten.get(who) or 0) + 1)
                return
            entry.unwritten = self._unwritten.drop(who) or 0
        entry.path = entry.path[:_LONGEST]
        level = logging.DEBUG if quiet else logging.INFO
        _LOG.log(level, "audit", extra=asdict(entry))
