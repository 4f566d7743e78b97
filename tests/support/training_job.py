"""Training jobs of real torchrun agents on this machine, and the loss curves they leave."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import forked
from tests.support.etcd_server import free_ports
from tests.support.folders import ROOT

# Fifteen processes may share two cores.
_PATIENCE_SECONDS = 120.0
_POLL_SECONDS = 0.02
# What torchrun logs for each worker to which it sends SIGTERM.
_TOLD_TO_STOP = "closing signal SIGTERM"
_TWO_EACH = {"n0": 2, "n1": 2}
ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
    "PYTHONPATH": f"{ROOT / 'training'}:{ROOT / 'examples' / 'bert'}",
    # Tests kill a job more often than hardware does; some milliseconds of progress earn a restart.
    "ULTRASCALE_RESTART_BUDGET": "1e-6",
}


def run(module: str, *arguments: object, folder: Path) -> None:
    """Run a program of the BERT package in ``folder`` to its end, which must be a success."""
    output = folder / f"{module}.log"
    program = forked.start(
        f"ultrascale_bert.{module}",
        [*map(str, arguments)],
        environment=ENVIRONMENT,
        output=output,
        folder=folder,
    )
    assert program.wait(_PATIENCE_SECONDS) == 0, output.read_text()


@dataclass(frozen=True, kw_only=True)
class Worker:
    """One running worker, and the file of what it says."""

    program: forked.Program
    output: Path

    def outcome(self) -> tuple[int, str]:
        """Return exit status and what it said, once it has ended."""
        return self.program.wait(_PATIENCE_SECONDS), self.output.read_text()


def start_worker(arguments: Sequence[str], directory: Path, **environment: str) -> Worker:
    """Start one process of a job in ``directory``, without torchrun."""
    output = directory / f"worker-{environment.get('RANK', '0')}.log"
    program = forked.start(
        "ultrascale_bert.pretrain",
        arguments,
        environment={**ENVIRONMENT, **environment},
        output=output,
        folder=directory,
    )
    return Worker(program=program, output=output)


def start_workers(
    arguments: Sequence[str], directories: Sequence[Path], **environment: str
) -> list[Worker]:
    """Start one worker of the same job in each directory, as torchrun would, without torchrun."""
    common = {
        "WORLD_SIZE": str(len(directories)),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_ports(1)[0]),
    }
    return [
        start_worker(arguments, directory, **common, **environment, RANK=str(rank), LOCAL_RANK="0")
        for rank, directory in enumerate(directories)
    ]


@dataclass(frozen=True, kw_only=True)
class Flags:
    """Flags that all runs of a test share, so that their curves can be compared."""

    data: Path
    steps: int
    checkpoint_every: int = 10

    def of(self, output: Path, *more: object) -> Sequence[str]:
        """Return the command line of a run that writes to ``output``."""
        flags: Mapping[str, object] = {
            "model": "tiny",
            "data-dir": self.data,
            "output-dir": output,
            "batch-size": 2,
            "global-batch": 8,
            "max-steps": self.steps,
            "warmup-steps": 5,
            "lr": 1e-3,
            "log-every": 1,
            "checkpoint-every": self.checkpoint_every,
            "device": "cpu",
        }
        pairs = [(f"--{name}", str(value)) for name, value in flags.items()]
        return [*(word for pair in pairs for word in pair), *map(str, more)]


def events(output: Path) -> list[dict[str, Any]]:
    """Return what the runs in ``output`` wrote, the line aside that one may be writing."""
    path = output / "metrics.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def named(output: Path, event: str) -> list[dict[str, Any]]:
    return [each for each in events(output) if each["event"] == event]


def curve(output: Path) -> dict[int, float]:
    """Return the loss of each step; of a step that was computed again, all must agree."""
    found: dict[int, float] = {}
    for each in named(output, "step"):
        assert each["loss"] == pytest.approx(found.setdefault(each["step"], each["loss"]))
    return found


class Job:
    """The agents of one job, as nodes of a cluster would run them.

    Args:
        arguments: Of the training program.
        workers: Of each node.
        backend: Rendezvous backend of torchrun.
        endpoint: Of an etcd; without it the first node holds the store of c10d.
    """

    def __init__(
        self,
        folder: Path,
        arguments: Sequence[str],
        *,
        nodes: str = "1:2",
        workers: Mapping[str, int] = _TWO_EACH,
        backend: str = "c10d",
        endpoint: str | None = None,
    ) -> None:
        self._folder = folder
        self._arguments = arguments
        self._nodes = nodes
        self._workers = workers
        self._backend = backend
        self._endpoint = endpoint or f"127.0.0.1:{free_ports(1)[0]}"
        self._agents: dict[str, forked.Program] = {}

    def start(self, *nodes: str) -> None:
        """Start agents; under c10d the first node of all must be among the first."""
        for node in nodes:
            conf = "last_call_timeout=1,keep_alive_interval=1,keep_alive_max_attempt=3"
            if self._backend == "c10d":
                conf += f",is_host={str(node == 'n0').lower()}"
            self._agents[node] = forked.start(
                "torch.distributed.run",
                [
                    *("--nnodes", self._nodes, "--nproc-per-node", str(self._workers[node])),
                    *("--rdzv-backend", self._backend, "--rdzv-endpoint", self._endpoint),
                    *("--rdzv-id", self._folder.name, "--rdzv-conf", conf),
                    *("--local-addr", "127.0.0.1", "--monitor-interval", "0.1"),
                    *("--max-restarts", "100", "-m", "ultrascale_bert.pretrain"),
                    *self._arguments,
                ],
                environment={**ENVIRONMENT, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "20"},
                output=self._log(node),
            )

    def workers(self, node: str) -> list[int]:
        """Return the process ids of a node's workers."""
        agent = self._agents[node].pid
        children = Path(f"/proc/{agent}/task/{agent}/children")
        return [int(pid) for pid in children.read_text().split()] if children.exists() else []

    def terminate(self, node: str) -> None:
        """Tell an agent to stop, as Kubernetes does with a pod, and wait until it is gone."""
        self._agents[node].terminate()
        self._agents[node].wait(_PATIENCE_SECONDS)

    def lose(self, node: str) -> None:
        """Kill the agent and the workers of ``node``, as a failing machine does."""
        workers = self.workers(node)
        for pid in [self._agents[node].pid, *workers]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._agents[node].wait()

    def add(self, node: str, *, to: str) -> None:
        """Start an agent and wait until ``to`` makes room for it.

        Meanwhile the workers stand still, or they would be done before the agent has started.
        """
        told = self._log(to).read_text().count(_TOLD_TO_STOP)
        workers = self.workers(to)
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        self.start(node)
        self.wait_for(
            lambda: self._log(to).read_text().count(_TOLD_TO_STOP) >= told + len(workers),
            f"{to} notices {node}",
        )
        for pid in workers:
            os.kill(pid, signal.SIGCONT)

    def wait(self, node: str) -> int:
        """Return the exit status of an agent that ends by itself."""
        try:
            return self._agents[node].wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            pytest.fail(f"{node} does not end:\n{self.output()}")

    def wait_for(self, reached: Callable[[], bool], what: str) -> None:
        """Wait until something has been reached."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not reached():
            if time.monotonic() > deadline:
                pytest.fail(f"{what}: not within {_PATIENCE_SECONDS:.0f} s\n{self.output()}")
            time.sleep(_POLL_SECONDS)

    def said(self) -> list[str]:
        """Return all lines of all agents and workers so far."""
        logs = sorted(self._folder.glob("*.log"))
        return [line for log in logs for line in log.read_text().splitlines()]

    def output(self) -> str:
        return "\n".join(
            f"--- {path.name}\n{path.read_text()[-3000:]}"
            for path in sorted(self._folder.glob("*.log"))
        )

    def stop_all(self) -> None:
        for node, agent in self._agents.items():
            if agent.poll() is None:
                self.lose(node)

    def _log(self, node: str) -> Path:
        return self._folder / f"{node}.log"


@contextmanager
def job(folder: Path, arguments: Sequence[str], **options: Any) -> Generator[Job]:
    """Start no agent yet, and leave none behind."""
    folder.mkdir(parents=True, exist_ok=True)
    made = Job(folder, arguments, **options)
    try:
        yield made
    finally:
        made.stop_all()
