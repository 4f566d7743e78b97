"""The HTTP interface of the backend, on one replica that these tests share."""

import re
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from tests.support.backend_files import IMAGE, PRODUCTION, RESEARCH
from tests.support.backend_process import BackendProcess, eventually, site
from tests.support.callers import ReviewingServer
from tests.support.postgres_server import PostgresServer
from tests.support.stub_api_http import serve
from tests.support.stub_api_server import Refusal, StubApiServer

pytestmark = pytest.mark.postgres

JOBS = "/apis/batch/v1/namespaces/training/jobs"
SERVICES = "/api/v1/namespaces/training/services"
PODS = "/api/v1/namespaces/training/pods"
OWNERS = (
    "/apis/apps/v1/namespaces/training/deployments",
    "/apis/batch.volcano.sh/v1alpha1/namespaces/training/jobs",
    "/apis/jobset.x-k8s.io/v1alpha2/namespaces/training/jobsets",
    "/apis/kubeflow.org/v1/namespaces/training/pytorchjobs",
    "/apis/leaderworkerset.x-k8s.io/v1/namespaces/training/leaderworkersets",
    "/apis/ray.io/v1/namespaces/training/rayjobs",
    "/apis/sagemaker.amazonaws.com/v1/namespaces/training/hyperpodpytorchjobs",
)
_KEYS = count()


@pytest.fixture(scope="module")
def stub() -> Iterator[ReviewingServer]:
    with serve(server := ReviewingServer()):
        yield server


@pytest.fixture(scope="module")
def backend(
    tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer, stub: ReviewingServer
) -> Iterator[BackendProcess]:
    folder = tmp_path_factory.mktemp("backend")
    with site(folder, postgres, postgres.new_database(), stub).replica() as replica:
        yield replica


def key() -> str:
    return f"key-{next(_KEYS)}"


def reaches(backend: BackendProcess, request: Any, state: str) -> None:
    eventually(lambda: backend.state(request) == state)


@pytest.mark.parametrize(
    ("body", "starts"),
    [
        pytest.param(b"{", ["invalid JSON"], id="no JSON"),
        pytest.param(
            {"urgency": "now", "deadline": "tomorrow", "jobs": {}},
            ["type: missing", "urgency: ", "deadline: ", "jobs: unknown key"],
            id="every key",
        ),
        pytest.param(
            {"type": "reserch", "deadline": "2020-01-01T00:00:00Z"},
            ["type: unknown, got 'reserch'; did you mean research?", "deadline: it has passed"],
            id="a type that no rule has",
        ),
        pytest.param(
            {"type": "research", "deadline": "2026-12-01T00:00:00"},
            ["deadline: input should have timezone info"],
            id="a deadline without a time zone",
        ),
        pytest.param(
            {"type": "research", "deadline": "9999-12-31T00:00:00Z"},
            ["deadline: more than ten years ahead"],
            id="a deadline that no database holds",
        ),
        pytest.param(
            {
                "type": "production",
                "job": {"priority": "critical", "nodes": 0, "image": "train", "env": {"1A": "x"}},
            },
            ["job: priority: not a key", "job: nodes: ", "job: env.1A: "],
            id="keys of the job",
        ),
        pytest.param(
            {"type": "research", "job": {"image": IMAGE, "command": ["a\u0000b"]}},
            ["job: a NUL character"],
            id="a word that no program can be given",
        ),
        pytest.param(
            b'{"type": "research", "job": {"image": "\\ud800"}}',
            ["invalid JSON"],
            id="half a character",
        ),
        pytest.param([], ["input should be an object"], id="no object"),
    ],
)
def test_everything_that_is_wrong_with_a_request_is_told_at_once(
    backend: BackendProcess, body: Any, starts: list[str]
) -> None:
    answer = backend.ask("POST", "/requests", body, key=key())

    assert answer.status == 400
    told = answer.body["mistakes"]
    assert all(any(each.startswith(start) for each in told) for start in starts), told


@pytest.mark.parametrize("wrong", [None, "x" * 256], ids=["none", "too long"])
def test_a_request_without_a_key_that_tells_it_from_others_is_refused(
    backend: BackendProcess, wrong: str | None
) -> None:
    answer = backend.ask("POST", "/requests", RESEARCH, key=wrong)

    assert answer.status == 400
    assert answer.body["mistakes"][0].startswith("Idempotency-Key: ")


def test_a_body_larger_than_any_job_is_refused(backend: BackendProcess) -> None:
    body = {"type": "research", "job": {"image": "x" * 2**20}}

    assert backend.ask("POST", "/requests", body, key=key()).status == 413


def test_a_client_that_is_slow_to_send_too_large_a_body_is_told_what_is_wrong(
    backend: BackendProcess,
) -> None:
    """Not that its connection was reset."""
    size = 2**22
    head = (
        f"POST /requests HTTP/1.1\r\nHost: backend\r\nConnection: close\r\n"
        f"Authorization: Bearer {backend.token}\r\nContent-Length: {size}"
    )
    with socket.create_connection(("127.0.0.1", backend.port), timeout=30) as client:
        client.sendall(f"{head}\r\n\r\n".encode())
        time.sleep(0.5)
        client.sendall(b"x" * size)

        assert client.recv(1024).startswith(b"HTTP/1.1 413 ")


def test_a_client_that_waits_to_be_asked_for_too_large_a_body_is_not_asked(
    backend: BackendProcess,
) -> None:
    head = (
        "POST /requests HTTP/1.1\r\nHost: backend\r\nContent-Length: 4194304\r\n"
        f"Authorization: Bearer {backend.token}\r\n"
    )
    with socket.create_connection(("127.0.0.1", backend.port), timeout=5) as client:
        client.sendall(f"{head}Expect: 100-continue\r\n\r\n".encode())

        assert client.recv(1024).startswith(b"HTTP/1.1 413 ")


def test_a_request_that_comes_again_with_its_keys_in_another_order_is_the_same(
    backend: BackendProcess,
) -> None:
    same = key()
    first = backend.submit(PRODUCTION, key=same)

    again = backend.ask("POST", "/requests", dict(reversed(PRODUCTION.items())), key=same)

    assert (again.status, again.body["id"]) == (200, first["id"])
    reaches(backend, first, "submitted")


def test_a_request_that_comes_again_after_its_deadline_is_answered_all_the_same(
    backend: BackendProcess,
) -> None:
    same = key()
    due = datetime.now(UTC) + timedelta(seconds=1)
    body = {**RESEARCH, "deadline": due.isoformat()}
    first = backend.submit(body, key=same)
    reaches(backend, first, "submitted")
    time.sleep(max(0, (due - datetime.now(UTC)).total_seconds()))

    again = backend.ask("POST", "/requests", body, key=same)

    assert (again.status, again.body["id"]) == (200, first["id"])


def test_a_job_that_the_cluster_refuses_fails_with_its_words_and_leaves_nothing(
    backend: BackendProcess, stub: StubApiServer
) -> None:
    stub.refuse("POST", f"{JOBS}$", Refusal(422, "spec.template: Invalid value", times=1))

    request = backend.submit(PRODUCTION, key=key())

    reaches(backend, request, "failed")
    shown = backend.ask("GET", f"/requests/{request['id']}").body
    assert "spec.template: Invalid value" in shown["reason"]
    assert stub.find(f"{SERVICES}/{request['job_name']}") is None


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(Refusal(403, "exceeded quota: gpus", times=1), id="quota"),
        pytest.param(Refusal(503, "etcd has no leader", times=1), id="API server"),
        pytest.param(Refusal(0, times=1, after=True), id="an answer that is lost"),
    ],
)
def test_a_job_that_the_cluster_cannot_take_now_is_submitted_later(
    backend: BackendProcess, stub: StubApiServer, refusal: Refusal
) -> None:
    stub.refuse("POST", f"{JOBS}$", refusal)

    request = backend.submit(RESEARCH, key=key())

    reaches(backend, request, "submitted")
    assert stub.find(f"{JOBS}/{request['job_name']}") is not None


def test_a_job_of_somebody_else_is_neither_taken_for_ours_nor_deleted(
    backend: BackendProcess, stub: StubApiServer
) -> None:
    others: list[str] = []

    def squat(path: str, _: object) -> None:
        if path.startswith(SERVICES) and not others:
            others.append(path.replace(SERVICES, JOBS))
            stub.put(others[0], {"kind": "Job", "metadata": {"labels": {}}})

    stub.on_create = squat
    request = backend.submit(PRODUCTION, key=key())

    reaches(backend, request, "failed")
    assert stub.find(others[0]) is not None


def test_a_cancelled_job_is_taken_away(backend: BackendProcess, stub: StubApiServer) -> None:
    request = backend.submit(PRODUCTION, key=key())
    reaches(backend, request, "submitted")

    answer = backend.ask("DELETE", f"/requests/{request['id']}")

    assert (answer.status, answer.body["cancel_requested"]) == (202, True)
    reaches(backend, request, "cancelled")
    assert not [path for path in stub.paths() if request["job_name"] in path]


def test_a_request_that_waits_for_the_cluster_can_be_cancelled(
    backend: BackendProcess, stub: StubApiServer
) -> None:
    stub.refuse("POST", f"{JOBS}$", Refusal(403, "exceeded quota", times=1))
    request = backend.submit(RESEARCH, key=key())

    backend.ask("DELETE", f"/requests/{request['id']}")

    reaches(backend, request, "cancelled")
    assert stub.find(f"{JOBS}/{request['job_name']}") is None


def test_a_job_that_is_made_too_late_for_a_cancelled_request_is_taken_away(
    backend: BackendProcess, stub: StubApiServer
) -> None:
    request = backend.submit(RESEARCH, key=key())
    reaches(backend, request, "submitted")
    path = f"{JOBS}/{request['job_name']}"
    late = stub.find(path)
    assert late is not None
    backend.ask("DELETE", f"/requests/{request['id']}")
    reaches(backend, request, "cancelled")

    stub.put(path, {**late, "metadata": {**late["metadata"], "uid": "another"}})

    eventually(lambda: stub.find(path) is None)
    assert backend.state(request) == "cancelled"


def test_a_job_that_somebody_deletes_is_known_to_be_gone(
    backend: BackendProcess, stub: StubApiServer
) -> None:
    request = backend.submit(RESEARCH, key=key())
    reaches(backend, request, "submitted")

    stub.remove(f"{JOBS}/{request['job_name']}")

    reaches(backend, request, "cancelled")


def test_a_job_that_goes_while_nobody_watches_is_known_to_be_gone(
    backend: BackendProcess, stub: StubApiServer
) -> None:
    request = backend.submit(RESEARCH, key=key())
    reaches(backend, request, "submitted")
    # Nothing tells of the deletion any more.
    stub.objects.pop(f"{JOBS}/{request['job_name']}")
    stub.compact()

    reaches(backend, request, "cancelled")


def test_an_ended_job_that_kubernetes_takes_away_stays_what_it_was(
    backend: BackendProcess, stub: StubApiServer
) -> None:
    request = backend.submit(RESEARCH, key=key())
    reaches(backend, request, "submitted")
    path = f"{JOBS}/{request['job_name']}"
    told = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
    stub.update(path, status={"failed": 4, "conditions": [told]})
    reaches(backend, request, "failed")

    stub.remove(path)
    other = backend.submit(RESEARCH, key=key())
    stub_path = f"{JOBS}/{other['job_name']}"
    eventually(lambda: stub.find(stub_path))
    stub.update(stub_path, status={"ready": 1, "active": 1})
    reaches(backend, other, "running")

    shown = backend.ask("GET", f"/requests/{request['id']}").body
    assert (shown["state"], shown["reason"]) == ("failed", "Failed: BackoffLimitExceeded")
    ended = backend.ask("DELETE", f"/requests/{request['id']}").body
    assert (ended["state"], ended["cancel_requested"]) == ("failed", False)


def test_requests_are_listed_in_pages_the_newest_first(backend: BackendProcess) -> None:
    requests = [backend.submit(RESEARCH, key=key()) for _ in range(3)]
    sent = [each["id"] for each in requests]

    first = backend.ask("GET", "/requests?limit=2").body
    second = backend.ask("GET", f"/requests?limit=2&after={first['next']}").body

    listed = [each["id"] for each in (*first["requests"], *second["requests"])]
    assert listed[:3] == sent[::-1]
    for each in requests:
        reaches(backend, each, "submitted")
    states = backend.ask("GET", "/requests?state=failed&limit=500").body["requests"]
    assert {each["state"] for each in states} <= {"failed"}


def test_a_list_that_cannot_be_is_refused_with_every_reason(backend: BackendProcess) -> None:
    answer = backend.ask("GET", "/requests?state=done&limit=0&after=x&sort=asc")

    assert answer.status == 400
    keys = [each.partition(":")[0] for each in answer.body["mistakes"]]
    assert sorted(keys) == ["after", "limit", "sort", "state"]


def test_pods_of_a_request_say_why_they_wait(backend: BackendProcess, stub: StubApiServer) -> None:
    request = backend.submit(RESEARCH, key=key())
    why = "0/16 nodes are available: 16 Insufficient nvidia.com/gpu."
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": why,
    }
    labels = {"ultrascale.dev/job": request["job_name"]}
    status = {"phase": "Pending", "conditions": [condition]}
    stub.put(f"{PODS}/one", {"kind": "Pod", "metadata": {"labels": labels}, "status": status})
    strangers = {
        "labels": labels,
        "ownerReferences": [{"kind": "Job", "name": request["job_name"], "uid": "of-a-stranger"}],
    }
    stub.put(f"{PODS}/other", {"kind": "Pod", "metadata": strangers, "status": status})

    (pod,) = backend.ask("GET", f"/requests/{request['id']}/pods").body["pods"]

    assert (pod["state"], pod["reason"]) == ("pending", f"Unschedulable: {why}")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_request_that_is_not_there_is_not_found(backend: BackendProcess, method: str) -> None:
    nowhere = "/requests/00000000-0000-0000-0000-000000000000"

    assert backend.ask(method, nowhere).status == 404
    assert backend.ask("GET", f"{nowhere}/pods").status == 404


def test_metrics_tell_what_waits_and_what_was_done(backend: BackendProcess) -> None:
    text = str(backend.ask("GET", "/metrics").body)

    for name in (
        r'ultrascale_backend_requests{state="pending"} \d',
        r"ultrascale_backend_outbox_oldest_seconds \d",
        r'ultrascale_backend_outbox_entries_total{outcome="submitted"} \d',
        r'ultrascale_backend_http_requests_total{method="POST",status="201"} \d',
    ):
        assert re.search(name, text)


def test_it_asks_the_cluster_for_nothing_that_its_role_does_not_grant(
    backend: BackendProcess, stub: StubApiServer
) -> None:
    request = backend.submit(PRODUCTION, key=key())
    reaches(backend, request, "submitted")
    backend.ask("DELETE", f"/requests/{request['id']}")
    reaches(backend, request, "cancelled")

    asked = {
        (each.method, re.sub(r"/(request-\w+|one)$", "/NAME", each.path)) for each in stub.requests
    }
    assert asked <= {
        ("GET", JOBS),
        ("GET", PODS),
        # Jobs that hold the nodes that a new one waits for are named by the objects that own pods.
        *((("GET", path)) for path in OWNERS),
        # Every account may ask for its own rights.
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        ("POST", "/apis/authentication.k8s.io/v1/tokenreviews"),
        *((method, path) for path in (JOBS, SERVICES) for method in ("POST",)),
        *((method, f"{path}/NAME") for path in (JOBS, SERVICES) for method in ("GET", "DELETE")),
    }
