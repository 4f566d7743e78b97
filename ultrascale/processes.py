"""Child processes that end with their command, whatever ends it."""

import os
import signal
import subprocess
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class Terminated(SystemExit):
    """SIGTERM or SIGHUP arrived: the command ends, and undoes what it has begun."""


def run(
    command: Sequence[str], *, environment: Mapping[str, str], folder: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end, and return its status and its whole output.

    The program has a session of its own, so that Ctrl-C reaches only this process. It is killed
    with all of its children when this process is interrupted, or gets SIGTERM or SIGHUP.

    Args:
        command: The program and its arguments.
        environment: Its environment variables.
        folder: The folder to run it in; the current one by default.

    Raises:
        OSError: The program cannot be started.
    """
    with (
        signals_as_exceptions(),
        subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        ) as process,
    ):
        try:
            output, _ = process.communicate()
        except BaseException:
            # macOS raises PermissionError for a group of ended processes until all were waited for.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, output)


@contextmanager
def signals_as_exceptions() -> Generator[None]:
    """Raise `Terminated` for signals that would otherwise end the process at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _: FrameType | None) -> None:
        raise Terminated(128 + number)

    # Under `nohup` SIGHUP is ignored, and stays so.
    changed = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in changed:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def uninterrupted() -> Generator[None]:
    """Hold Ctrl-C, SIGTERM and SIGHUP back until a short change is complete."""
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, *_SIGNALS})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
