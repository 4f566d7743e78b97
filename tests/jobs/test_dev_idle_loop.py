"""The first process of a person's pod: it ends the pod that nobody uses, told before.

Real processes: the program as a pod runs it, and a server with JupyterLab's command line and API.
"""

import json
import os
import pty
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.dev_pods import LAB, install
from ultrascale.operate.tunnel import free_port
from ultrascale.parts.dev import idle_loop
from ultrascale.parts.dev.plan import program


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A running program of a pod, and the folder that its files are in."""

    process: "subprocess.Popen[str]"
    folder: Path

    def said(self, seconds: float = 20) -> str:
        """Return its log, once it has ended."""
        return self.process.communicate(timeout=seconds)[0]

    def state(self) -> dict[str, object]:
        return json.loads(self.wait(idle_loop.STATE).read_text())

    def wait(self, name: str) -> Path:
        path = self.folder / name
        until = time.monotonic() + 10
        while not path.exists():
            assert time.monotonic() < until, f"no {name}"
            time.sleep(0.02)
        return path


def notebook(port: int) -> dict[str, Any]:
    """Return the options of a notebook, as its job sends them."""
    words = ["--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1"]
    words += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    return {"port": port, "jupyter": words}


@contextmanager
def running(
    folder: Path, /, *command: str, lab: bool = False, idle: float = 0.6, **options: Any
) -> Generator[Pod]:
    """Run the pod's program, which looks twenty times in its idle time of so many seconds."""
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "dev").mkdir(exist_ok=True)
    if lab:
        install(folder / "bin", "jupyter-lab", LAB)
    chosen = {"idle_seconds": idle, "grace_seconds": 20, "port": 8888, "folder": str(folder)}
    chosen |= {"command": command, "jupyter": [], **options}
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", program(), json.dumps(chosen), str(folder)],
        env={"PATH": str(folder / "bin"), "HOME": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
    )
    try:
        yield Pod(process=process, folder=folder)
    finally:
        process.kill()
        process.communicate()


def test_a_pod_that_nobody_uses_says_so_before_it_ends_and_succeeds(tmp_path: Path) -> None:
    with running(tmp_path) as pod:
        said = pod.said()

    told = [line for line in said.splitlines() if line.startswith("ultrascale dev: ")]
    assert "no JupyterLab in this image" in told[0]
    assert "unless it is used" in told[1]
    assert "without use" in told[2]
    # Its Job completes, and its node is free.
    assert pod.process.returncode == 0
    assert "without use" in (tmp_path / "dev" / "termination-log").read_text()


def test_jupyterlab_listens_on_the_pods_own_loopback_with_a_token_that_no_log_shows(
    tmp_path: Path,
) -> None:
    port = free_port()
    with running(tmp_path, lab=True, idle=1.5, **notebook(port)) as pod:
        state = pod.state()
        words = json.loads(pod.wait("words").read_text())
        said = pod.said()

    token = str(state["token"])
    assert state == {"notebook": True, "port": port, "token": token}
    assert len(token) > 40
    assert token not in said
    assert not any(token in word for word in words)
    assert (tmp_path / idle_loop.STATE).stat().st_mode & 0o777 == 0o600
    assert words == notebook(port)["jupyter"]
    # It had time to end its kernels.
    assert (tmp_path / "stopped").exists()


def test_a_kernel_that_computes_keeps_the_pod_and_takes_a_warning_back(tmp_path: Path) -> None:
    port = free_port()
    with running(tmp_path, lab=True, idle=1.5, **notebook(port)) as pod:
        lines = (line for line in pod.process.stdout or () if line.startswith("ultrascale dev: "))
        assert "unless" in next(lines)
        (tmp_path / "busy").touch()
        assert "used again" in next(lines)
        time.sleep(1.6)
        assert pod.process.poll() is None
        (tmp_path / "busy").unlink()
        assert ["unless" in line for line in lines] == [True, False]


@pytest.mark.jupyter
def test_a_real_jupyterlab_tells_of_kernels_and_saved_files(tmp_path: Path) -> None:
    port = free_port()
    lab = shutil.which("jupyter-lab") or ""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "jupyter-lab").symlink_to(lab)
    with running(tmp_path, idle=12.0, **notebook(port)) as pod:
        token = str(pod.state()["token"])
        url = f"http://127.0.0.1:{port}/api"

        def ask(path: str, method: str = "GET", **body: str) -> int:
            headers = {"Authorization": f"token {token}"}
            data = json.dumps(body).encode() if method != "GET" else None
            request = urllib.request.Request(f"{url}/{path}", data, headers, method=method)
            with suppress(urllib.error.HTTPError), urllib.request.urlopen(request) as answer:
                return answer.status
            return 403

        until = time.monotonic() + 20
        while time.monotonic() < until:
            with suppress(OSError):
                assert ask("kernels") == 200
                break
            time.sleep(0.2)
        began = time.time()
        assert ask("contents/a.txt", "PUT", type="file", format="text", content="saved") == 201
        folder = (tmp_path / idle_loop.STATE).parent
        assert began - 1 < idle_loop.last_jupyter_use(port, token, folder, 0) < time.time()
        assert ask("kernels", "POST") == 201
        assert idle_loop.last_jupyter_use(port, token, folder, 0) >= began
        token = "wrong"
        assert ask("kernels") == 403
        said = pod.said(60)

    assert pod.process.returncode == 0
    assert "Shutting down 1 kernel" in said or "Kernel shutdown" in said


@pytest.mark.jupyter
def test_a_real_jupyterlab_asks_nobody_for_a_newer_release(tmp_path: Path) -> None:
    told = subprocess.run(
        [shutil.which("jupyter-lab") or "", "--show-config-json"],
        env={**os.environ, **idle_loop.jupyter_environment("token", tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    never = {"check_for_updates_class": "jupyterlab.NeverCheckForUpdate"}
    assert json.loads(told)["LabApp"] == never


def test_a_busy_cpu_is_use(tmp_path: Path) -> None:
    used = tmp_path / "sys" / "fs" / "cgroup" / "cpu.stat"
    used.parent.mkdir(parents=True)
    used.write_text("usage_usec 1500000\nuser_usec 1\n")

    assert idle_loop.cpu_seconds(tmp_path) == 1.5
    assert idle_loop.cpu_seconds(tmp_path / "none") == 0

    # On a busy machine a whole second passes before the program reads anything.
    with running(tmp_path, idle=2.0) as pod:
        for second in range(2, 27):
            # The kernel's file is never empty between two values.
            (tmp_path / "next").write_text(f"usage_usec {second * 1_000_000}\n")
            (tmp_path / "next").replace(used)
            time.sleep(0.1)
        assert pod.process.poll() is None
        # What was used before is no use now.
        pod.said()


@pytest.mark.parametrize(
    ("told", "busy"), [("0\n97\n", True), ("0\n3\n", False), ("[N/A]\n", False), ("", False)]
)
def test_a_busy_gpu_is_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str, busy: bool
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\nprintf '{told}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    assert idle_loop.gpu_is_busy() is busy


def test_typing_is_use_and_output_is_none(tmp_path: Path) -> None:
    """`top` and `watch` print for as long as somebody leaves them open."""
    terminals = tmp_path / "dev" / "pts"
    terminals.mkdir(parents=True)
    (terminals / "0").touch()
    os.utime(terminals / "0", (1_700_000_000, 1_800_000_000))

    assert idle_loop.last_typing(tmp_path) == 1_700_000_000
    assert idle_loop.last_typing(tmp_path / "none") == 0


def test_a_saved_file_is_use(tmp_path: Path) -> None:
    (tmp_path / "saves").touch()

    assert idle_loop.last_jupyter_use(free_port(), "token", tmp_path, 0) == 0
    (tmp_path / "saves").write_text("saved")
    os.utime(tmp_path / "saves", (0, 1_700_000_000))
    assert idle_loop.last_jupyter_use(free_port(), "token", tmp_path, 0) == 1_700_000_000


@pytest.mark.parametrize(
    "answer",
    ["HTTP/1.0 200 OK\r\n\r\n{}", "HTTP/1.0 200 OK\r\n\r\n[{}]", "SSH-2.0\r\n", ""],
    ids=["another program", "a kernel that says nothing", "no HTTP", "silence"],
)
def test_an_answer_that_is_none_of_jupyters_ends_no_pod(tmp_path: Path, answer: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def reply() -> None:
            with server.accept()[0] as client:
                client.recv(65_536)
                client.sendall(answer.encode())

        thread = threading.Thread(target=reply)
        thread.start()
        port = server.getsockname()[1]

        assert idle_loop.last_jupyter_use(port, "token", tmp_path, 0) == 0
        thread.join()


def test_terminals_show_when_the_pod_ends(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    (tmp_path / "dev" / "pts").mkdir(parents=True)
    (tmp_path / "dev" / "pts" / "3").symlink_to(os.ttyname(follower))
    with running(tmp_path) as pod:
        pod.said()
    seen = os.read(leader, 65_536)
    os.close(leader)
    os.close(follower)

    # Its own words were no use of the terminal.
    assert seen.index(b"unless it is used") < seen.index(b"without use")


def test_a_pod_that_is_deleted_stops_its_program_first(tmp_path: Path) -> None:
    port = free_port()
    with running(tmp_path, lab=True, idle=60, **notebook(port)) as pod:
        pod.wait("words")
        time.sleep(0.1)
        pod.process.send_signal(signal.SIGTERM)
        pod.said()

    assert (tmp_path / "stopped").exists()
    # Kubernetes makes it anew where its node was taken away.
    assert pod.process.returncode == 128 + signal.SIGTERM


@pytest.mark.parametrize(("command", "status"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137)])
def test_a_program_of_its_own_ends_the_pod_with_its_status(
    tmp_path: Path, command: str, status: int
) -> None:
    with running(tmp_path, "/bin/sh", "-c", command, idle=60) as pod:
        said = pod.said()

    assert pod.process.returncode == status
    assert f"exit code {status}" in said


def test_a_program_that_is_not_in_the_image_is_named(tmp_path: Path) -> None:
    with running(tmp_path, "code-server") as pod:
        said = pod.said()

    assert "code-server cannot be started" in said
    assert pod.process.returncode == 2  # no restart would help


def test_a_folder_that_cannot_be_entered_is_named(tmp_path: Path) -> None:
    with running(tmp_path, lab=True, folder=str(tmp_path / "none")) as pod:
        said = pod.said()

    assert "JupyterLab cannot be started: " in said
    assert str(tmp_path / "none") in said
    assert pod.process.returncode == 2


def test_processes_that_shells_leave_are_taken_away(tmp_path: Path) -> None:
    leave = "import subprocess; subprocess.Popen(['/bin/sleep', '0'])"
    with running(tmp_path, sys.executable, "-c", leave, idle=60) as pod:
        pod.said()

    assert pod.process.returncode == 0
