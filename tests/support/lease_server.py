"""An API server that holds one Lease, and a clock that goes on only as tests say."""

import json
from collections.abc import Callable
from http.client import HTTPConnection
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from tests.support.stub_api_server import Object, Reply, Request, StubApiServer
from ultrascale.lambdas.write_canary.handler import Clock

# The start of a minute.
NOON = 1_795_262_400
PATH = "/apis/coordination.k8s.io/v1/namespaces/write-canary/leases/write-canary"


class FakeClock(Clock):
    """A time that goes on while something sleeps, and where a test lets something take long."""

    def __init__(self, start: float) -> None:
        self._now = start
        self._lock = Lock()
        # What is called once a moment has come, by the moment
        self.alarms: dict[float, Callable[[], None]] = {}

    def now(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        wakes = self._now + seconds
        for moment in sorted(self.alarms):
            if moment <= wakes:
                self.advance(max(moment - self._now, 0))
                self.alarms.pop(moment)()
        self.advance(max(wakes - self._now, 0))

    def advance(self, seconds: float) -> None:
        with self._lock:
            # As fine as the clock of a machine.
            self._now = round(self._now + seconds, 6)


class LeaseServer(StubApiServer):
    """The API server."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(token=None, strict=False)
        self.groups.add("/apis/coordination.k8s.io/v1")
        self.put(PATH, {})
        self.clock = clock  # The time that its answers take
        self.seconds = 0.004  # How long each answer takes
        # Seconds and status by the number of a request, from 0; status 0 hangs up
        self.answers: dict[int, tuple[float, int]] = {}
        self.connections = 0  # How often somebody connected
        self.handshake = 0.03  # How long that takes

    @property
    def lease(self) -> Object:
        """The Lease."""
        return self.objects[PATH]

    def respond(self, request: Request) -> Reply:
        assert (request.method, request.path) == ("PATCH", PATH)
        seconds, status = self.answers.get(len(self.requests), (self.seconds, 200))
        self.clock.advance(seconds)
        if status != 200:
            self.requests.append(request)
            return Reply(status, {"kind": "Status", "message": "refused"})
        if request.headers["content-type"] == "application/json-patch+json":
            test, replace = request.body
            assert (test["op"], test["path"]) == ("test", "/spec/holderIdentity")
            assert (replace["op"], replace["path"]) == ("replace", "/spec/renewTime")
            assert replace["value"] != self.lease["spec"]["renewTime"], "nothing would be stored"
        return super().respond(request)

    def connect(self) -> HTTPConnection:
        """Return a connection to it, not yet open."""
        server, url = self, urlsplit(self.url)
        assert url.hostname is not None

        class Connection(HTTPConnection):
            def connect(self) -> None:
                server.connections += 1
                server.clock.advance(server.handshake)
                super().connect()

        return Connection(url.hostname, url.port, timeout=5)

    def bodies(self) -> list[Any]:
        """Return what was sent."""
        return [json.loads(json.dumps(request.body)) for request in self.requests]
