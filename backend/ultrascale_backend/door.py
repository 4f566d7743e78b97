"""The door: it refuses unknown callers, and callers with too many requests.

The application behind the door reads the caller from the request's state. The door reads no body.
"""

import logging
import re
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse

from ultrascale_backend.authentication import Authenticator, bearer_token
from ultrascale_backend.callers import ANONYMOUS, Caller
from ultrascale_backend.errors import IdentityUnavailableError, LimitedError, UnknownCallerError
from ultrascale_backend.limits import Buckets, Recent, Turns
from ultrascale_backend.metrics import Metrics

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


# --- Audit lines: requests, their callers, and the decisions. They contain no token ---------------


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


# --- The door: it refuses unknown callers, and callers with too many requests ---------------------


OPEN = ("/healthz", "/readyz", "/metrics")
"""Paths without a token, for the kubelet and Prometheus; they show no requests for jobs."""

_NOBODY = Caller(name=ANONYMOUS, groups=frozenset())
# Half of the number of threads that answer requests.
_AT_ONCE = 5
_OPEN_PER_SECOND, _OPEN_BURST = 50.0, 200.0
_VERBS = tuple(
    (method, re.compile(path), verb)
    for method, path, verb in (
        ("POST", r"/requests", "submit"),
        ("GET", r"/requests", "list"),
        ("GET", r"/requests/([0-9a-fA-F-]{32,36})", "get"),
        ("GET", r"/requests/([0-9a-fA-F-]{32,36})/pods", "pods"),
        ("DELETE", r"/requests/([0-9a-fA-F-]{32,36})", "cancel"),
    )
)
_DECISIONS = {401: "unauthenticated", 403: "forbidden", 429: "limited", 503: "unavailable"}


class Door:
    """Middleware that authenticates callers, limits their requests, and writes audit lines.

    Args:
        app: The application behind it.
        authenticator: Authenticator of callers; None: every caller is `system:anonymous`.
        metrics: Metrics of the process.
        per_second: Requests that one caller may send in a second.
    """

    def __init__(
        self,
        app: "ASGIApp",
        *,
        authenticator: Authenticator | None,
        metrics: Metrics,
        per_second: float,
    ) -> None:
        self._app = app
        self._authenticator = authenticator
        self._metrics = metrics
        self._audit = Audit()
        self._callers = Buckets(per_second)
        self._addresses = Buckets(_OPEN_PER_SECOND, _OPEN_BURST)
        self._turns = Turns(_AT_ONCE)

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        client: tuple[str, int] | None = scope.get("client")
        entry = Entry(
            method=scope["method"], path=scope["path"], address=client[0] if client else ""
        )
        entry.verb, entry.request = _verb_and_request(entry.method, entry.path)
        scope.setdefault("state", {})["audit"] = entry
        began = time.monotonic()

        async def watched(message: "Message") -> None:
            if message["type"] == "http.response.start":
                entry.status = message["status"]
            await send(message)

        try:
            await self._answer(scope, receive, watched, entry)
        finally:
            entry.seconds = round(time.monotonic() - began, 4)
            entry.decision = entry.decision or _DECISIONS.get(entry.status, "allowed")
            self._metrics.http.labels(entry.method, str(entry.status)).inc()
            self._metrics.seconds.labels(entry.method).observe(entry.seconds)
            self._audit.write(entry, quiet=entry.path in OPEN)

    async def _answer(self, scope: "Scope", receive: "Receive", send: "Send", entry: Entry) -> None:
        try:
            if entry.path in OPEN:
                _take_token(self._addresses, entry.address)
                await self._app(scope, receive, send)
                return
            caller = await self._caller(scope, entry.address)
            entry.caller = caller.name
            scope["state"]["caller"] = caller
            _take_token(self._callers, caller.name)
        except (UnknownCallerError, LimitedError, IdentityUnavailableError) as error:
            entry.why = str(error)
            await _refusal(error)(scope, receive, send)
            return
        async with self._turns.turn(caller.name):
            await self._app(scope, receive, send)

    async def _caller(self, scope: "Scope", address: str) -> Caller:
        if self._authenticator is None:
            return _NOBODY
        token = bearer_token(Request(scope).headers.get("authorization"))
        return await self._authenticator.caller(token, address)


def caller_of(request: Request) -> Caller:
    """Return the caller of a request that has passed the door."""
    caller: Caller = request.state.caller
    return caller


def entry_of(request: Request) -> Entry:
    """Return the audit line of a request."""
    entry: Entry = request.state.audit
    return entry


def _take_token(buckets: Buckets, name: str) -> None:
    if wait := buckets.take(name):
        raise LimitedError(wait)


def _verb_and_request(method: str, path: str) -> tuple[str, str]:
    for verb_method, pattern, verb in _VERBS:
        match = pattern.fullmatch(path)
        if match is not None and method in (verb_method, "HEAD" if verb_method == "GET" else ""):
            return verb, match[1] if match.groups() else ""
    return "", ""


def _refusal(error: Exception) -> JSONResponse:
    if isinstance(error, UnknownCallerError):
        # An answer to a request without a token says how to send one; `error` is for invalid
        # tokens.
        told = "" if str(error).startswith("no ") else ', error="invalid_token"'
        headers = {"www-authenticate": f'Bearer realm="ultrascale-backend"{told}'}
        todo = "send `Authorization: Bearer TOKEN`, as docs/backend.md shows"
        return _problem(401, f"Authorization: {error}; {todo}", headers)
    if isinstance(error, LimitedError):
        seconds = str(max(1, round(error.seconds)))
        return _problem(429, f"too many requests; wait {seconds} s", {"retry-after": seconds})
    told = "nobody can say now whose this token is; try again"
    return _problem(503, told, {"retry-after": "1"})


def _problem(status: int, mistake: str, headers: dict[str, str]) -> JSONResponse:
    return JSONResponse({"mistakes": [mistake]}, status_code=status, headers=headers)
