"""An API server that holds one Lease, and a time that goes on only as tests say."""

import json
from collections.abc import Callable
from http.client import HTTPConnection
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from tests.support.stub_api_server import Object, Reply, Request, StubApiServer
from ultrascale.lambdas.write_canary.run import Clock

# The start of a minute.
NOON = 1_795_262_400
PATH = "/apis/coordination.k8s.io/v1/namespaces/write-canary/leases/write-canary"


class FakeClock(Clock):
    """A time that goes on while something sleeps, and where a test lets something take long.

    Attributes:
        alarms: What is called once a moment has come, by the moment.
    """

    def __init__(self, start: float) -> None:
        self._now = start
        self._lock = Lock()
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
    """The API server.

    Attributes:
        clock: The time that its answers take.
        seconds: How long each answer takes.
        answers: Seconds and status by the number of a request, from 0; status 0 hangs up.
        lease: The Lease.
        connections: How often somebody connected.
        handshake: How long that takes.
    """

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self.clock = clock
        self.seconds = 0.004
        self.answers: dict[int, tuple[float, int]] = {}
        self.lease: Object = {"metadata": {"name": "write-canary"}}
        self.connections = 0
        self.handshake = 0.03

    def respond(self, request: Request) -> Reply:
        number = len(self.requests)
        self.requests.append(request)
        assert (request.method, request.path) == ("PATCH", PATH)
        seconds, status = self.answers.get(number, (self.seconds, 200))
        self.clock.advance(seconds)
        if status != 200:
            return Reply(status, {"kind": "Status", "message": "refused"})
        return self._patch(request)

    def _patch(self, request: Request) -> Reply:
        if request.headers["content-type"] == "application/merge-patch+json":
            self.lease.setdefault("spec", {}).update(request.body["spec"])
            return Reply(200, self.lease)
        assert request.headers["content-type"] == "application/json-patch+json"
        test, replace = request.body
        assert (test["op"], test["path"]) == ("test", "/spec/holderIdentity")
        if self.lease["spec"]["holderIdentity"] != test["value"]:
            return Reply(422, {"kind": "Status", "reason": "Invalid"})
        assert (replace["op"], replace["path"]) == ("replace", "/spec/renewTime")
        assert replace["value"] != self.lease["spec"]["renewTime"], "nothing would be stored"
        self.lease["spec"]["renewTime"] = replace["value"]
        return Reply(200, self.lease)

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
