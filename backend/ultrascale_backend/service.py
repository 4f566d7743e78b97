"""The process of the backend: its start, its threads and its end."""

import asyncio
import logging
import signal
import socket
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from types import FrameType

import uvicorn
from anyio.to_thread import current_default_thread_limiter
from starlette.types import ASGIApp

from ultrascale.cluster_api.identity import same_cluster
from ultrascale.cluster_api.server import Cluster, missing_rights
from ultrascale.errors import ClusterError, ConfigError
from ultrascale.jobs.workloads import workload_kinds
from ultrascale.parts import backend as part
from ultrascale.parts.backend.model import IdentityPlan
from ultrascale_backend import store
from ultrascale_backend.authentication import TOKEN_REVIEW, Authenticator, Judge, TokenReviews
from ultrascale_backend.callers import Rights
from ultrascale_backend.database import Database
from ultrascale_backend.follower import Follower
from ultrascale_backend.metrics import Metrics
from ultrascale_backend.migrations import migrate
from ultrascale_backend.oidc import Issuer
from ultrascale_backend.rendering import Renderer, open_renderer
from ultrascale_backend.settings import Settings
from ultrascale_backend.web import Backend, application
from ultrascale_backend.worker import Workers

_LOG = logging.getLogger(__name__)
# Seconds in which open requests and tasks in the cluster may end. With the delay before, they stay
# below the 30 that Kubernetes gives a pod.
_FINISH_SECONDS = 8
_THREADS = 10
_KINDS = frozenset(kind.resource for kind in workload_kinds())


def serve(settings: Settings, *, anonymous: bool = False) -> None:
    """Serve until the process gets SIGTERM or SIGINT.

    Args:
        settings: Settings of the process.
        anonymous: Whether callers need no token.

    Raises:
        ConfigError: The cluster file or the rules are wrong; one line for each mistake.
        ClusterError: The cluster is out of reach.
        UnavailableError: The database is out of reach.
    """
    renderer = open_renderer(settings.cluster_file, settings.rules_file, account=settings.account)
    cluster = Cluster.connected()
    same_cluster(settings.cluster_file, cluster)
    identity = None if anonymous else _identity(renderer)
    authenticator = _authenticator(identity, cluster, renderer, settings)
    database = Database(settings.database)
    database.open()
    stopping = threading.Event()
    try:
        database.run(migrate)
        with _backend(database, cluster, renderer, stopping, Rights(identity)) as backend:
            app = application(
                backend, authenticator=authenticator, per_second=settings.requests_per_second
            )
            _Server(app, stopping, settings).run()
    finally:
        database.close()


def _identity(renderer: Renderer) -> IdentityPlan:
    backend = renderer.cluster.plan.part(part.Plan)
    assert backend is not None, "without the backend there is no renderer"
    return backend.identity


def _authenticator(
    identity: IdentityPlan | None, cluster: Cluster, renderer: Renderer, settings: Settings
) -> Authenticator | None:
    """Return the authenticator of callers; None if everybody is allowed.

    Raises:
        ConfigError: No token can be judged, or the file has rights that would have no effect.
    """
    if identity is None:
        if "identity" in _section(renderer).model_fields_set:
            wrong = "the cluster file has backend.identity, which would count for nothing"
            raise ConfigError([f"--insecure-anonymous: {wrong}; leave one of them out"])
        _LOG.warning(
            "INSECURE: callers are not authenticated. Whoever reaches this process may submit "
            "every template with every priority, and see and cancel the jobs of all. Start it "
            "without --insecure-anonymous."
        )
        return None
    judges: list[Judge] = []
    if identity.issuer is not None:
        judges.append(Issuer(identity, ca_file=settings.issuer_ca_file))
    if _may_review_tokens(cluster):
        judges.append(TokenReviews(cluster, identity.accounts_audience))
    if not judges:
        raise ConfigError(
            [
                "backend.identity: nobody can be told apart: this process may not create "
                "tokenreviews.authentication.k8s.io, and the cluster file names no issuer; grant "
                "that right, add issuer, or let everybody in by --insecure-anonymous"
            ]
        )
    if not _section(renderer).identity.admins and not identity.rights:
        _LOG.warning("backend.identity names neither rights nor admins: nobody may submit")
    return Authenticator(judges, tokens_per_second=settings.tokens_per_second)


def _section(renderer: Renderer) -> part.Backend:
    backend = renderer.cluster.cluster.section(part.Backend)
    assert backend is not None, "without the backend there is no renderer"
    return backend


def _may_review_tokens(cluster: Cluster) -> bool:
    """Return whether this process may create TokenReviews; True if the API server does not say."""
    try:
        missing = missing_rights(cluster, [("create", TOKEN_REVIEW)])
    except ClusterError as error:
        _LOG.warning("the API server does not say its rights", extra={"error": str(error)})
        return True
    if missing:
        _LOG.warning("tokens of service accounts are refused: no right to %s", missing[0])
    return not missing


@contextmanager
def _backend(
    database: Database,
    cluster: Cluster,
    renderer: Renderer,
    stopping: threading.Event,
    rights: Rights,
) -> Generator[Backend]:
    """Yield the backend's parts, while the threads run that submit and follow jobs."""
    metrics = Metrics(database)
    workers = Workers(database, cluster, done=lambda outcome: metrics.outbox.labels(outcome).inc())
    followers = [
        Follower(database, cluster, namespace=namespace, kind=kind)
        for namespace, kind in sorted(_followed_kinds(database, renderer))
    ]
    workers.start()
    for follower in followers:
        follower.start()
    try:
        yield Backend(
            database=database,
            cluster=cluster,
            renderer=renderer,
            rights=rights,
            metrics=metrics,
            stopping=stopping,
            wake=workers.wake,
            works=lambda: workers.alive and all(each.alive for each in followers),
        )
    finally:
        workers.stop(timeout_seconds=_FINISH_SECONDS)
        for follower in followers:
            follower.stop(timeout_seconds=_FINISH_SECONDS / len(followers))
        _LOG.info("stopped")


def _followed_kinds(database: Database, renderer: Renderer) -> Iterable[tuple[str, str]]:
    """Yield the namespaces and kinds to follow, of present templates and of older jobs."""
    every = {*renderer.followed, *database.run(store.followed)}
    for namespace, kind in sorted(every):
        if kind in _KINDS:
            yield namespace, kind
        else:
            about = {"namespace": namespace, "kind": kind}
            _LOG.warning("not followed: a kind that this version does not know", extra=about)


class _Server(uvicorn.Server):
    """Server that reports not ready for some seconds before it closes its sockets.

    Kubernetes sends SIGTERM to a pod and removes it from its Services at the same time, so requests
    still arrive after SIGTERM.

    Source: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination-flow
    """

    def __init__(self, app: ASGIApp, stopping: threading.Event, settings: Settings) -> None:
        server = uvicorn.Config(
            app,
            host="0.0.0.0",
            port=settings.port,
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_FINISH_SECONDS,
        )
        super().__init__(server)
        self._stopping = stopping
        self._drain_seconds = settings.drain_seconds
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and store the loop that handles signals."""
        self._loop = asyncio.get_running_loop()
        # More threads would wait for each other: for connections, and for Python's lock.
        current_default_thread_limiter().total_tokens = _THREADS
        await super().startup(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End after a delay; without a delay at a second signal or at SIGINT."""
        again = self._stopping.is_set()
        self._stopping.set()
        if again or sig == signal.SIGINT or self._loop is None:
            self.should_exit = True
            return
        self._loop.call_soon_threadsafe(
            self._loop.call_later, self._drain_seconds, setattr, self, "should_exit", True
        )
