"""A pod of vLLM that is to stop answers first what it has begun, and no eviction outlasts EC2."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.jobs import SERVICE, job_cluster, objects, pod_spec, prepared
from tests.support.pools import SPOT, pool_document
from ultrascale.plan.jobs import until_idle
from ultrascale.plan.jobs.programs import program

BUSY = Path("tests/data/vllm/metrics-busy.txt").read_text()
IDLE = Path("tests/data/vllm/metrics-idle.txt").read_text()
GPUS = pool_document(name="gpu", instance_types=["g6e.12xlarge"], provisioner="karpenter")
SPOT_GPUS = pool_document(
    name="spot", instance_types=["g6e.12xlarge"], provisioner="karpenter", purchase=SPOT, zones=None
)
VLLM = SERVICE | {
    "pool": "gpu",
    "server": "vllm",
    "command": [],
    "args": ["--model=/models/m", "-tp=4"],
}


@contextmanager
def server(
    *texts: str, post: Callable[[str, str | None], int | None] | None = None
) -> Generator[tuple[str, list[str]]]:
    """Serve ``texts`` one after the other as metrics, the last for good; yield URL and answers.

    ``post`` returns the status for a path and its authorization, None for no answer.
    """
    answered: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answered.append(texts[min(len(answered), len(texts) - 1)])
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answered[-1].encode())

        def do_POST(self) -> None:
            status = post and post(self.path, self.headers["Authorization"])
            if status is None:
                time.sleep(2)
                return
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{http.server_port}/metrics", answered
        finally:
            http.shutdown()
            thread.join()


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    def pause(seconds: float) -> None:
        assert seconds <= 1

    monkeypatch.setattr(until_idle.time, "sleep", pause)


@pytest.mark.usefixtures("no_pause")
def test_a_pod_is_held_while_requests_run_or_wait() -> None:
    running = IDLE.replace(
        'num_requests_running{engine="0",model_name="chat"} 0.0',
        'num_requests_running{engine="0",model_name="chat"} 1.0',
    )
    with server(BUSY, IDLE, running, IDLE) as (url, answered):
        assert until_idle.wait(url, quiet=0, most=60) == "all requests are answered"
    assert answered == [BUSY, IDLE, running, IDLE, IDLE, IDLE]


@pytest.mark.usefixtures("no_pause")
@pytest.mark.parametrize(("metrics", "left"), [(BUSY, "24"), ("up 1\n", "unknown")])
def test_a_pod_is_held_no_longer_than_its_grace_period(metrics: str, left: str) -> None:
    with server(metrics) as (url, _):
        assert until_idle.wait(url, quiet=0, most=0.1) == f"{left} requests are left after 0 s"


@pytest.mark.usefixtures("no_pause")
def test_a_pod_whose_server_is_gone_is_not_held() -> None:
    with server(IDLE) as (url, _):
        pass
    assert until_idle.wait(url, quiet=0, most=60) == "the server does not answer"


def test_the_pods_of_a_group_wait_for_its_first_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    assert until_idle.leader() == "127.0.0.1"
    monkeypatch.setenv("LWS_LEADER_ADDRESS", "chat-0.chat.serving")
    monkeypatch.setenv("LWS_WORKER_INDEX", "0")
    assert until_idle.leader() == "127.0.0.1"
    monkeypatch.setenv("LWS_WORKER_INDEX", "1")
    assert until_idle.leader() == "chat-0.chat.serving"


def test_the_hook_of_a_pod_runs_and_ends_within_its_grace_period() -> None:
    job = prepared(job_cluster(GPUS), VLLM | {"port": 1, "grace_period_seconds": 2})
    hook = pod_spec(job)["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]

    assert hook[-3:] == ["1", "1", "1"]
    ended = subprocess.run(hook, timeout=20, capture_output=True, check=True)
    assert (ended.stdout, ended.stderr) == (b"", b"")


@pytest.mark.parametrize("grace", [1, 2, 12, 110, 3600])
def test_a_hook_leaves_the_server_time_to_end(grace: int) -> None:
    job = prepared(job_cluster(GPUS), VLLM | {"grace_period_seconds": grace})
    *_, quiet, most = pod_spec(job)["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]

    assert int(quiet) <= int(most) <= max(grace - 5, grace // 2, 1)


@pytest.mark.parametrize(
    "keys", [{"server": "other"}, {"args": ["--model=/models/m", "-tp=4", "--disable-log-stats"]}]
)
def test_a_server_without_known_metrics_only_pauses(keys: dict[str, object]) -> None:
    job = prepared(job_cluster(GPUS), VLLM | keys)

    assert pod_spec(job)["containers"][0]["lifecycle"] == {"preStop": {"sleep": {"seconds": 10}}}


def test_the_program_of_the_hook_runs_on_any_python_of_an_image() -> None:
    text = program("until_idle")

    assert '"""' not in text
    assert "ultrascale" not in text
    compiled = subprocess.run(
        [sys.executable, "-I", "-c", text], capture_output=True, text=True, check=False
    )
    assert "not enough values to unpack" in compiled.stderr


@pytest.mark.parametrize(("pool", "unavailable"), [(GPUS, 1), (SPOT_GPUS, 3)])
def test_no_disruption_budget_keeps_pods_on_a_spot_node_that_goes(
    pool: dict[str, object], unavailable: int
) -> None:
    job = prepared(job_cluster(pool), VLLM | {"pool": pool["name"], "replicas": 3})
    (budget,) = objects(job, "PodDisruptionBudget")
    (deployment,) = objects(job, "Deployment")

    assert budget["spec"]["maxUnavailable"] == unavailable
    # An update keeps its capacity there too.
    assert deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] <= 1


def test_a_proxy_of_the_pod_is_not_asked_for_its_own_metrics(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)

    with server(BUSY) as (url, _):
        assert until_idle.requests_at(url) == 24
