"""Programs in processes that are forked from one that has imported the command line.

Its import takes most of the time of a command. A program finds its own arguments, environment,
directory, streams and terminal, and ends as every Python does: its interpreter is finalized, and
what it wrote is flushed then. What differs is that some imports are done. Tests of the start
itself, and of variables that Python reads at its start, use ``subprocess``.
"""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.support.folders import ROOT

COMPLETION = ("ultrascale.cli.complete", "typer._adapters", "yaml")
"""Modules that complete a name which stands in a file, and no more."""
PLAN = (*COMPLETION, "ultrascale.cli.needs_views", "ultrascale.jobs.preparation", "rich.console")
"""Modules that read a cluster file, plan it and show that."""
MODULE = "import runpy; runpy.run_module('ultrascale', run_name='__main__', alter_sys=True)"
"""Program that ``python -m ultrascale`` runs."""

# Its children leave the loop and go on as the program that is asked for, so that they end as the
# program of an interpreter does.
_SERVER = """
import fcntl, gc, importlib, json, os, runpy, signal, socket, sys, termios
for module in sys.argv[2:]:
    importlib.import_module(module)
gc.freeze()
server = socket.socket(fileno=int(sys.argv[1]))
while True:
    size, streams, _, _ = socket.recv_fds(server, 8, 3)
    if not size:
        os._exit(0)
    message = server.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL)
    child = os.fork()
    if child == 0:
        break
    for stream in streams:
        os.close(stream)
    server.send(child.to_bytes(8, "big"))
    _, status = os.waitpid(child, 0)
    server.send(os.waitstatus_to_exitcode(status).to_bytes(8, "big", signed=True))
server.close()
asked = json.loads(message)
os.chdir(asked["folder"])
os.environ.clear()
os.environ.update(asked["environment"])
if asked["terminal"]:
    os.setsid()
    fcntl.ioctl(streams[0], termios.TIOCSCTTY, 0)
for number, stream in enumerate(streams):
    os.dup2(stream, number)
    os.close(stream)
sys.stdin = sys.__stdin__ = open(0, closefd=False)
sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)
sys.stderr = sys.__stderr__ = open(2, "w", 1, errors="backslashreplace", closefd=False)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = ["ultrascale", *asked["arguments"]]
program = asked["program"]
exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
"""


@dataclass
class Forked:
    """A running program."""

    pid: int
    _server: socket.socket

    def wait(self) -> int:
        """Return the exit status as `subprocess.Popen` does; a signal is negative."""
        return int.from_bytes(self._server.recv(8), "big", signed=True)


@cache
def _server(modules: tuple[str, ...]) -> socket.socket:
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVER, str(theirs.fileno()), *modules],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        pass_fds=[theirs.fileno()],
        start_new_session=True,
    )
    theirs.close()

    def end() -> None:
        process.send_signal(signal.SIGKILL)
        process.wait()
        ours.close()

    atexit.register(end)
    return ours


def start(
    *arguments: str,
    streams: tuple[int, int, int],
    program: str = MODULE,
    folder: Path = ROOT,
    environment: Mapping[str, str] | None = None,
    terminal: bool = False,
    imported: tuple[str, ...] = PLAN,
) -> Forked:
    """Start a program.

    Args:
        arguments: Those behind the program's name.
        streams: Descriptors of its input, output and error output.
        program: Its Python code.
        folder: Folder to run it in.
        environment: Its variables; None for those of the tests.
        terminal: Whether its input is a terminal that is to control its session.
        imported: Modules whose imports are done.
    """
    server = _server(imported)
    asked = {
        "arguments": arguments,
        "program": program,
        "folder": str(folder),
        "environment": dict(os.environ if environment is None else environment),
        "terminal": terminal,
    }
    message = json.dumps(asked).encode()
    socket.send_fds(server, [len(message).to_bytes(8, "big")], streams)
    server.sendall(message)
    return Forked(int.from_bytes(server.recv(8), "big"), server)


def run(
    *arguments: str,
    program: str = MODULE,
    folder: Path = ROOT,
    environment: Mapping[str, str] | None = None,
    stdout: int | None = None,
    stderr: int | None = None,
    imported: tuple[str, ...] = PLAN,
) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end.

    Args:
        arguments: As of `start`.
        program: As of `start`.
        folder: As of `start`.
        environment: As of `start`.
        stdout: Descriptor of its output; None to return it.
        stderr: Descriptor of its error output; None to return it.
        imported: As of `start`.
    """
    with (
        Path(os.devnull).open("rb") as nothing,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        streams = (
            nothing.fileno(),
            out.fileno() if stdout is None else stdout,
            err.fileno() if stderr is None else stderr,
        )
        status = start(
            *arguments,
            program=program,
            folder=folder,
            environment=environment,
            streams=streams,
            imported=imported,
        ).wait()
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(
            arguments, status, out.read().decode(), err.read().decode()
        )
