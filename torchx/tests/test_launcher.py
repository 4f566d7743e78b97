"""Replicas of an app find out which one they are, where the first is, and wait for it."""

import signal
import socket
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("torchx.specs", reason="the extra `torchx` is not installed")

from torchx.components import dist
from torchx.specs import macros

from tests.support import torchx_apps as apps
from tests.support.job_containers import Image, run, running
from tests.support.jobs import container

HOST = "tune-trainer-0.tune"
FIRST = {"FIRST_INDEX": "0", "VC_TASK_INDEX": "0", "RANK_ZERO_HOST": HOST}
# The seventh pod of a job whose first pod is a task of its own.
SEVENTH = FIRST | {"FIRST_INDEX": "1", "VC_TASK_INDEX": "5"}
INDEXED = {"JOB_COMPLETION_INDEX": "6", "RANK_ZERO_HOST": HOST}


@pytest.fixture
def image(tmp_path: Path) -> Image:
    made = Image(tmp_path)
    made.has("launch")
    made.has("torchrun")
    return made


def arguments(image: Image, variables: Mapping[str, str], *args: str) -> list[str]:
    """Return what the program of an app with ``args`` is started with."""
    command = container(apps.job_of(apps.make_app(args=[*args])))["command"]
    status, output = run(command, image, variables)
    assert status == 0, output
    return image.told()["argv"][1:]


def torchrun(port: int = 29500) -> list[str]:
    """Return the command of TorchX's own component for torchrun."""
    app = dist.torchrun("--lr", "1", script="train.py", image=apps.IMAGE, j="2x1", name="tune")
    app.roles[0].resource = apps.trainium()
    command: list[str] = container(apps.job_of(app))["command"]
    here = [
        word.replace("/dev/tcp/$$RANK_ZERO_HOST/29500", f"/dev/tcp/127.0.0.1/{port}")
        for word in command
    ]
    assert here != command
    return here


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@contextmanager
def listening(port: int) -> Generator[None]:
    done = threading.Event()

    def accept() -> None:
        with socket.create_server(("127.0.0.1", port)):
            done.wait(20)

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("variables", [SEVENTH, INDEXED], ids=["Volcano", "Indexed Job"])
def test_each_pod_finds_its_index_in_its_arguments(image: Image, variables: dict[str, str]) -> None:
    words = [f"--node={macros.replica_id}", macros.app_id, macros.rank0_env]

    assert arguments(image, variables, *words) == ["--node=6", "tune", "RANK_ZERO_HOST"]


def test_the_only_pod_of_an_app_has_index_0() -> None:
    job = apps.job_of(apps.make_app(num_replicas=1, args=[macros.replica_id]))

    assert container(job)["command"] == ["launch", "0"]


def test_arguments_arrive_as_they_are(image: Image) -> None:
    words = ["two  words", "", "it's", '"', "a\nb", "*", "$HOME", "$(POD_IP)", "\\", "&"]

    # Macros of TorchX write `$` as `$$`.
    assert arguments(image, SEVENTH, *(word.replace("$", "$$") for word in words)) == words


@pytest.mark.parametrize(("variables", "host"), [(FIRST, "localhost"), (SEVENTH, HOST)])
def test_the_first_pod_is_localhost_to_itself(
    image: Image, variables: Mapping[str, str], host: str
) -> None:
    arguments(image, variables)

    assert image.told()["env"]["RANK_ZERO_HOST"] == host


def test_the_first_pod_of_a_torchrun_app_opens_the_store_at_once(image: Image) -> None:
    status, output = run(torchrun(unused_port()), image, FIRST)

    assert status == 0, output
    assert "localhost:29500" in image.told()["argv"]


def test_other_pods_of_a_torchrun_app_wait_for_the_store(image: Image) -> None:
    port = unused_port()
    with running(torchrun(port), image, SEVENTH):
        time.sleep(0.3)
        assert not image.started()
        with listening(port):
            told = image.told()

    assert f"{HOST}:29500" in told["argv"]


def test_a_pod_that_waits_for_the_store_stops_when_it_is_told_to(image: Image) -> None:
    with running(torchrun(unused_port()), image, SEVENTH) as process:
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)

        assert process.wait(timeout=10) == 143
