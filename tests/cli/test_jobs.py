"""The commands about jobs, as their user types them: real processes against a real HTTP server."""

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import job_manifests as given
from tests.support.command_line import Ultrascale, run
from tests.support.folders import ROOT
from tests.support.stub_api_http import ARN, kubeconfig, serve
from tests.support.stub_api_server import Object, Refusal, StubApiServer
from ultrascale.cluster_api import connection
from ultrascale.jobs import logs

CLUSTER = ROOT / "clusters" / "trainium-bert.yaml"
JOB = f"{given.VOLCANO_JOBS}/bert"


class Volcano:
    """Does in the stub what Volcano and the kubelets do with a job."""

    def __init__(self, stub: StubApiServer, *, ends: str = "", speaks: str = "step 1") -> None:
        self._stub, self._ends, self._speaks = stub, ends, speaks
        stub.on_create = self.take

    def take(self, path: str, found: Object) -> None:
        if "/batch.volcano.sh/" in path:
            threading.Thread(target=self._run, args=(path, found), daemon=True).start()

    def _run(self, path: str, found: Object) -> None:
        name = found["metadata"]["name"]
        (task,) = found["spec"]["tasks"]
        pods = [f"{given.PODS}/{name}-{task['name']}-{i}" for i in range(task["replicas"])]
        for index, pod in enumerate(pods):
            fields = given.running(f"node-{index}")
            new = given.pod(pod.rpartition("/")[2], name, index=index, task=task["name"], **fields)
            self._stub.put(pod, new)
            self._stub.write(pod, f"2026-11-21T12:00:00.000000001Z {self._speaks} of {index}")
        running = {"state": {"phase": "Running"}, "running": len(pods)}
        self._stub.update(path, status=running)
        if self._ends:
            time.sleep(1)
            for pod in pods:
                self._stub.write(pod, ends=True)
                self._stub.update(pod, status={"phase": "Succeeded"})
            self._stub.update(path, status={"state": {"phase": self._ends}})


@pytest.fixture
def stub() -> Iterator[StubApiServer]:
    server = StubApiServer()
    given.furnish(server)
    server.put(f"{given.QUEUES}/test", {"kind": "Queue", "status": {"state": "Open"}})
    with serve(server):
        yield server


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    file = tmp_path / "bert.yaml"
    job = {"pool": "trn1", "nodes": 2, "image": "bert-pretrain:v1", "script": "train.py"}
    file.write_text(yaml.safe_dump({**job, "args": ["--steps", "100"]}))
    return file


@pytest.fixture
def environment(stub: StubApiServer, tmp_path: Path) -> dict[str, str]:
    file = kubeconfig(tmp_path, stub.url)
    return {**os.environ, "KUBECONFIG": str(file), "HOME": str(tmp_path), "COLUMNS": "200"}


@pytest.fixture
def ultrascale(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Ultrascale:
    for name in ("KUBECONFIG", "HOME", "COLUMNS"):
        monkeypatch.setenv(name, environment[name])
    monkeypatch.setattr(connection, "_BACKOFF", 0.05)
    monkeypatch.setattr(logs, "_LOOK", 0.05)
    return partial(run, monkeypatch=monkeypatch, capsys=capsys)


@contextmanager
def process(
    *arguments: str | Path, env: dict[str, str], **streams: Any
) -> Generator["subprocess.Popen[str]"]:
    """Run the command line in a process of its own, which ends with the test at the latest."""
    command = [sys.executable, "-m", "ultrascale", *(str(a) for a in arguments)]
    with subprocess.Popen(command, cwd=ROOT, env=env, text=True, **streams) as running:
        try:
            yield running
        finally:
            running.kill()


def test_a_dry_run_prints_what_would_be_sent_without_a_cluster_or_its_client(
    job_file: Path, tmp_path: Path
) -> None:
    program = (
        "import sys; from ultrascale.cli import main\n"
        "try: main()\n"
        "finally: assert 'kubernetes' not in sys.modules"
    )
    arguments = ["submit", str(CLUSTER), str(job_file), "--dry-run", "--account", "111122223333"]
    env = {**os.environ, "HOME": str(tmp_path), "KUBECONFIG": ""}

    command = [sys.executable, "-c", program, *arguments]
    answer = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)

    assert answer.returncode == 0, answer.stderr
    documents = [*yaml.safe_load_all(answer.stdout)]
    assert [each["metadata"]["name"] for each in documents if each["kind"] == "Job"] == ["bert"]
    assert all(line.startswith("# ") for line in answer.stderr.splitlines())


def test_what_a_dry_run_prints_is_what_is_sent(
    stub: StubApiServer, ultrascale: Ultrascale, job_file: Path
) -> None:
    dry = ultrascale("submit", CLUSTER, job_file, "--dry-run", "--account", "111122223333")
    sent = ultrascale("submit", CLUSTER, job_file, "--detach")
    assert sent.returncode == 0, sent.stderr
    bodies = [each.body for each in stub.asked("POST") if not each.dry_run]
    assert bodies == [*yaml.safe_load_all(dry.stdout)]


def test_options_and_arguments_reach_the_job(ultrascale: Ultrascale, job_file: Path) -> None:
    options = ["--name", "mine", "--nodes", "1", "--image", "bert-pretrain:v2", "--queue", "test"]
    options += ["--env", "A=b=c", "--env", "D=", "--set", "restarts.job=3"]
    account = ["--dry-run", "--account", "111122223333"]

    answer = ultrascale("submit", CLUSTER, job_file, *options, *account, "--", "--lr", "0.1")

    assert answer.returncode == 0, answer.stderr
    (job,) = [each for each in yaml.safe_load_all(answer.stdout) if each["kind"] == "Job"]
    (task,) = job["spec"]["tasks"]
    (container,) = task["template"]["spec"]["containers"]
    env = {each["name"]: each.get("value") for each in container["env"]}
    assert (job["metadata"]["name"], task["replicas"]) == ("mine", 1)
    assert container["image"].endswith("bert-pretrain:v2")
    assert (env["A"], env["D"]) == ("b=c", "")
    command = " ".join([*container.get("command", []), *container.get("args", [])])
    assert "--lr 0.1" in command
    assert "--steps" not in command


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        (("--env", "A", "--set", "=1"), ["--set", "--env"]),
        (
            ("--set", "nodes=2", "--set", "nodes.most=3", "--set", "env=", "--env", "A=1"),
            ["--set nodes.most=3: nodes is 2 already", "--env A=1: env is null already; keep one"],
        ),
    ],
)
def test_every_wrong_assignment_is_told_at_once(
    ultrascale: Ultrascale, job_file: Path, options: tuple[str, ...], lines: list[str]
) -> None:
    answer = ultrascale("submit", CLUSTER, job_file, *options, "--dry-run")
    assert answer.returncode == 1
    found = answer.stderr.splitlines()
    assert len(found) == len(lines)
    assert all(line.startswith(each) for line, each in zip(found, lines, strict=True))


def test_a_terminal_sees_the_pods_until_they_run(
    stub: StubApiServer, environment: dict[str, str], job_file: Path
) -> None:
    Volcano(stub)
    ours, theirs = pty.openpty()
    env = {**environment, "TERM": "xterm-256color"}

    with process(
        "submit", CLUSTER, job_file, env=env, stdout=subprocess.PIPE, stderr=theirs
    ) as running:
        os.close(theirs)
        seen = b""
        while True:
            try:
                part = os.read(ours, 65_536)
            except OSError:
                break
            if not part:
                break
            seen += part
        assert running.wait(timeout=20) == 0
    os.close(ours)

    assert b"running 2 of 2" in seen


@pytest.mark.parametrize(("ends", "code"), [("Completed", 0), ("Failed", 1)])
def test_a_followed_job_ends_with_its_own_result(
    stub: StubApiServer, ultrascale: Ultrascale, job_file: Path, ends: str, code: int
) -> None:
    Volcano(stub, ends=ends)
    answer = ultrascale("submit", CLUSTER, job_file, "--follow")
    assert answer.returncode == code, answer.stderr
    assert answer.stdout.splitlines()[-1] == "step 1 of 0"
    assert ends.lower() in answer.stderr.splitlines()[-1].lower()
    assert "sent to namespace training: Job bert" in answer.stdout
    assert "\x1b" not in answer.stderr + answer.stdout


def test_an_interrupted_wait_leaves_the_job_and_says_how_to_go_on(
    stub: StubApiServer, environment: dict[str, str], job_file: Path
) -> None:
    pipe = subprocess.PIPE
    with process("submit", CLUSTER, job_file, env=environment, stdout=pipe, stderr=pipe) as running:
        deadline = time.monotonic() + 60
        while not [each for each in stub.requests if "watch" in each.query]:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        running.send_signal(signal.SIGINT)
        _, told = running.communicate(timeout=20)

    assert running.returncode == 130
    assert "ultrascale logs bert -n training --follow" in told
    assert "ultrascale cancel bert -n training" in told
    assert "Traceback" not in told
    assert stub.find(JOB) is not None


def test_the_wrong_cluster_is_refused_before_anything_is_sent(
    stub: StubApiServer, ultrascale: Ultrascale, job_file: Path, tmp_path: Path
) -> None:
    other = ARN.replace("trainium-bert", "production")
    kubeconfig(tmp_path, stub.url, cluster=other)
    answer = ultrascale("submit", CLUSTER, job_file)
    assert answer.returncode == 1
    assert "current context is production" in answer.stderr
    assert stub.asked("POST") == []
    chosen = ultrascale("submit", CLUSTER, job_file, "--detach", "--context", other)
    assert chosen.returncode == 0, chosen.stderr


def test_a_cluster_that_is_not_there_is_told_without_a_traceback(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    kubeconfig(tmp_path, "http://127.0.0.1:1")
    for command in (["status"], ["logs", "bert"], ["cancel", "bert"], ["queue"]):
        answer = ultrascale(*command)
        assert answer.returncode == 1
        assert answer.stderr.startswith("the API server cannot be reached")
        assert len(answer.stderr.splitlines()) == 1


def test_status_and_queues_are_a_table_for_people_and_json_for_programs(
    stub: StubApiServer, ultrascale: Ultrascale
) -> None:
    stub.put(JOB, {**given.volcano_job(), "status": {"state": {"phase": "Running"}, "running": 2}})
    stub.put(f"{given.PODS}/p", given.pod("p", **given.running("node-7")))
    group: dict[str, Any] = {
        "metadata": {"labels": {given.JOB_LABEL: "bert"}},
        "spec": {"queue": "research", "minMember": 2},
        "status": {"phase": "Pending"},
    }
    stub.put(f"{given.POD_GROUPS}/pg", group)

    one = json.loads(ultrascale("status", "bert", "--json").stdout)
    every = json.loads(ultrascale("status", "--json", "-n", "training").stdout)
    queue = json.loads(ultrascale("queue", "--json").stdout)

    assert "Running" in ultrascale("status", CLUSTER).stdout
    assert "node-7" in ultrascale("status", "bert").stdout
    assert "research" in ultrascale("queue").stdout
    assert (one["phase"], one["counts"]["running"], one["nodes"]) == ("Running", 1, ["node-7"])
    assert one["pods"][0]["name"] == "p"
    assert [each["name"] for each in every] == ["bert"]
    assert [each["job"] for each in queue["waiting"]] == ["bert"]


def test_a_file_that_cannot_be_planned_hides_no_state_of_a_service(
    stub: StubApiServer, ultrascale: Ultrascale, tmp_path: Path
) -> None:
    document = yaml.safe_load(CLUSTER.read_text())
    # Its model does not fit.
    wrong = {
        "kind": "service",
        "pool": "trn1",
        "image": "public.ecr.aws/neuron/pytorch-inference-vllm-neuronx:0.16.0",
        "args": ["--model=meta-llama/Llama-3.1-405B"],
        "model": "Llama-3.1-405B",
    }
    document["jobs"] = {"chat": wrong}
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump(document))
    stub.put(f"{given.DEPLOYMENTS}/chat", given.deployment())

    answer = ultrascale("status", file, "chat")

    assert ultrascale("check", file).returncode == 1
    assert answer.returncode == 0, answer.stderr
    assert "Progressing" in answer.stdout


def test_logs_of_several_pods_are_told_apart(stub: StubApiServer, ultrascale: Ultrascale) -> None:
    stub.put(JOB, given.volcano_job())
    for index in range(2):
        name = f"bert-worker0-{index}"
        stub.put(f"{given.PODS}/{name}", given.pod(name, index=index, **given.running()))
        stub.write(f"{given.PODS}/{name}", f"2026-11-21T12:00:00.000000001Z hello {index}")

    assert ultrascale("logs", "bert").stdout == "hello 0\n"
    every = ultrascale("logs", "bert", "--all")
    assert every.stdout == "[0] hello 0\n[1] hello 1\n"
    ultrascale("logs", "bert", "--init")
    assert stub.requests[-1].query["container"] == "before-program"


def test_cancel_says_what_it_deletes_and_asks_a_terminal_alone(
    stub: StubApiServer, ultrascale: Ultrascale
) -> None:
    stub.put(JOB, given.volcano_job())
    answer = ultrascale("cancel", "bert")
    assert answer.returncode == 0, answer.stderr
    assert "Job bert in namespace training" in answer.stdout
    assert stub.find(JOB) is None
    again = ultrascale("cancel", "bert")
    assert again.returncode == 1
    assert "no job bert" in again.stderr


def test_a_terminal_that_says_no_keeps_its_job(
    stub: StubApiServer, environment: dict[str, str]
) -> None:
    stub.put(JOB, given.volcano_job())
    ours, theirs = pty.openpty()
    pipe = subprocess.PIPE
    with process(
        "cancel", "bert", env=environment, stdin=theirs, stdout=pipe, stderr=pipe
    ) as running:
        os.write(ours, b"n\n")
        running.communicate(timeout=20)
    os.close(theirs)
    os.close(ours)

    assert running.returncode == 1
    assert stub.find(JOB) is not None


def test_a_refusal_of_a_webhook_is_told_in_its_own_words(
    stub: StubApiServer, ultrascale: Ultrascale, job_file: Path
) -> None:
    told = 'admission webhook "validatejob.volcano.sh" denied the request: unable to find job queue'
    stub.refuse("POST", "/jobs$", Refusal(400, told))
    answer = ultrascale("submit", CLUSTER, job_file)
    assert answer.returncode == 1
    assert told in answer.stderr
    assert "Traceback" not in answer.stderr
