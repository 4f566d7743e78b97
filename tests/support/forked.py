"""Programs in processes that are forked from one that has done their slow imports.

A program finds its own arguments, environment, directory, output and signals, as ``python -m``
would start it, and its module is run anew; what differs is only that its imports are done. Tests
that are about the start itself use ``subprocess``.
"""

# Checked where torch is installed and where it is not.
# pyright: reportMissingImports=false

import gc
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

SERVER = multiprocessing.get_context("forkserver")
_TORCH = "tests.support.forked_imports"
SERVER.set_forkserver_preload([_TORCH])
_POLL_SECONDS = 0.02
_TORCHRUN = "torch.distributed.run"


class Program:
    """A running program, with as much of ``subprocess.Popen`` as torchrun asks for."""

    def __init__(self, process: BaseProcess) -> None:
        process.start()
        self._process = process
        assert process.pid is not None
        self.pid = process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status.

        Raises:
            subprocess.TimeoutExpired: After ``timeout`` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(self._process.name, timeout or 0.0)
            time.sleep(_POLL_SECONDS)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def start(
    module: str,
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    output: Path,
    folder: Path | None = None,
    imports: str = _TORCH,
) -> Program:
    """Start ``python -m module``, which writes to the end of ``output``.

    Workers of torchrun are forked from its agent, whose children they have to be.

    Args:
        module: The program.
        arguments: Its arguments.
        environment: All of its environment.
        output: File of what it says.
        folder: Its working directory; that of the caller if None.
        imports: Module with its slow imports. One server has those of the first program alone;
            others do theirs themselves.
    """
    SERVER.set_forkserver_preload([imports])
    target = _torchrun if module == _TORCHRUN else _become
    given = (module, list(arguments), dict(environment), str(output), str(folder or Path.cwd()))
    return Program(SERVER.Process(target=target, args=given, name=module))


def _become(
    module: str, arguments: Sequence[str], environment: Mapping[str, str], output: str, folder: str
) -> None:
    log = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, sys.__stdout__.fileno())  # pyright: ignore[reportOptionalMemberAccess]
    os.dup2(log, sys.__stderr__.fileno())  # pyright: ignore[reportOptionalMemberAccess]
    os.close(log)
    os.chdir(folder)
    _run(module, arguments, environment)


def _run(module: str, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = [folder for folder in environment.get("PYTHONPATH", "").split(":") if folder]
    sys.argv = [module, *arguments]
    if environment.get("PYTHONWARNINGS") == "error":
        warnings.simplefilter("error")
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit:
        raise
    except BaseException:
        # A program may have put its own there.
        sys.excepthook(*sys.exc_info())  # pyright: ignore[reportArgumentType]
        raise SystemExit(1) from None


def _torchrun(*given: Any) -> None:
    from torch.distributed.elastic.multiprocessing.subprocess_handler import subprocess_handler

    subprocess_handler.Popen = _worker  # pyright: ignore
    _become(*given)


def _worker(
    args: Sequence[str],
    env: Mapping[str, str],
    stdout: None,
    stderr: None,
    *,
    start_new_session: bool,
) -> "Program | subprocess.Popen[bytes]":
    """Fork a worker from the agent, instead of ``Popen`` of ``python -u -m module …``."""
    assert (stdout, stderr, start_new_session) == (None, None, True)
    if args[2] != "-m":
        # A script that imports nothing starts at once.
        return subprocess.Popen(args, env=env, start_new_session=True)
    _, _, _, module, *arguments = args
    fork = multiprocessing.get_context("fork")
    return Program(fork.Process(target=_leave_agent, args=(module, arguments, env), name=module))


def _leave_agent(module: str, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Keep nothing of the agent that the start of another program would not keep."""
    # What is collected later would close descriptors that are the worker's by then.
    gc.freeze()
    os.setsid()
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _run(module, arguments, environment)
