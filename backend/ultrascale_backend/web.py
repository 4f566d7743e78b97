"""HTTP interface."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ultrascale.cluster_api.kinds import POD
from ultrascale.cluster_api.server import Cluster
from ultrascale.documents import Json, JsonObject
from ultrascale.errors import ClusterError
from ultrascale.jobs.pods import read_pod
from ultrascale.plan.names import JOB_LABEL
from ultrascale_backend import store
from ultrascale_backend.database import Database
from ultrascale_backend.errors import BadRequestError, KeyReusedError, UnavailableError
from ultrascale_backend.metrics import CONTENT_TYPE, Metrics
from ultrascale_backend.mistakes import near
from ultrascale_backend.records import STATES, Record, State
from ultrascale_backend.refused_bodies import ReadRefusedBodies
from ultrascale_backend.rendering import Renderer
from ultrascale_backend.requests import read_request

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_LOG = logging.getLogger(__name__)
# etcd takes no object above 1.5 MiB, so that no request needs more.
_MOST_BYTES = 2**20
_READY_SECONDS = 2.0
_PAGE, _LONGEST_PAGE = 50, 500
_FIELDS = [each.name for each in fields(Record)]
_QUIET = ("/healthz", "/readyz", "/metrics")


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """What answers are made of.

    Attributes:
        database: Where requests are recorded.
        cluster: Where their jobs run.
        renderer: What requests become.
        metrics: What is counted.
        stopping: Set once the process is to end.
        wake: Says that there is something to do in the cluster.
        works: Says whether every thread of the process works.
    """

    database: Database
    cluster: Cluster
    renderer: Renderer
    metrics: Metrics
    stopping: threading.Event
    wake: Callable[[], None]
    works: Callable[[], bool]

    async def submit(self, request: Request) -> Response:
        """Answer POST /requests."""
        body = await request.body()
        key = request.headers.get("idempotency-key")
        record, first = await run_in_threadpool(self._record, key, body)
        headers = {"location": f"/requests/{record.id}"}
        return JSONResponse(_document(record), status_code=201 if first else 200, headers=headers)

    def _record(self, key: str | None, body: bytes) -> tuple[Record, bool]:
        asked = read_request(key, body)
        known = self.database.run(
            lambda connection: store.find_key(connection, asked.key, asked.fingerprint)
        )
        if known is not None:
            # It was right when it came first; its deadline may have passed since.
            return known, False
        new = self.renderer.render(uuid4(), asked, datetime.now(UTC))
        recorded, first = self.database.run(lambda connection: store.create(connection, new))
        self.wake()
        return recorded, first

    def list(self, request: Request) -> Response:
        """Answer GET /requests."""
        state, after, limit = _page(request.query_params)
        found = self.database.run(
            lambda connection: store.newest(connection, state=state, after=after, limit=limit)
        )
        following = str(found[-1].id) if len(found) == limit else None
        return JSONResponse({"requests": [_document(each) for each in found], "next": following})

    def show(self, request: Request) -> Response:
        """Answer GET /requests/{id}."""
        return _one(self._find(request))

    def cancel(self, request: Request) -> Response:
        """Answer DELETE /requests/{id}."""
        request_id: UUID = request.path_params["id"]
        record = self.database.run(lambda connection: store.cancel(connection, request_id))
        self.wake()
        return _one(record, status=202)

    def pods(self, request: Request) -> Response:
        """Answer GET /requests/{id}/pods: what the cluster says of them now."""
        record = self._find(request)
        if record is None:
            return _one(None)
        selector = {"labelSelector": f"{JOB_LABEL}={record.job_name}"}
        items = self.cluster.items(POD.path(record.namespace), selector)
        pods = [read_pod(each) for each in items]
        keys = ("name", "state", "node", "restarts", "reason")
        return JSONResponse({"pods": [{key: getattr(pod, key) for key in keys} for pod in pods]})

    def health(self, _: Request) -> Response:
        """Answer GET /healthz: whether a restart would help."""
        return _plain(self.works(), "a thread of the process has ended")

    def ready(self, _: Request) -> Response:
        """Answer GET /readyz: whether requests can be taken."""
        if self.stopping.is_set():
            return _plain(False, "stopping")
        answers = self.database.answers(timeout_seconds=_READY_SECONDS)
        return _plain(answers, "the database does not answer")

    def scrape(self, _: Request) -> Response:
        """Answer GET /metrics."""
        return Response(self.metrics.text(), media_type=CONTENT_TYPE)

    def _find(self, request: Request) -> Record | None:
        request_id: UUID = request.path_params["id"]
        return self.database.run(lambda connection: store.find(connection, request_id))


def application(backend: Backend) -> "ASGIApp":
    """Return the HTTP interface of ``backend``."""
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
        middleware=[Middleware(_Log, metrics=backend.metrics)],
        exception_handlers={
            BadRequestError: _bad_request,
            KeyReusedError: _key_reused,
            UnavailableError: _unavailable,
            ClusterError: _unavailable,
        },
        max_body_size=_MOST_BYTES,
    )
    return ReadRefusedBodies(routed)


class _Log:
    """Logs and counts each answer."""

    def __init__(self, app: "ASGIApp", metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()
        status = 500

        async def watched(message: "Message") -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            self._tell(scope["method"], scope["path"], status, time.monotonic() - began)

    def _tell(self, method: str, path: str, status: int, seconds: float) -> None:
        self._metrics.http.labels(method, str(status)).inc()
        self._metrics.seconds.labels(method).observe(seconds)
        level = logging.DEBUG if path in _QUIET else logging.INFO
        about = {"method": method, "path": path, "status": status, "seconds": round(seconds, 4)}
        _LOG.log(level, "request", extra=about)


def _document(record: Record) -> JsonObject:
    """Return a request as clients see it."""
    document: dict[str, Json] = {}
    for key in _FIELDS:
        value = getattr(record, key)
        document[key] = value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value
    cancelled = document.pop("cancel_requested_at") is not None
    return {**document, "id": str(record.id), "cancel_requested": cancelled}


def _page(query: Mapping[str, str]) -> tuple[State | None, UUID | None, int]:
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


def _one(record: Record | None, status: int = 200) -> Response:
    if record is None:
        return _problem(404, ["id: no such request; GET /requests lists them"])
    return JSONResponse(_document(record), status_code=status)


def _plain(good: bool, otherwise: str) -> Response:
    return JSONResponse({"status": "ok" if good else otherwise}, status_code=200 if good else 503)


def _bad_request(_: Request, error: Exception) -> Response:
    return _problem(400, error.mistakes if isinstance(error, BadRequestError) else ())


def _key_reused(_: Request, error: Exception) -> Response:
    told = f"Idempotency-Key: {error} came before with another request; send a new one"
    return _problem(422, [told])


def _unavailable(_: Request, error: Exception) -> Response:
    _LOG.warning("cannot answer", extra={"error": str(error)})
    return _problem(503, ["out of reach for now; try again"], {"retry-after": "1"})


def _problem(
    status: int, mistakes: "list[str] | tuple[str, ...]", headers: Mapping[str, str] | None = None
) -> Response:
    return JSONResponse({"mistakes": [*mistakes]}, status_code=status, headers=headers)
