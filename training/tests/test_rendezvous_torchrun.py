"""A job of two real torchrun agents that meet at a real etcd."""

import json
import os
import signal
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support import forked
from tests.support.etcd_server import NO_ETCD, find_etcd, running_etcd
from tests.support.folders import ROOT

pytestmark = [
    pytest.mark.training,
    pytest.mark.skipif(find_etcd() is None, reason=NO_ETCD),
]

WORKER = ROOT / "tests" / "support" / "meeting_worker.py"


class Job:
    """Nodes of one job on this machine."""

    def __init__(self, folder: Path, endpoint: str) -> None:
        self._folder = folder
        self._endpoint = endpoint
        self.agents: dict[str, forked.Program] = {}

    def start(self, node: str) -> None:
        environment = os.environ | {
            "NODE": node,
            "OMP_NUM_THREADS": "1",
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        }
        conf = "last_call_timeout=1,keep_alive_interval=1,keep_alive_max_attempt=4,read_timeout=2"
        self.agents[node] = forked.start(
            "torch.distributed.run",
            [
                *("--rdzv-backend", "etcd-v3", "--rdzv-endpoint", self._endpoint),
                *("--rdzv-id", "job-0", "--rdzv-conf", conf, "--nnodes", "1:2"),
                *("--nproc-per-node", "1", "--local-addr", "127.0.0.1"),
                *("--monitor-interval", "0.2", "--max-restarts", "10"),
                *(str(WORKER), str(self._folder)),
            ],
            environment=environment,
            output=self._log(node),
        )

    def lose(self, node: str) -> None:
        """Kill the agent and the workers of ``node``."""
        self.agents[node].kill()
        self.agents[node].wait()
        for worker in self._workers():
            # Each has a session of its own, and so outlives its agent.
            if worker["node"] == node:
                with suppress(ProcessLookupError):
                    os.kill(worker["pid"], signal.SIGKILL)

    def wait_for_workers(self, nodes: set[str]) -> dict[int, str]:
        """Return the node of each rank once workers of exactly ``nodes`` have met."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            last = self._workers()[-len(nodes) :]
            if {each["node"] for each in last} == nodes and all(
                each["world"] == len(nodes) for each in last
            ):
                return {each["rank"]: each["node"] for each in last}
            time.sleep(0.05)
        raise AssertionError(f"workers of {nodes} did not meet:\n{self.output()}")

    def _workers(self) -> list[dict[str, Any]]:
        """Return what workers told when they had met, in the order of time."""
        told = sorted(self._folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        return [json.loads(path.read_text()) for path in told]

    def finish(self) -> None:
        (self._folder / "stop").touch()

    def output(self) -> str:
        return "\n".join(f"{node}: {self._log(node).read_text()[-3000:]}" for node in self.agents)

    def _log(self, node: str) -> Path:
        return self._folder / f"{node}.log"


@contextmanager
def running_job(folder: Path, endpoint: str) -> Generator[Job]:
    job = Job(folder, endpoint)
    try:
        yield job
    finally:
        for node in job.agents:
            job.lose(node)


def test_a_job_that_loses_node_0_goes_on_and_takes_another_node_in(tmp_path: Path) -> None:
    """With c10d the rendezvous would be lost with that node."""
    folder = tmp_path / "job"
    folder.mkdir()
    with running_etcd(tmp_path) as etcd, running_job(folder, etcd.endpoint) as job:
        # Its agents find it frozen: they have to wait for it.
        etcd.freeze()
        job.start("first")
        job.start("second")
        # Longer than they wait for one answer.
        threading.Timer(3, etcd.thaw).start()
        ranks = job.wait_for_workers({"first", "second"})
        (other,) = {"first", "second"} - {ranks[0]}

        job.lose(ranks[0])
        assert job.wait_for_workers({other}) == {0: other}

        job.start("third")
        job.wait_for_workers({other, "third"})
        job.finish()

        for node in (other, "third"):
            assert job.agents[node].wait(timeout=20) == 0, job.output()
        assert len(etcd.leases()) == 1
