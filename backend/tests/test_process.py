"""The backend as it runs: a request becomes one job, whatever dies meanwhile."""

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from statistics import quantiles
from threading import Event
from typing import Any

import pytest

from tests.support.backend_files import PRODUCTION, RESEARCH
from tests.support.backend_load import submit_at_once
from tests.support.backend_process import BackendProcess, Site, eventually, site
from tests.support.callers import ReviewingServer
from tests.support.postgres_server import PostgresServer
from tests.support.soak import LONG
from tests.support.stub_api_http import serve
from tests.support.stub_api_server import Object, Reply, Request, StubApiServer

pytestmark = pytest.mark.postgres

JOBS = "/apis/batch/v1/namespaces/training/jobs"
SERVICES = "/api/v1/namespaces/training/services"
# They come at once; a thousand with SOAK in the environment.
_MANY = 1000 if LONG else 200


class HeldServer(ReviewingServer):
    """An API server that can take a request to create something, and answer nothing.

    Attributes:
        held: Whether it does.
        reached: Set once such a request has come.
        released: Ends the wait of those that came; with ``answers`` they are then carried out.
        answers: Whether they are.
    """

    def __init__(self) -> None:
        super().__init__()
        self.held = self.answers = False
        self.reached, self.released = Event(), Event()

    def respond(self, request: Request) -> Reply:
        if self.held and request.method == "POST" and request.path.startswith((JOBS, SERVICES)):
            self.reached.set()
            self.released.wait(20)
            if not self.answers:
                return Reply(0)
        return super().respond(request)


class Made(Counter[str]):
    """Counts of created objects."""

    def __call__(self, path: str, _: Object) -> None:
        self[path] += 1


@pytest.fixture
def stub() -> Iterator[HeldServer]:
    with serve(server := HeldServer()):
        yield server


@pytest.fixture
def made(stub: StubApiServer) -> Made:
    stub.on_create = made = Made()
    return made


@pytest.fixture
def here(tmp_path: Path, postgres: PostgresServer, database: str, stub: HeldServer) -> Site:
    return site(tmp_path, postgres, database, stub)


def job(request: Any) -> str:
    return f"{JOBS}/{request['job_name']}"


def service(request: Any) -> str:
    return f"{SERVICES}/{request['job_name']}"


def submissions(backend: BackendProcess) -> int:
    return sum(line.get("outcome") == "submitted" for line in backend.logged())


def test_a_request_is_submitted_and_followed_to_its_end(
    here: Site, stub: StubApiServer, made: Made
) -> None:
    with here.replica() as backend:
        request = backend.submit(PRODUCTION, key="one")
        eventually(lambda: backend.state(request) == "submitted")
        stub.update(job(request), status={"active": 2, "ready": 2})
        eventually(lambda: backend.state(request) == "running")
        # What happens while the watch is broken is seen all the same.
        stub.compact()
        complete = {"type": "Complete", "status": "True"}
        stub.update(job(request), status={"succeeded": 2, "conditions": [complete]})
        eventually(lambda: backend.state(request) == "succeeded")
        shown = backend.ask("GET", f"/requests/{request['id']}").body
        lines = backend.logged()

    assert made == {job(request): 1, service(request): 1}
    assert shown["created_at"] < shown["submitted_at"] < shown["started_at"] < shown["ended_at"]
    assert {"time", "level", "logger", "message"} <= set.intersection(*map(set, lines))
    assert request["id"] in {line.get("request") for line in lines}


def test_a_process_that_dies_before_it_submits_loses_no_request(
    here: Site, stub: HeldServer, made: Made
) -> None:
    stub.held = True
    with here.replica() as backend:
        request = backend.submit(PRODUCTION, key="one")
        assert stub.reached.wait(10)
        backend.kill()
    stub.held = False
    stub.released.set()
    assert made == {}

    with here.replica() as backend:
        eventually(lambda: backend.state(request) == "submitted")

    assert made == {service(request): 1, job(request): 1}


def test_a_process_that_dies_before_it_records_a_submission_submits_it_once(
    here: Site, stub: StubApiServer, made: Made
) -> None:
    dying: list[BackendProcess] = []

    def kill_it(path: str, found: Object) -> None:
        made(path, found)
        if path.startswith(JOBS) and dying:
            dying.pop().kill()

    stub.on_create = kill_it
    with here.replica() as backend:
        dying.append(backend)
        # It may die before it answers, too.
        with suppress(ConnectionError):
            backend.submit(PRODUCTION, key="one")
        eventually(lambda: not dying)

    with here.replica() as backend:
        request = backend.ask("POST", "/requests", PRODUCTION, key="one").body
        eventually(lambda: backend.state(request) == "submitted")

    assert made == {service(request): 1, job(request): 1}
    assert len([each for each in stub.asked("POST", JOBS)]) == 2


def test_many_requests_at_once_to_two_replicas_become_as_many_jobs(
    here: Site, made: Made, postgres: PostgresServer, database: str
) -> None:
    keys = [f"key-{number}" for number in range(_MANY)]
    with here.replicas(2) as replicas:
        load = submit_at_once([each.port for each in replicas], RESEARCH, keys, token=here.token)
        count = "SELECT count(*) FROM requests WHERE state = 'submitted'"
        eventually(lambda: postgres.ask(database, count) == [(_MANY,)], seconds=60)
        # Each is logged once it is committed.
        eventually(lambda: sum(map(submissions, replicas)) >= _MANY)
        submitting = [submissions(each) for each in replicas]

    cuts = quantiles(load.seconds, n=100)
    print(f"{_MANY} at once: median {cuts[49]:.2f} s, 99 % within {cuts[98]:.2f} s")
    assert Counter(load.statuses) == {201: _MANY}
    assert made == dict.fromkeys((job(each) for each in load.bodies), 1)
    assert sum(submitting) == _MANY
    assert all(submitting)


def test_a_request_that_comes_many_times_at_once_becomes_one_job(here: Site, made: Made) -> None:
    with here.replicas(2) as replicas:
        load = submit_at_once(
            [each.port for each in replicas], RESEARCH, ["same"] * 40, token=here.token
        )
        eventually(lambda: replicas[0].state(load.bodies[0]) == "submitted")
        again = replicas[1].ask("POST", "/requests", RESEARCH, key="same")
        other = replicas[1].ask("POST", "/requests", PRODUCTION, key="same")

    assert Counter(load.statuses) == {201: 1, 200: 39}
    assert len({each["id"] for each in load.bodies}) == 1
    assert made == {job(load.bodies[0]): 1}
    assert (again.status, again.body["state"]) == (200, "submitted")
    assert other.status == 422


def test_a_restart_of_the_database_loses_and_doubles_nothing(
    here: Site, made: Made, postgres: PostgresServer, database: str
) -> None:
    restarted = Event()

    with here.replica() as backend, ThreadPoolExecutor(9) as pool:

        def submit_all(client: int) -> list[Any]:
            sent: list[Any] = []
            while len(sent) < 5 or not restarted.is_set():
                sent.append(backend.submit(RESEARCH, key=f"{client}-{len(sent)}"))
            return sent

        clients = [pool.submit(submit_all, number) for number in range(8)]
        eventually(lambda: made)
        postgres.stop()
        unready = backend.ask("GET", "/readyz").status
        healthy = backend.ask("GET", "/healthz").status
        postgres.start()
        eventually(backend.ready)
        restarted.set()
        sent = [each for client in clients for each in client.result(timeout=30)]
        pending = "SELECT count(*) FROM outbox"
        eventually(lambda: postgres.ask(database, pending) == [(0,)])

    assert (unready, healthy) == (503, 200)
    assert made == dict.fromkeys((job(each) for each in sent), 1)


def test_a_process_that_is_told_to_end_first_is_not_ready_and_ends_what_it_began(
    here: Site, stub: HeldServer, made: Made, postgres: PostgresServer, database: str
) -> None:
    stub.held = stub.answers = True
    delay = {"SHUTDOWN_DELAY_SECONDS": "1"}
    with here.replica(**delay) as backend, ThreadPoolExecutor(1) as pool:
        first = backend.submit(RESEARCH, key="one")
        assert stub.reached.wait(10)
        ending = pool.submit(backend.terminate)
        eventually(lambda: backend.ask("GET", "/readyz").status == 503)
        time.sleep(0.5)
        second = backend.submit(RESEARCH, key="two")
        eventually(lambda: not backend.listens())
        # It waits for what it sent, and not for the next thing.
        time.sleep(0.5)
        stub.released.set()
        code = ending.result(timeout=20)

    assert code == 0
    rows = dict(postgres.ask(database, "SELECT job_name, state FROM requests"))
    assert rows.keys() == {first["job_name"], second["job_name"]}
    assert rows[first["job_name"]] == "submitted"
    for name, state in rows.items():
        assert made[f"{JOBS}/{name}"] == (state == "submitted")


def test_a_process_with_a_wrong_environment_says_all_that_is_wrong_and_ends(here: Site) -> None:
    environment = {
        **here.environment,
        "DATABASE_HOST": "db.example",
        "AWS_ACCOUNT_ID": "12",
        "ULTRASCALE_RULES_FILE": "/nowhere.yaml",
    }

    backend = BackendProcess(here.folder, environment)

    assert backend.process.wait(timeout=20) == 1
    told = [line["message"].split(":")[1].strip() for line in backend.logged()]
    assert told == ["ULTRASCALE_RULES_FILE", "DATABASE_URL", "AWS_ACCOUNT_ID"]
