"""Runs of a training program as processes that are forked from one that has imported it.

The imports take ten seconds. Each process has torchrun's environment, arguments, output and exit
status of its own; the collectives, checkpoints and signals are real.
"""

import logging
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import torch

_POLL_SECONDS = 0.05
# A step takes a tenth of a second on a machine that does nothing else.
_PATIENCE = 600.0
Program = Callable[[], object]
PEAKS: list[int] = []
"""Largest memory of each process that has ended, in bytes."""


@dataclass
class World:
    """Processes of one start of a run."""

    pids: list[int]
    logs: list[Path]
    statuses: list[int] = field(default_factory=list[int])

    def text(self) -> str:
        """Return what rank 0 has written so far."""
        return self.logs[0].read_text()

    def wait_for(self, words: str, *, seconds: float = _PATIENCE) -> None:
        """Wait until rank 0 has written ``words``."""
        self.wait_until(lambda: words in self.text(), seconds=seconds)

    def wait_until(self, reached: Callable[[], bool], *, seconds: float = _PATIENCE) -> None:
        """Wait until ``reached``."""
        deadline = time.monotonic() + seconds
        while not reached():
            if time.monotonic() > deadline or os.waitpid(self.pids[0], os.WNOHANG) != (0, 0):
                self._kill()
                raise AssertionError(self.text())
            time.sleep(_POLL_SECONDS)

    def signal(self, number: signal.Signals, *, ranks: Sequence[int] | None = None) -> None:
        """Send a signal to some ranks, or to all."""
        for rank in range(len(self.pids)) if ranks is None else ranks:
            os.kill(self.pids[rank], number)

    def wait(self, *, seconds: float = _PATIENCE) -> list[int]:
        """Return the exit statuses, negative for a signal."""
        deadline = time.monotonic() + seconds
        return [self._wait(pid, deadline) for pid in self.pids]

    def _wait(self, pid: int, deadline: float) -> int:
        while True:
            ended, status, usage = os.wait4(pid, os.WNOHANG)
            if ended:
                PEAKS.append(usage.ru_maxrss * 1024)
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > deadline:
                self._kill()
                raise AssertionError(f"a process did not end: {self.text()}")
            time.sleep(_POLL_SECONDS)

    def _kill(self) -> None:
        for pid in self.pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def start(
    program: Program,
    world: int,
    arguments: Sequence[str],
    folder: Path,
    *,
    attempt: str = "0",
    run_id: str = "toy",
) -> World:
    """Start a program in ``world`` processes, whose logs go to ``folder``."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    folder.mkdir(parents=True, exist_ok=True)
    logs = [folder / f"log-{attempt}-{rank}" for rank in range(world)]
    sys.stdout.flush()
    pids = [
        _fork(program, rank, world, port, arguments, log, run_id) for rank, log in enumerate(logs)
    ]
    return World(pids, logs)


def _fork(
    program: Program,
    rank: int,
    world: int,
    port: int,
    arguments: Sequence[str],
    log: Path,
    run_id: str,
) -> int:
    log.touch()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        output = os.open(log, os.O_WRONLY | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
        sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr
        os.environ |= {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(world),
            "LOCAL_WORLD_SIZE": str(world),
            "GROUP_RANK": "0",
            "TORCHELASTIC_RUN_ID": run_id,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }
        # As torchrun sets it for several processes of a node.
        torch.set_num_threads(1)
        # Those of pytest.
        logging.root.handlers.clear()
        sys.argv = ["program", *arguments]
        program()
        status = 0
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
