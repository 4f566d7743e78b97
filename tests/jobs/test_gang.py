"""The pods of a rendered job, run here by the real torchrun: they meet, and meet again."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.etcd_server import NO_ETCD, find_etcd, free_ports, running_etcd
from tests.support.forked_torchrun import forked_torchrun
from tests.support.job_containers import expanded, moved
from tests.support.jobs import VOLCANO, container, environment, job_cluster, prepared
from tests.support.soak import LONG

pytestmark = pytest.mark.training

# Each process tells who it is, and stays until it may go; the last may be told to fail.
SCRIPT = """
import json, os, pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "TORCHELASTIC_RUN_ID", "POD_IP")
told = {name: os.environ[name] for name in names} | {"arguments": sys.argv[2:]}
path = folder / f"{os.environ['ATTEMPT']}-{os.environ['RANK']}"
path.with_suffix(".part").write_text(json.dumps(told))
path.with_suffix(".part").rename(path)
while not (folder / f"go-{os.environ['ATTEMPT']}").exists():
    if told["RANK"] == "3" and (folder / f"fail-{os.environ['ATTEMPT']}").exists():
        sys.exit(1)
    time.sleep(0.02)
"""
WORDS = ["a b", "$HOME", "$(POD_IP)", "$$", ""]
# Nodes and processes of each; more with SOAK in the environment.
SIZES = {"static": (8 if LONG else 4, 1), "etcd-v2": (2, 2)}


class Gang:
    """The pods of one job, as Volcano would start them; the first has the real `torchrun`."""

    def __init__(
        self,
        command: Sequence[str],
        variables: Mapping[str, str],
        folder: Path,
        image: Path,
        *,
        world: int,
    ) -> None:
        self._command = command
        self._world = world
        self._variables = variables
        self._folder = folder
        self._image = image
        self.pods: list[subprocess.Popen[bytes]] = []

    def start(self, index: int, attempt: int) -> None:
        """Start the pod of ``index`` with what Volcano and Kubernetes give it."""
        given = {
            "VC_TASK_INDEX": str(index),
            # Each pod has an address of its own.
            "POD_IP": f"127.0.0.{index + 1}",
            "POD_GROUP": "tune-0b1c",
            "ATTEMPT": str(attempt),
            "OMP_NUM_THREADS": "1",
        }
        variables = {**self._variables, **given}
        path = (
            os.environ["PATH"] if index == attempt == 0 else f"{self._image}:{os.environ['PATH']}"
        )
        with (self._folder / f"log-{attempt}-{index}").open("wb") as log:
            self.pods.append(
                subprocess.Popen(
                    [expanded(word, variables) for word in self._command],
                    env={"PATH": path, **variables},
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )

    def told(self, attempt: int) -> list[dict[str, Any]]:
        """Return what the processes of an attempt tell, by rank, once all are there."""
        files = [self._folder / f"{attempt}-{rank}" for rank in range(self._world)]
        deadline = time.monotonic() + 40
        while not all(file.exists() for file in files):
            assert time.monotonic() < deadline, self.output()
            time.sleep(0.05)
        return [json.loads(file.read_text()) for file in files]

    def restart(self) -> None:
        """End all pods once one has failed, as Volcano's RestartJob does, and see them gone."""
        deadline = time.monotonic() + 30
        while not any(pod.poll() for pod in self.pods):
            assert time.monotonic() < deadline, self.output()
            time.sleep(0.05)
        for pod in self.pods:
            pod.send_signal(signal.SIGTERM)
        for pod in self.pods:
            pod.wait(timeout=30)
        self.pods.clear()

    def output(self) -> str:
        logs = sorted(self._folder.glob("log-*"))
        return "\n".join(f"{log.name}: {log.read_text()[-2000:]}" for log in logs)


@contextmanager
def gang(
    command: Sequence[str], variables: Mapping[str, str], folder: Path, *, world: int
) -> Generator[Gang]:
    with forked_torchrun(folder) as image:
        found = Gang(command, variables, folder, image, world=world)
        try:
            yield found
        finally:
            for pod in found.pods:
                with suppress(ProcessLookupError):
                    os.killpg(pod.pid, signal.SIGKILL)
                pod.wait()


@pytest.fixture(
    params=[
        "static",
        pytest.param("etcd-v2", marks=pytest.mark.skipif(find_etcd() is None, reason=NO_ETCD)),
    ]
)
def backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def pods(backend: str, tmp_path: Path) -> Iterator[Gang]:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    nodes, processes = SIZES[backend]
    train = {**job_cluster()["pools"][1], "nodes": {"static": nodes}}
    job = prepared(
        job_cluster(train, scheduling=VOLCANO | {"rendezvous": {"backend": backend}}),
        rendezvous=backend,
        script=str(script),
        args=[str(tmp_path), *WORDS],
        nodes=nodes,
        processes_per_node=processes,
        restarts={"workers": 0},
    )
    command = container(job)["command"]
    fields = {"POD_IP", "POD_GROUP", "ATTEMPT"}
    variables = {name: each for name, each in environment(job).items() if name not in fields}
    with ExitStack() as stack:
        if backend == "static":
            command = moved(command, "tune-worker-0.tune", 29500, *free_ports(1))
        else:
            etcd = stack.enter_context(running_etcd(tmp_path, arguments=["--enable-v2=true"]))
            command = moved(command, "etcd-client", 2379, etcd.port)
        yield stack.enter_context(gang(command, variables, tmp_path, world=nodes * processes))


def test_a_gang_meets_and_meets_again_after_it_failed(
    pods: Gang, backend: str, tmp_path: Path
) -> None:
    """Agents that end close their rendezvous: who comes to it again dies at once."""
    nodes, processes = SIZES[backend]
    for index in reversed(range(nodes)):
        pods.start(index, attempt=0)
    first = pods.told(attempt=0)
    (tmp_path / "fail-0").touch()
    pods.restart()
    for index in reversed(range(nodes)):
        pods.start(index, attempt=1)
    second = pods.told(attempt=1)
    (tmp_path / "go-1").touch()

    assert [pod.wait(timeout=20) for pod in pods.pods] == [0] * nodes, pods.output()
    addresses = [f"127.0.0.{index + 1}" for index in range(nodes)]
    for attempt, told in enumerate((first, second)):
        assert {each["WORLD_SIZE"] for each in told} == {str(nodes * processes)}
        assert sorted(each["LOCAL_RANK"] for each in told) == sorted(
            [*map(str, range(processes))] * nodes
        )
        # An address that all pods reach, not a name.
        assert {each["MASTER_ADDR"] for each in told} <= set(addresses)
        if backend == "static":
            assert [each["POD_IP"] for each in told] == addresses
        assert {each["TORCHELASTIC_RUN_ID"] for each in told} == {f"tune-0b1c-{attempt}"}
        assert all(each["arguments"] == WORDS for each in told)
