"""Local port that leads to a cluster's private endpoint through a node of the cluster.

The AWS CLI opens the port by Session Manager's plugin: no port of the node has to be open.

Source: https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-sessions-start.html
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from typing import BinaryIO

from ultrascale.errors import ClusterError
from ultrascale.operate.clock import Clock

# --- Handling of signals that end this program and its child commands -----------------------------


_ENDING = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ends_as_by_ctrl_c() -> Generator[None]:
    """Turn SIGTERM and SIGHUP into KeyboardInterrupt, so that this program cleans up.

    A signal that is ignored stays ignored, such as SIGHUP under `nohup`.
    """
    signals = [number for number in _ENDING if signal.getsignal(number) != signal.SIG_IGN]
    before = [signal.signal(number, signal.default_int_handler) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)


@contextmanager
def command_takes_ctrl_c() -> Generator[None]:
    """Let Ctrl-C reach only the command in the terminal, as a shell does."""
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def signals_held_back() -> Generator[None]:
    """Hold SIGTERM and SIGHUP back to the end of the block, then raise KeyboardInterrupt.

    Between the start of a program and the assignment of its handle, a signal would leave the
    program running.
    """
    missed: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _frame: missed.append(number))
        for number in _ENDING
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if missed:
        raise KeyboardInterrupt


# --- Local port that leads to a cluster's private endpoint through a node of the cluster ----------


_DOCUMENT = "AWS-StartPortForwardingSessionToRemoteHost"
_HTTPS = 443
_LOCALHOST = "127.0.0.1"
_OPEN_SECONDS = 30.0
_LOOK_SECONDS = 0.1
_END_SECONDS = 5.0
_LAST_LINES = 3

_INSTALL = {
    "aws": "https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html",
    "session-manager-plugin": "https://docs.aws.amazon.com/systems-manager/latest/userguide/"
    "session-manager-working-with-install-plugin.html",
}


Process = subprocess.Popen[bytes]


def refuse_missing_programs() -> None:
    """Refuse to start without the programs that open the port.

    Raises:
        ClusterError: A program is not installed. The message links its installation guide.
    """
    missing = [program for program in _INSTALL if shutil.which(program) is None]
    if missing:
        raise ClusterError(
            *(f"{each}: not installed, or not on PATH; see {_INSTALL[each]}" for each in missing)
        )


def command(
    instance: str, host: str, *, port: int, region: str, profile: str | None
) -> Sequence[str]:
    """Return the command that forwards ``port`` to ``host`` through ``instance``."""
    parameters = {
        "host": [host],
        "portNumber": [str(_HTTPS)],
        "localPortNumber": [str(port)],
    }
    words = ["aws", "ssm", "start-session", "--region", region, "--target", instance]
    words += ["--document-name", _DOCUMENT, "--parameters", json.dumps(parameters)]
    return words if profile is None else [*words, "--profile", profile]


def free_port() -> int:
    """Return a free port of this machine."""
    with socket.socket() as found:
        found.bind((_LOCALHOST, 0))
        return found.getsockname()[1]


@contextmanager
def opened(
    words: Sequence[str], port: int, *, clock: Clock, stderr: int | None = None
) -> Generator[Process]:
    """Run a command that opens ``port``; the end of the block ends it and its children.

    The command runs in a process group of its own, so that Ctrl-C does not reach it first.

    Args:
        words: The command.
        port: The local port.
        clock: The clock.
        stderr: Its standard error, in the form of ``subprocess``; None for the caller's.

    Raises:
        ClusterError: The port does not open.
    """
    if is_open(port):
        raise ClusterError(f"port {port} is taken; name another by --port, or leave it out")
    # The AWS CLI prints errors to standard error; its plugin prints all to standard output.
    with ends_as_by_ctrl_c(), tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=said, stderr=stderr, start_new_session=True
        )
        try:
            _until_open(process, port, clock, said)
            yield process
        finally:
            end(process)


def _until_open(process: Process, port: int, clock: Clock, said: BinaryIO) -> None:
    started = clock.now()
    while not is_open(port):
        status = process.poll()
        if status is not None:
            raise ClusterError(
                f"the session ended with status {status} before its port was open; its lines "
                f"above say why{_last_words(said)}"
            )
        if (clock.now() - started).total_seconds() >= _OPEN_SECONDS:
            raise ClusterError(
                f"port {port} was not open within {_OPEN_SECONDS:g} seconds; try again, or name "
                "another by --port"
            )
        clock.sleep(_LOOK_SECONDS)


def _last_words(said: BinaryIO) -> str:
    said.seek(0)
    lines = said.read().decode(errors="replace").split("\n")
    last = [line.strip() for line in lines if line.strip()][-_LAST_LINES:]
    return f", or its last output: {'; '.join(last)}" if last else ""


def is_open(port: int) -> bool:
    """Return whether some program listens on a port of this machine."""
    try:
        with socket.create_connection((_LOCALHOST, port), timeout=1):
            return True
    except OSError:
        return False


def end(process: Process) -> None:
    """End a program and its children: the AWS CLI leaves its plugin behind.

    SIGINT comes first: at any other signal the plugin does not close the session, which then stays
    open in Session Manager until it times out.

    Source: https://github.com/aws/session-manager-plugin/blob/mainline/src/sessionmanagerplugin/session/portsession/muxportforwarding.go
    """
    for how in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        # macOS refuses to signal a group that has ended.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, how)
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            continue
        return
