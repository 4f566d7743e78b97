"""`ultrascale dev`: from a job of the file to a notebook in a browser, and back."""

import getpass
import json
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from tests.support import job_manifests as given
from tests.support.command_line import Ultrascale, run
from tests.support.dev_pods import KUBECTL, LAB, Kubelet, install
from tests.support.jobs import DEV, job_cluster
from tests.support.pools import as_text, pool_document
from tests.support.stub_api_http import kubeconfig, serve
from tests.support.stub_api_server import StubApiServer
from ultrascale.errors import UsageError
from ultrascale.jobs import logs
from ultrascale.operate.tunnel import free_port, is_open
from ultrascale.parts.dev import pod as dev_pod
from ultrascale.parts.dev.idle_loop import STATE

GPUS = pool_document(instance_types=["g6e.12xlarge"])
ARN = "arn:aws:eks:us-west-2:111122223333:cluster/research"
OWN = f"notebook-{re.sub('[^a-z0-9]+', '-', getpass.getuser().lower())}"
JOB = f"{given.INDEXED_JOBS}/{OWN}"
# Two seconds.
IDLE_HOURS = 2 / 3600


@pytest.fixture
def stub() -> Iterator[StubApiServer]:
    server = StubApiServer()
    with serve(server):
        yield server


@pytest.fixture
def kubelet(stub: StubApiServer, tmp_path: Path) -> Iterator[Kubelet]:
    found = Kubelet(stub, tmp_path)
    (tmp_path / "image").mkdir()
    yield found
    found.stop()


@pytest.fixture
def ultrascale(
    stub: StubApiServer,
    kubelet: Kubelet,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Ultrascale:
    install(tmp_path / "bin", "kubectl", KUBECTL)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, stub.url, cluster=ARN)))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(logs, "_LOOK", 0.05)
    monkeypatch.setattr(dev_pod, "_LOOK_SECONDS", 0.1)
    return partial(run, monkeypatch=monkeypatch, capsys=capsys)


class Browser(threading.Thread):
    """Visits a notebook once, as soon as its local port is open.

    Until then a kernel of the notebook computes, however slow the machine is.

    Attributes:
        status: Status of the answer; 0 without one.
        token: Token of the notebook.
    """

    def __init__(self, port: int, state: Path) -> None:
        super().__init__(daemon=True)
        self._port, self._state = port, state
        self._computes = state.parents[2] / "busy"
        self._computes.touch()
        self.status, self.token = 0, ""

    def run(self) -> None:
        try:
            self._visit()
        finally:
            self._computes.unlink()

    def _visit(self) -> None:
        until = time.monotonic() + 30
        while not self.status and time.monotonic() < until:
            with suppress(OSError, ValueError):
                self.token = json.loads(self._state.read_text())["token"]
                url = f"http://127.0.0.1:{self._port}/api/kernels"
                headers = {"Authorization": f"token {self.token}"}
                request = urllib.request.Request(url, headers=headers)
                with urllib.request.urlopen(request, timeout=5) as answer:
                    self.status = answer.status
            time.sleep(0.05)


def cluster_file(folder: Path, **keys: Any) -> Path:
    """Write a cluster file with a notebook that ends after two seconds without use."""
    job = {key: value for key, value in DEV.items() if key != "name"}
    notebook = {"resources": {"gpu": 1}, "idle_hours": IDLE_HOURS, "port": free_port(), **keys}
    document = job_cluster(GPUS, scheduling=None, jobs={"notebook": {**job, **notebook}})
    file = folder / "cluster.yaml"
    file.write_text(as_text(document))
    return file


def test_a_notebook_opens_at_a_local_port_until_nobody_uses_it(
    ultrascale: Ultrascale, kubelet: Kubelet, tmp_path: Path
) -> None:
    install(tmp_path / "image", "jupyter-lab", LAB)
    local = free_port()
    browser = Browser(local, tmp_path / STATE)
    browser.start()

    answer = ultrascale("dev", cluster_file(tmp_path), "notebook", "--port", local)
    browser.join()

    assert answer.returncode == 0, answer.stderr
    assert browser.status == 200
    assert answer.stdout == f"http://127.0.0.1:{local}/lab?token={browser.token}\n"
    # Told while it still ran, and as it ended.
    assert "it stops at" in answer.stderr
    assert f"{OWN}: stopped after" in answer.stderr
    assert kubelet.ended.is_set()


def test_the_end_of_the_command_closes_the_port_and_leaves_the_pod(
    ultrascale: Ultrascale, stub: StubApiServer, tmp_path: Path
) -> None:
    """SIGTERM is what an editor or a closed terminal sends."""
    install(tmp_path / "image", "jupyter-lab", LAB)
    local, pipe = free_port(), subprocess.PIPE
    words = ["dev", str(cluster_file(tmp_path, idle_hours=1)), "notebook", f"--port={local}"]
    program = [sys.executable, "-m", "ultrascale", *words]
    with subprocess.Popen(program, stdout=pipe, stderr=pipe, text=True) as command:
        assert command.stdout is not None
        assert command.stdout.readline().startswith(f"http://127.0.0.1:{local}/lab?token=")
        command.terminate()
        _, said = command.communicate(timeout=20)

    assert command.returncode == 0, said
    assert f"{OWN} stays" in said
    assert JOB in stub.paths()
    assert not is_open(local)


def test_a_shell_runs_in_the_pod_and_its_status_is_the_commands(
    ultrascale: Ultrascale, stub: StubApiServer, tmp_path: Path
) -> None:
    file = cluster_file(tmp_path, idle_hours=1)

    first = ultrascale("dev", file, "notebook", "--", "sh", "-c", "exit 7")
    again = ultrascale("dev", file, "notebook", "--", "sh", "-c", "exit 0")

    assert (first.returncode, again.returncode) == (7, 0), first.stderr + again.stderr
    # The second went to the pod of the first, which may be somebody else's of the same user name.
    told = (
        rf"{OWN} is there already, since \d{{4}}-\d\d-\d\d \d\d:\d\d UTC, .* --name starts another"
    )
    assert re.search(told, again.stderr)
    assert len([each for each in stub.asked("POST", "/jobs") if not each.dry_run]) == 1
    assert (
        f"exec {OWN}-0-abcde --namespace=training --container=main --stdin -- sh -c exit 7"
        in (tmp_path / "kubectl.log").read_text()
    )


def test_a_private_endpoint_is_reached_by_every_step(
    ultrascale: Ultrascale, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection's kubeconfig alone leads there: of kubectl as well."""
    lent = tmp_path / "lent"
    (tmp_path / "kubeconfig").rename(lent)
    closed: list[bool] = []

    @contextmanager
    def connection(file: Path, profile: str | None) -> Generator[Any]:
        yield SimpleNamespace(kubeconfig=lent)
        closed.append(True)

    monkeypatch.setattr("ultrascale.parts.dev.command._connection", connection)
    file = cluster_file(tmp_path, idle_hours=1)

    answer = ultrascale("dev", file, "notebook", "--connect", "--", "sh", "-c", "exit 0")

    assert answer.returncode == 0, answer.stderr
    assert f"--kubeconfig={lent} exec {OWN}-0-abcde" in (tmp_path / "kubectl.log").read_text()
    assert closed


def test_a_pod_that_has_ended_is_started_again_and_says_why_it_ended(
    ultrascale: Ultrascale, kubelet: Kubelet, tmp_path: Path
) -> None:
    file = cluster_file(tmp_path, idle_hours=0.1 / 3600)
    assert ultrascale("dev", file, "notebook", "--detach").returncode == 0
    assert kubelet.ended.wait(10)
    answer = ultrascale(
        "dev", file, "notebook", "--set", "idle_hours=1", "--", "sh", "-c", "exit 0"
    )
    assert answer.returncode == 0, answer.stderr
    assert f"{OWN} has ended: stopped after" in answer.stderr


@pytest.mark.parametrize("action", ["--stop", "--detach"])
def test_no_other_job_is_deleted_or_replaced(
    ultrascale: Ultrascale, stub: StubApiServer, tmp_path: Path, action: str
) -> None:
    job = f"{given.INDEXED_JOBS}/bert"
    labels = {given.JOB_LABEL: "bert", "app.kubernetes.io/component": "batch"}
    ended: Any = {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 1}
    stub.put(job, {"metadata": {"labels": labels}, "spec": {"completions": 1}, "status": ended})
    answer = ultrascale("dev", cluster_file(tmp_path), "notebook", "--name", "bert", action)
    assert answer.returncode == 1
    assert "Job bert in namespace training is of no person's pod" in answer.stderr
    assert job in stub.paths()


def test_a_pod_is_deleted_on_request_and_none_of_another_cluster(
    ultrascale: Ultrascale, stub: StubApiServer, tmp_path: Path
) -> None:
    file = cluster_file(tmp_path, idle_hours=1)
    ultrascale("dev", file, "notebook", "--detach")
    other = tmp_path / "other.yaml"
    other.write_text(file.read_text().replace("name: research", "name: other", 1))

    refused = ultrascale("dev", other, "notebook", "--stop")
    assert "cluster other in us-west-2, but the kubeconfig's current context is" in refused.stderr
    assert JOB in stub.paths()

    answer = ultrascale("dev", file, "notebook", "--stop")
    assert answer.returncode == 0, answer.stderr
    assert JOB not in stub.paths()


@pytest.mark.parametrize("error", [KeyError("getpwuid(): uid not found: 1000"), OSError("none")])
def test_a_machine_without_a_name_for_the_user_asks_for_one(
    ultrascale: Ultrascale, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(getpass, "getuser", Mock(side_effect=error))
    answer = ultrascale("dev", cluster_file(tmp_path), "notebook", "--detach")
    assert "--name: missing, and this machine has no name for you" in answer.stderr


def test_each_person_has_a_pod_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    users = ["Anna.Meyer", "a" * 60, "Ω", "x"]
    monkeypatch.setattr(getpass, "getuser", Mock(side_effect=users))
    names = [dev_pod.own_name("notebook") for _ in users[:3]]
    assert names == ["notebook-anna-meyer", f"notebook-{'a' * 31}", "notebook-me"]
    with pytest.raises(UsageError, match="too long to be followed by your own name"):
        dev_pod.own_name("n" * 40)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("notebok",), "did you mean notebook?"),
        (("notebook", "--stop", "--shell"), "--stop: goes with no other action"),
        (("notebook", "--connect", "--context", "x"), "--connect: writes a kubeconfig of its own"),
        (("serve", "--stop"), "serve: no job of kind dev; "),
    ],
)
def test_a_command_that_makes_no_sense_is_refused_with_the_way_out(
    ultrascale: Ultrascale, tmp_path: Path, words: tuple[str, ...], line: str
) -> None:
    answer = ultrascale("dev", cluster_file(tmp_path), *words)
    assert answer.returncode != 0
    assert line in answer.stderr


def test_a_port_that_is_taken_is_named(
    ultrascale: Ultrascale, stub: StubApiServer, tmp_path: Path
) -> None:
    install(tmp_path / "image", "jupyter-lab", LAB)
    taken = stub.url.rpartition(":")[2]
    answer = ultrascale("dev", cluster_file(tmp_path), "notebook", "--port", taken)
    assert f"port {taken} is taken; name another by --port" in answer.stderr


def test_a_machine_without_kubectl_is_told_where_to_get_it(
    ultrascale: Ultrascale, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    answer = ultrascale("dev", cluster_file(tmp_path), "notebook")
    assert "kubectl: not installed, or not on PATH; see https://" in answer.stderr
