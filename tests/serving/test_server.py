"""A real vLLM, started, probed, measured and stopped as the rendered pods are: no request is lost.

The test is the kubelet, the endpoints and the clients: it runs the container's command, asks the
probes, runs the `preStop` hook and then sends SIGTERM.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="no vLLM here: `make serving` runs these tests")

from tests.serving.toys import write_toy
from tests.support.jobs import SERVICE, job_cluster, objects, prepared
from tests.support.models.autoscaler import Autoscaler
from tests.support.pools import pool_document
from ultrascale.catalog import vllm
from ultrascale.catalog.transformers import transformer_of
from ultrascale.jobs import JobManifests

GPUS = pool_document(name="gpu", instance_types=["g6e.12xlarge"], provisioner="karpenter")
PLACES = 4
# One core for the server leaves the clients another.
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "TORCHDYNAMO_DISABLE": "1",
}


def environment() -> dict[str, str]:
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, **ENVIRONMENT, "PATH": programs}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def service_of(model: Path, port: int, *more: str, **keys: Any) -> JobManifests:
    """Return the rendered service of ``model``."""
    options = [f"--max-num-seqs={PLACES}", "--max-model-len=1024", "--enforce-eager", *more]
    job = SERVICE | {
        "pool": "gpu",
        "server": "vllm",
        "command": [],
        "args": [f"--model={model}", "--served-model-name=toy", *options],
        "port": port,
        "health_path": None,
        **keys,
    }
    return prepared(job_cluster(GPUS), job)


def pod_of(model: Path, port: int) -> Mapping[str, Any]:
    """Return the rendered pod of a service of one node."""
    service = service_of(model, port, resources={"gpu": 1})
    (deployment,) = objects(service, "Deployment")
    return deployment["spec"]["template"]["spec"]


class Server:
    """A server as a kubelet runs it."""

    def __init__(
        self,
        pod: Mapping[str, Any],
        log: Path,
        *,
        command: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        (self.container,) = pod["containers"]
        self.grace = pod["terminationGracePeriodSeconds"]
        self.env = environment() | dict(env or {})
        self.log = log
        with log.open("w") as told:
            self.process = subprocess.Popen(
                command or self.container["command"],
                env=self.env,
                stdout=told,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.container['ports'][0]['containerPort']}"

    def passes(self, probe: str) -> bool:
        """Return whether the server passes one of the container's probes."""
        stated = self.container[probe]
        if "exec" in stated:
            command, most = stated["exec"]["command"], stated["timeoutSeconds"]
            return not subprocess.run(command, env=self.env, timeout=most, check=False).returncode
        assert stated["httpGet"]["port"] == self.container["ports"][0]["name"]
        try:
            urllib.request.urlopen(
                self.url + stated["httpGet"]["path"], timeout=stated["timeoutSeconds"]
            ).close()
        except OSError:
            return False
        return True

    def start(self) -> None:
        probe = self.container["startupProbe"]
        end = time.monotonic() + probe["periodSeconds"] * probe["failureThreshold"]
        while not self.passes("startupProbe"):
            assert self.process.poll() is None, self.log.read_text()[-2000:]
            assert time.monotonic() < end, self.log.read_text()[-2000:]
            time.sleep(0.5)

    def metric(self, name: str) -> float:
        text = urllib.request.urlopen(self.url + vllm.METRICS_PATH, timeout=10).read().decode()
        return sum(
            float(line.rpartition(" ")[2])
            for line in text.splitlines()
            if line.startswith(name + "{")
        )

    def stop(self) -> tuple[float, float]:
        """Stop as a kubelet does; return the seconds of the hook and of all."""
        began = time.monotonic()
        hook = self.container["lifecycle"]["preStop"]["exec"]["command"]
        subprocess.run(hook, env=self.env, timeout=self.grace, check=True)
        hooked = time.monotonic() - began
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=self.grace - hooked)
        return hooked, time.monotonic() - began

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def ask(server: Server, number: int, tokens: int) -> str:
    """Send one request of ``tokens`` generated tokens; return how it ended."""
    prompt = " ".join(f"w{(number * 7 + word) % 500}" for word in range(40))
    body = {"model": "toy", "prompt": prompt, "max_tokens": tokens, "ignore_eos": True}
    request = urllib.request.Request(
        server.url + "/v1/completions",
        json.dumps({**body, "stream": number % 2 == 1}).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=100) as answer:
            text = answer.read().decode()
    except (OSError, urllib.error.HTTPError) as error:
        return f"lost: {error!r}"
    if number % 2 == 1:
        ended = text.rstrip().endswith("data: [DONE]") and '"finish_reason":"length"' in text
        return "answered" if ended else f"cut: {text[-200:]}"
    choice = json.loads(text)["choices"][0]
    return "answered" if choice["finish_reason"] == "length" else f"cut: {choice}"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("toy")
    write_toy(folder)
    return folder


@pytest.fixture(scope="module")
def server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(pod_of(model, free_port()), tmp_path_factory.mktemp("log") / "server.log")
    try:
        running.start()
        yield running
    finally:
        running.kill()


@contextmanager
def hanging(server: Server) -> Generator[None]:
    """Let the engine of a server hang, while its other processes go on."""
    (engine,) = {
        int(pid) for pid in re.findall(r"EngineCore[^\n]*?pid=(\d+)", server.log.read_text())
    }
    os.kill(engine, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(engine, signal.SIGCONT)


def test_an_engine_that_hangs_before_its_first_token_is_seen(server: Server) -> None:
    """No request ever reaches a count, and nobody's does that comes later."""
    with hanging(server):
        assert server.passes("readinessProbe")
        assert not server.passes("livenessProbe")
    assert server.passes("livenessProbe")
    told = server.metric(vllm.GENERATION_TOKENS)
    assert told >= 1
    assert server.passes("livenessProbe")
    # It is asked no more.
    assert server.metric(vllm.GENERATION_TOKENS) == told


def test_a_started_server_is_ready_and_answers_by_its_name(server: Server) -> None:
    assert server.passes("readinessProbe")
    assert server.passes("livenessProbe")
    listed = json.load(urllib.request.urlopen(server.url + vllm.MODELS_PATH, timeout=10))
    assert [each["id"] for each in listed["data"]] == ["toy"]
    assert ask(server, 0, 5) == "answered"


def test_the_kv_cache_holds_the_tokens_that_the_formula_says(server: Server, model: Path) -> None:
    """The server has 1 GiB for it, and keeps one block for itself."""
    shape = transformer_of(json.loads((model / "config.json").read_text()))

    (told,) = re.findall(r"KV cache size: ([\d,]+) tokens", server.log.read_text())

    assert int(told.replace(",", "")) == pytest.approx(2**30 / shape.token_bytes, rel=0.01)


def test_the_metrics_that_scale_a_service_count_its_requests(server: Server) -> None:
    enough = threading.Event()

    def ask_until_enough(number: int) -> str:
        told = ask(server, number, 400)
        while told == "answered" and not enough.is_set():
            told = ask(server, number, 400)
        return told

    with ThreadPoolExecutor(3 * PLACES) as clients:
        answers = [clients.submit(ask_until_enough, number) for number in range(3 * PLACES)]
        end = time.monotonic() + 60
        seen = (0.0, 0.0)
        while seen != (PLACES, 2 * PLACES) and time.monotonic() < end:
            seen = (server.metric(vllm.RUNNING), server.metric(vllm.WAITING))
        enough.set()
        assert {each.result() for each in answers} == {"answered"}
    assert seen == (PLACES, 2 * PLACES), "running and waiting"
    for name in (vllm.RUNNING, vllm.WAITING, vllm.KV_CACHE_USAGE):
        assert server.metric(name) == 0
    text = urllib.request.urlopen(server.url + vllm.METRICS_PATH, timeout=10).read().decode()
    for name in (vllm.PROMPT_TOKENS, vllm.GENERATION_TOKENS, vllm.TIME_TO_FIRST_TOKEN + "_bucket"):
        assert f"\n{name}{{" in text


def test_a_server_under_load_is_left_alone_and_gets_replicas(server: Server) -> None:
    """40 requests wait at a slow server: it is not killed, and never scaled down."""
    job = service_of(
        Path("/models/toy"),
        int(server.url.rpartition(":")[2]),
        resources={"gpu": 1},
        autoscale={"metric": "waiting", "target": 5, "max": 6},
    )
    (scaled,) = objects(job, "ScaledObject")
    autoscaler = Autoscaler(scaled["spec"], replicas=1)
    with ThreadPoolExecutor(40 + PLACES) as clients:
        answers = [clients.submit(ask, server, number, 900) for number in range(40 + PLACES)]
        end = time.monotonic() + 60
        while server.metric(vllm.WAITING) < 20 and time.monotonic() < end:
            time.sleep(0.2)
        url = server.url + vllm.METRICS_PATH
        for _ in range(2):
            text = urllib.request.urlopen(url, timeout=15).read().decode()
            assert server.passes("livenessProbe")
            assert server.passes("readinessProbe")
            # One ready pod answers, one is too busy to.
            assert autoscaler.sync([text, None]) >= 4
        assert {each.result() for each in answers} == {"answered"}


def test_a_server_whose_engine_hangs_is_started_anew(server: Server) -> None:
    """Its path of health goes on to answer."""
    with ThreadPoolExecutor(PLACES) as clients:
        answers = [clients.submit(ask, server, number, 900) for number in range(PLACES)]
        end = time.monotonic() + 60
        while server.metric(vllm.RUNNING) < PLACES:
            assert time.monotonic() < end, "its batch is not full"
            time.sleep(0.1)
        with hanging(server):
            time.sleep(1)
            assert server.passes("readinessProbe")
            assert not server.passes("livenessProbe")
        assert {each.result() for each in answers} == {"answered"}
    assert server.passes("livenessProbe")


def stop_under_load(*pods: Server) -> tuple[list[str], list[tuple[float, float]]]:
    """Stop the pods of a replica, the first of which answers; return how its requests ended.

    Clients go on for two seconds after the pods are deleted: until then they know the address.

    Returns:
        The end of each request, and of each pod the seconds of its hook and of all.
    """
    server = pods[0]
    answers: list[Future[str]] = []
    forgotten = threading.Event()

    def send(clients: ThreadPoolExecutor) -> None:
        number = 0
        while not forgotten.is_set():
            answers.append(clients.submit(ask, server, number, 900))
            number += 1
            forgotten.wait(0.15)

    with ThreadPoolExecutor(64) as clients, ThreadPoolExecutor(len(pods)) as kubelets:
        sender = threading.Thread(target=send, args=(clients,))
        sender.start()
        end = time.monotonic() + 60
        while server.metric(vllm.RUNNING) < PLACES or len(answers) < 2 * PLACES:
            assert time.monotonic() < end, "its batch is not full"
            time.sleep(0.1)
        threading.Timer(2, forgotten.set).start()
        seconds = [*kubelets.map(Server.stop, pods)]
        sender.join()
        return [each.result() for each in answers], seconds


def test_no_request_is_lost_when_a_pod_is_stopped(server: Server) -> None:
    found, ((hooked, ended),) = stop_under_load(server)

    assert set(found) == {"answered"}
    # More than a batch was left, and waited for in the hook.
    assert len(found) >= 2 * PLACES
    assert 10 <= hooked <= ended < server.grace
    assert server.process.returncode == 0, server.log.read_text()[-2000:]
