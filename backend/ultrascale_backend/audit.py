"""Audit lines: requests, their callers, and the decisions. They contain no token."""

import logging
from dataclasses import asdict, dataclass

from ultrascale_backend.limits import Buckets, Recent

_LOG = logging.getLogger(__name__)
_LONGEST = 200
# Lines for refusals of a caller: one a second, and this many at first.
_LINES_PER_SECOND, _FIRST_LINES = 1.0, 20.0


@dataclass(slots=True, kw_only=True)
class Entry:
    """An HTTP request and its outcome."""

    method: str  # HTTP method
    path: str  # Path, without its query
    address: str  # Address of the client
    caller: str = ""  # Name of the caller; empty if unknown
    verb: str = ""  # `submit`, `list`, `get`, `pods` or `cancel`; empty for an unknown path
    request: str = ""  # Id of the request for a job; empty if the path names none
    decision: str = ""  # The decision, such as `unauthenticated` or `limited`
    why: str = ""  # The reason of a refusal
    status: int = 500  # HTTP status
    seconds: float = 0.0  # Time to answer
    unwritten: int = 0  # Earlier refusals of the same caller that got no line of their own


class Audit:
    """Writer of a line for each request; of many refusals, a few lines that count the others."""

    def __init__(self) -> None:
        self._lines = Buckets(_LINES_PER_SECOND, _FIRST_LINES)
        self._unwritten = Recent[str, int]()

    def write(self, entry: Entry, *, quiet: bool) -> None:
        """Write the line of a request.

        Args:
            entry: The request.
            quiet: Whether the request is routine, such as a probe, and only logged for debugging.
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
