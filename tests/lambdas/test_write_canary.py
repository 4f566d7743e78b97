"""The canary that writes each second: on what it counts rest the objective and its alarms."""

import base64
import json
import ssl
from collections import Counter
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from threading import Lock
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock
from urllib.parse import urlsplit

import pytest

from tests.support.observability_plans import CLUSTERS, of
from tests.support.stub_api_http import serve
from tests.support.stub_api_server import Object, Reply, Request, StubApiServer
from ultrascale.lambdas.kubernetes import ApiServer
from ultrascale.lambdas.write_canary import handler
from ultrascale.lambdas.write_canary.handler import Clock, Lease, Settings, run

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


LATENCY = of(CLUSTERS["with an objective"]).write_latency
assert LATENCY is not None
# As the schedule hands it over.
EVENT: Any = json.loads(json.dumps(LATENCY.function.input))
RUN: Any = SimpleNamespace(aws_request_id="run-1")
GOOD, TOTAL, DURATION = "WritesWithin15ms", "WritesTotal", "WriteMilliseconds"
# With the write that takes the Lease, which is not counted, the first second's write is number 1.
FIRST = 1


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOON + 10.25)


@pytest.fixture
def server(clock: FakeClock) -> Iterator[LeaseServer]:
    server = LeaseServer(clock)
    with serve(server):
        yield server


def lease(server: LeaseServer, holder: str = "a") -> Lease:
    return Lease(server.connect, path=EVENT["Path"], token="secret", holder=holder)


def settings(seconds: float) -> Settings:
    event: Any = {**EVENT, "Seconds": seconds}
    return Settings.parse(event)


def written(server: LeaseServer, seconds: float = 20.5, holder: str = "a") -> list[Any]:
    """Run the canary, and return what it logged."""
    own = lease(server, holder)
    try:
        return [*run(own, settings(seconds), server.clock)]
    finally:
        own.close()


def counted(logged: list[Any]) -> tuple[int, int]:
    """Return the good writes and all writes of a log."""
    events: list[dict[str, Any]] = [each for each in logged if isinstance(each, dict)]
    return sum(each[GOOD] for each in events), sum(each[TOTAL] for each in events)


def test_a_write_is_due_on_each_second_and_all_go_over_one_connection(server: LeaseServer) -> None:
    assert counted(written(server)) == (20, 20)
    assert server.connections == 1
    moments = [body[1]["value"] for body in server.bodies()[FIRST:]]
    assert moments[0].endswith(":11.000000Z")
    assert moments[-1].endswith(":30.000000Z")
    assert len({*moments}) == 20


@pytest.mark.parametrize(("milliseconds", "good"), [(0.5, 20), (15, 20), (15.1, 0), (900, 0)])
def test_a_write_within_the_threshold_is_a_good_one(
    server: LeaseServer, milliseconds: float, good: int
) -> None:
    server.seconds = milliseconds / 1000
    server.answers[0] = (0.004, 200)
    assert counted(written(server)) == (good, 20)


def test_what_a_client_waits_for_once_is_not_counted(server: LeaseServer) -> None:
    # The handshake, and whose token it is.
    server.handshake = 0.5
    server.answers[0] = (0.2, 200)
    assert counted(written(server)) == (20, 20)


@pytest.mark.parametrize("status", [401, 403, 404, 409, 422, 429, 500, 503])
def test_a_write_that_fails_is_a_write_and_no_good_one(server: LeaseServer, status: int) -> None:
    # A 422 while it holds the Lease tells that another run does.
    server.answers = {
        number: (0.001, status) for number in range(0 if status == 422 else FIRST, 21)
    }
    *events, why = written(server)
    assert counted(events) == (0, 20)
    assert f"20 writes failed: {status}: " in why


def test_an_api_server_that_cannot_be_reached_is_no_silence(clock: FakeClock) -> None:
    server = LeaseServer(clock)
    server.url = "http://127.0.0.1:9"
    first, event, why = written(server, seconds=5)
    assert "could not be taken: ConnectionRefusedError" in first
    assert counted([event]) == (0, 5)
    assert "5 writes failed: ConnectionRefusedError" in why


def test_failures_between_writes_spoil_none_but_themselves(server: LeaseServer) -> None:
    server.answers = {5: (0.001, 503), 6: (0.001, 429), 11: (0.001, 500)}
    assert counted(written(server)) == (17, 20)


@pytest.mark.parametrize(("handshake", "good"), [(0.002, 20), (0.03, 19)])
def test_a_connection_that_the_server_closed_is_opened_at_the_cost_of_the_write_that_met_it(
    server: LeaseServer, handshake: float, good: int
) -> None:
    server.handshake = handshake
    server.answers[8] = (0, 0)
    logged = written(server)
    assert counted(logged) == (good, 20)
    assert server.connections == 2
    # Sent again as it was, so that it is stored once.
    assert server.bodies()[8] == server.bodies()[9]


def test_a_server_that_hangs_up_twice_has_failed(server: LeaseServer) -> None:
    server.answers = {8: (0, 0), 9: (0, 0)}
    *events, why = written(server)
    # The next write is the one that waits for another connection.
    assert counted(events) == (18, 20)
    assert "1 writes failed: RemoteDisconnected" in why


def test_seconds_that_a_slow_write_took_from_others_count_against_it(server: LeaseServer) -> None:
    # Else a server that hangs for nine seconds would have one slow write of eleven.
    server.answers[6] = (9.5, 200)
    assert counted(written(server)) == (10, 20)
    assert len(server.requests) == 1 + 11


def test_counts_are_those_of_the_minute_that_a_write_was_due_in(server: LeaseServer) -> None:
    server.answers[FIRST + 49] = (0.2, 200)
    events = written(server, seconds=90)
    minutes = {each["_aws"]["Timestamp"]: (each[GOOD], each[TOTAL]) for each in events}
    # Due at 11 to 59, then 0 to 40 of the next minute, of which the first was slow.
    assert minutes == {NOON * 1000: (49, 49), (NOON + 60) * 1000: (40, 41)}


def test_an_event_is_one_that_cloudwatch_makes_metrics_of(server: LeaseServer) -> None:
    (event,) = written(server)
    (directive,) = event["_aws"]["CloudWatchMetrics"]

    assert directive["Namespace"] == "Ultrascale"
    assert directive["Dimensions"] == [["ClusterName"]]
    assert event["ClusterName"] == "research"
    assert {each["Name"]: each["Unit"] for each in directive["Metrics"]} == {
        GOOD: "Count",
        TOTAL: "Count",
        DURATION: "Milliseconds",
    }
    # CloudWatch takes a hundred values of a metric in an event.
    assert event[DURATION] == [4.0] * 20


def test_a_run_that_another_took_over_from_stops(server: LeaseServer) -> None:
    # The next run is called after a minute and some, as schedules are.
    second = lease(server, "b")
    server.clock.alarms[NOON + 71.6] = lambda: second.write("2026-11-21T12:01:11.600000Z")
    assert counted(written(server, seconds=90)) == (61, 61)
    second.close()
    assert server.lease["spec"] == {
        "holderIdentity": "b",
        "renewTime": "2026-11-21T12:01:11.600000Z",
    }


def test_runs_that_overlap_count_each_second_once(server: LeaseServer) -> None:
    second = lease(server, "b")
    server.clock.alarms[NOON + 40.5] = lambda: second.write("2026-11-21T12:00:40.500000Z")

    logs = written(server, seconds=90)
    # The other process has lived through the same half second.
    server.clock = FakeClock(NOON + 40.54)
    logs += run(second, settings(30), server.clock)
    second.close()

    minutes = Counter[int]()
    for event in logs:
        minutes[event["_aws"]["Timestamp"] // 1000 - NOON] += event[TOTAL]
    # From second 11 to second 70, half of them by each.
    assert minutes == {0: 49, 60: 11}
    assert [counted([event])[1] for event in logs] == [30, 19, 11]


def test_the_last_run_ends_by_itself(server: LeaseServer) -> None:
    assert counted(written(server, seconds=90)) == (90, 90)


@pytest.fixture
def environment(server: LeaseServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    authority = base64.b64encode(b"a certificate").decode()
    url = server.url.replace("http:", "https:")
    found = ApiServer(endpoint=url, certificate_authority=authority)
    monkeypatch.setattr(handler, "look_up", Mock(return_value=found))
    monkeypatch.setattr(handler, "tls_context", lambda _: ssl.create_default_context())  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]

    def plain(host: str, port: int, *, timeout: float, context: ssl.SSLContext) -> HTTPConnection:
        assert context.verify_mode is ssl.CERT_REQUIRED
        return HTTPConnection(host, port, timeout=timeout)

    monkeypatch.setattr(handler, "HTTPSConnection", plain)
    monkeypatch.setattr(handler, "Clock", lambda: server.clock)


@pytest.mark.usefixtures("environment")
def test_a_call_writes_in_its_own_name_and_logs_metrics(
    server: LeaseServer, capsys: pytest.CaptureFixture[str]
) -> None:
    handler.on_event(EVENT, RUN)
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert counted(events) == (90, 90)
    assert server.lease["spec"]["holderIdentity"] == "run-1"
    (token,) = {request.headers["authorization"] for request in server.requests}
    signed = base64.urlsafe_b64decode(token.removeprefix("Bearer k8s-aws-v1.") + "==")
    assert b"sts.us-east-1.amazonaws.com" in signed
    assert {request.path for request in server.requests} == {PATH}


@pytest.mark.usefixtures("environment")
def test_a_call_that_cannot_begin_says_nothing_that_could_pass_for_a_measurement(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(handler, "look_up", Mock(side_effect=KeyError("cluster")))
    with pytest.raises(KeyError):
        handler.on_event(EVENT, RUN)
    assert capsys.readouterr().out == ""
