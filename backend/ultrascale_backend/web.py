"""HTTP interface of the backend."""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ultrascale.cluster_api.objects import POD
from ultrascale.cluster_api.server import Cluster
from ultrascale.documents import Json, JsonObject
from ultrascale.errors import ClusterError
from ultrascale.jobs.pods import made_by, read_pod
from ultrascale.jobs.workloads import workload_kinds
from ultrascale.plan.names import JOB_LABEL
from ultrascale_backend import store
from ultrascale_backend.authentication import Authenticator
from ultrascale_backend.callers import Caller, Rights
from ultrascale_backend.database import Database
from ultrascale_backend.door import Door, caller_of, entry_of
from ultrascale_backend.errors import (
    BadRequestError,
    ForbiddenError,
    KeyReusedError,
    UnavailableError,
    near,
)
from ultrascale_backend.metrics import CONTENT_TYPE, Metrics
from ultrascale_backend.objects import REQUEST_LABEL
from ultrascale_backend.records import STATES, Record, State
from ultrascale_backend.rendering import Renderer
from ultrascale_backend.requests import read_request

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_LOG = logging.getLogger(__name__)
# etcd stores no object above 1.5 MiB, so no request needs more.
_MOST_BYTES = 2**20
_READY_SECONDS = 2.0
_PAGE, _LONGEST_PAGE = 50, 500
_FIELDS = [field.name for field in fields(Record)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """Parts of the process that the HTTP handlers use."""

    database: Database  # The database of the requests
    cluster: Cluster  # The cluster of their jobs
    renderer: Renderer  # Renders the jobs of requests
    rights: Rights  # Rights of callers
    metrics: Metrics  # Metrics of the process
    stopping: threading.Event  # Set once the process has to end
    wake: Callable[[], None]  # Tells the workers that the outbox has an entry
    works: Callable[[], bool]  # Returns whether every thread of the process runs

    async def submit(self, request: Request) -> Response:
        """Answer POST /requests."""
        body = await request.body()
        key = request.headers.get("idempotency-key")
        record, first = await run_in_threadpool(self._record, caller_of(request), key, body)
        entry_of(request).request = str(record.id)
        headers = {"location": f"/requests/{record.id}"}
        return JSONResponse(_document(record), status_code=201 if first else 200, headers=headers)

    def _record(self, caller: Caller, key: str | None, body: bytes) -> tuple[Record, bool]:
        asked = read_request(key, body)
        known = self.database.run(
            lambda connection: store.find_key(
                connection,
                caller.name,
                asked.key,
                asked.fingerprint,
                is_admin=self.rights.is_admin(caller),
            )
        )
        if known is not None:
            # The request was valid when it first came; its deadline may have passed since.
            return known, False
        now = datetime.now(UTC)
        new, submission = self.renderer.render(uuid4(), asked, now, owner=caller.name)
        self.rights.check(caller, submission)
        recorded, first = self.database.run(lambda connection: store.create(connection, new))
        self.wake()
        return recorded, first

    def list(self, request: Request) -> Response:
        """Answer GET /requests: the caller's own requests, or for an admin all requests."""
        state, after, limit = _page_parameters(request.query_params)
        caller = caller_of(request)
        owner = None if self.rights.is_admin(caller) else caller.name
        found = self.database.run(
            lambda connection: store.newest(
                connection, owner=owner, state=state, after=after, limit=limit
            )
        )
        following = str(found[-1].id) if len(found) == limit else None
        return JSONResponse({"requests": [_document(each) for each in found], "next": following})

    def show(self, request: Request) -> Response:
        """Answer GET /requests/{id}."""
        return _record_response(self._find(request))

    def cancel(self, request: Request) -> Response:
        """Answer DELETE /requests/{id}."""
        record = self._find(request)
        if record is None:
            return _record_response(None)
        cancelled = self.database.run(lambda connection: store.cancel(connection, record.id))
        self.wake()
        return _record_response(cancelled, status=202)

    def pods(self, request: Request) -> Response:
        """Answer GET /requests/{id}/pods with the pods' present state."""
        record = self._find(request)
        if record is None:
            return _record_response(None)
        selector = {"labelSelector": f"{JOB_LABEL}={record.job_name}"}
        items = self.cluster.items(POD.path(record.namespace), selector)
        # Another owner's job may reuse the name of a deleted job whose pods still exist.
        pods = made_by(map(read_pod, items), self._workloads_of(record))
        keys = ("name", "state", "node", "restarts", "reason")
        return JSONResponse({"pods": [{key: getattr(pod, key) for key in keys} for pod in pods]})

    def _workloads_of(self, record: Record) -> Iterator[JsonObject]:
        query = {"labelSelector": f"{REQUEST_LABEL}={record.id}"}
        for kind in workload_kinds():
            yield from self.cluster.collection(kind, record.namespace, query)

    def health(self, _: Request) -> Response:
        """Answer GET /healthz: whether the process is well, so that a restart would not help."""
        return _status_response(self.works(), "a thread of the process has ended")

    def ready(self, _: Request) -> Response:
        """Answer GET /readyz: whether the process can accept requests."""
        if self.stopping.is_set():
            return _status_response(False, "stopping")
        answers = self.database.answers(timeout_seconds=_READY_SECONDS)
        return _status_response(answers, "the database does not answer")

    def scrape(self, _: Request) -> Response:
        """Answer GET /metrics."""
        return Response(self.metrics.text(), media_type=CONTENT_TYPE)

    def _find(self, request: Request) -> Record | None:
        """Return the request of a path; None if it does not exist or has another owner."""
        request_id: UUID = request.path_params["id"]
        record = self.database.run(lambda connection: store.find(connection, request_id))
        if record is None or self.rights.may_see(caller_of(request), record.owner):
            return record
        entry_of(request).decision = "hidden"
        return None


def application(
    backend: Backend, *, authenticator: Authenticator | None, per_second: float
) -> "ASGIApp":
    """Return the HTTP interface of ``backend``.

    Args:
        backend: Parts that the handlers use.
        authenticator: Authenticator of callers; None: every caller is anonymous.
        per_second: Requests that one caller may send in a second.
    """
    routed = Starlette(
        routes=[
            Route("/requests", backend.submit, methods=["POST"]),
            Route("/requests", backend.list, methods=["GET"]),
            Route("/requests/{id:uuid}", backend.show, methods=["GET"]),
            Route("/requests/{id:uuid}", backend.cancel, methods=["DELETE"]),
            Route("/requests/{id:uuid}/pods", backend.pods, methods=["GET"]),
            Route("/healthz", backend.health),
            Route("/readyz", backend.ready),
            Route("/metrics", backend.scrape),
        ],
        exception_handlers={
            ForbiddenError: _forbidden,
            BadRequestError: _bad_request,
            KeyReusedError: _key_reused,
            UnavailableError: _unavailable,
            ClusterError: _unavailable,
        },
        max_body_size=_MOST_BYTES,
    )
    door = Door(routed, authenticator=authenticator, metrics=backend.metrics, per_second=per_second)
    return ReadRefusedBodies(door)


def _document(record: Record) -> JsonObject:
    """Return a request in the form that clients see."""
    document: dict[str, Json] = {}
    for key in _FIELDS:
        value = getattr(record, key)
        document[key] = value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value
    cancelled = document.pop("cancel_requested_at") is not None
    return {**document, "id": str(record.id), "cancel_requested": cancelled}


def _page_parameters(query: Mapping[str, str]) -> tuple[State | None, UUID | None, int]:
    mistakes: list[str] = []
    mistakes += [
        f"{key}: unknown parameter; {near(key, ('state', 'after', 'limit'))}"
        for key in query
        if key not in ("state", "after", "limit")
    ]
    state: State | None = next((each for each in STATES if each == query.get("state")), None)
    if state is None and "state" in query:
        mistakes.append(f"state: unknown, got {query['state']!r}; {near(query['state'], STATES)}")
    after = None
    try:
        after = UUID(query["after"]) if "after" in query else None
    except ValueError:
        mistakes.append("after: not the id of a request; take `next` of the page before")
    told = query.get("limit", str(_PAGE))
    limit = int(told) if told.isascii() and told.isdecimal() and len(told) < 5 else 0
    if not 1 <= limit <= _LONGEST_PAGE:
        mistakes.append(f"limit: out of range, got {told!r}; write 1 to {_LONGEST_PAGE}")
    if mistakes:
        raise BadRequestError(mistakes)
    return state, after, limit


def _record_response(record: Record | None, status: int = 200) -> Response:
    if record is None:
        return _problem(404, ["id: no such request; GET /requests lists them"])
    return JSONResponse(_document(record), status_code=status)


def _status_response(good: bool, otherwise: str) -> Response:
    return JSONResponse({"status": "ok" if good else otherwise}, status_code=200 if good else 503)


def _bad_request(_: Request, error: Exception) -> Response:
    return _problem(400, error.mistakes if isinstance(error, BadRequestError) else ())


def _forbidden(request: Request, error: Exception) -> Response:
    entry_of(request).why = str(error)
    return _problem(403, error.reasons if isinstance(error, ForbiddenError) else ())


def _key_reused(_: Request, error: Exception) -> Response:
    return _problem(422, [f"Idempotency-Key: {error}"])


def _unavailable(_: Request, error: Exception) -> Response:
    _LOG.warning("cannot answer", extra={"error": str(error)})
    return _problem(503, ["out of reach for now; try again"], {"retry-after": "1"})


def _problem(
    status: int, mistakes: "list[str] | tuple[str, ...]", headers: Mapping[str, str] | None = None
) -> Response:
    return JSONResponse({"mistakes": [*mistakes]}, status_code=status, headers=headers)


# Bytes to read of a refused body: of a body that is too large, and of a body whose caller may not
# send anything.
_MOST_UNREAD_BYTES = {413: 2**24, 401: 2**20, 429: 2**20, 503: 2**20}
_MOST_SECONDS = 10.0


class ReadRefusedBodies:
    """Middleware that reads the rest of a refused body before it answers.

    The server closes the connection with the answer: a client that is still sending would see a
    reset connection instead of the answer.

    Source: https://www.rfc-editor.org/rfc/rfc9112#section-9.6
    """

    def __init__(self, app: "ASGIApp") -> None:
        """Wrap the application ``app``."""
        self._app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer a request."""
        if scope["type"] != "http" or "expect" in Headers(scope=scope):
            # A client that sent `Expect: 100-continue` has not sent the body yet.
            await self._app(scope, receive, send)
            return
        body = _Body(receive)

        async def answer(message: "Message") -> None:
            if message["type"] == "http.response.start":
                await body.read_rest(_MOST_UNREAD_BYTES.get(message["status"], 0))
            await send(message)

        await self._app(scope, body.receive, answer)


class _Body:
    def __init__(self, receive: "Receive") -> None:
        self._receive = receive
        self._more = True
        self._bytes = 0

    async def receive(self) -> "Message":
        message = await self._receive()
        self._more = bool(message.get("more_body", False))
        self._bytes += len(message.get("body", b""))
        return message

    async def read_rest(self, most_bytes: int) -> None:
        """Read until the body ends, exceeds ``most_bytes``, or takes too long."""
        try:
            async with asyncio.timeout(_MOST_SECONDS):
                while self._more and self._bytes < most_bytes:
                    await self.receive()
        except TimeoutError:
            return
