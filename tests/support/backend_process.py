"""The backend as a process of its own, between a real database and a stub of the API server."""

import json
import os
import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support import forked
from tests.support.backend_files import CLUSTER, write_files
from tests.support.callers import ReviewingServer
from tests.support.etcd_server import free_ports
from tests.support.folders import ROOT
from tests.support.postgres_server import PostgresServer
from tests.support.stub_api_http import kubeconfig

_ARN = "arn:aws:eks:us-west-2:111122223333:cluster/small"
_SECONDS = 20.0


def eventually(holds: Callable[[], object], *, seconds: float = _SECONDS) -> None:
    """Wait until ``holds``."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds:g} s"
        time.sleep(0.02)


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of the backend."""

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class BackendProcess:
    """One replica.

    Attributes:
        port: Where it answers.
        token: Token that its clients send, if they say nothing else.
        other: Token of another caller.
        process: The process.
        log: Its log.
    """

    def __init__(
        self, folder: Path, environment: Mapping[str, str], *options: str, token: str | None = None
    ) -> None:
        (self.port,) = free_ports(1)
        self.token = token
        self.other = ""
        self.log = folder / f"log-{self.port}"
        self.process = forked.start(
            "ultrascale_backend.__main__",
            options,
            environment={**environment, "PORT": str(self.port)},
            output=self.log,
            imports="tests.support.backend_imports",
        )

    def ready(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            return self.ask("GET", "/readyz").status == 200
        except OSError:
            return False

    def listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = None,
        token: str | None = "",
    ) -> Answer:
        """Return an answer; an empty token stands for the usual one, None for none."""
        headers = {} if key is None else {"Idempotency-Key": key}
        if sent := self.token if token == "" else token:
            headers["Authorization"] = f"Bearer {sent}"
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        url = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
                return Answer(answer.status, _read(answer.read()), dict(answer.headers))
        except urllib.error.HTTPError as error:
            return Answer(error.code, _read(error.read()), dict(error.headers))

    def submit(self, body: Any, *, key: str) -> Any:
        """Submit a request that is the first of its key, and return it."""
        answer = self.ask("POST", "/requests", body, key=key)
        assert answer.status == 201, answer
        return answer.body

    def state(self, request: Any) -> str:
        return self.ask("GET", f"/requests/{request['id']}").body["state"]

    def logged(self) -> list[dict[str, Any]]:
        """Return the lines of its log, the one aside that it may be writing."""
        lines = self.log.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def kill(self) -> None:
        """End it as a node that is lost does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=10)

    def terminate(self) -> int:
        """End it as a Deployment does, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=_SECONDS)


@dataclass(frozen=True, slots=True)
class Site:
    """A database, an API server and the files that replicas share."""

    folder: Path  # Where the files are
    environment: Mapping[str, str]  # What replicas are told
    token: str  # Token of an account that may submit everything, and is no admin

    @contextmanager
    def replica(self, *options: str, **environment: str) -> Generator[BackendProcess]:
        """Run a replica, ready for requests, meanwhile."""
        with self.replicas(1, *options, **environment) as (only,):
            yield only

    @contextmanager
    def replicas(
        self, count: int, *options: str, **environment: str
    ) -> Generator[list[BackendProcess]]:
        """Run replicas that begin at once."""
        wanted = {**self.environment, **environment}
        running = [
            BackendProcess(self.folder, wanted, *options, token=self.token) for _ in range(count)
        ]
        try:
            eventually(lambda: all(each.ready() for each in running))
            yield running
        finally:
            for each in running:
                each.kill()


def site(
    folder: Path,
    server: PostgresServer,
    database: str,
    stub: ReviewingServer,
    *,
    cluster_file: str = CLUSTER,
) -> Site:
    """Return where replicas on ``database`` submit to ``stub``."""
    cluster, rules = write_files(folder, cluster=cluster_file)
    paths = os.pathsep.join([str(ROOT), str(ROOT / "backend")])
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": paths,
        "PYTHONWARNINGS": "error",
        "HOME": str(folder),
        "KUBECONFIG": str(kubeconfig(folder, stub.url, cluster=_ARN)),
        "ULTRASCALE_CLUSTER_FILE": str(cluster),
        "ULTRASCALE_RULES_FILE": str(rules),
        "DATABASE_URL": server.url(database),
        "SHUTDOWN_DELAY_SECONDS": "0.3",
        # Tests ask far more often than people.
        "CALLER_REQUESTS_PER_SECOND": "10000",
        "ADDRESS_TOKENS_PER_SECOND": "1000",
    }
    return Site(folder, environment, stub.token_of())


def _read(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode()
