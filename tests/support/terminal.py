"""A program in a terminal of its own: what is shown, and the keys that a user presses."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.support import forked_commands
from tests.support.folders import ROOT

COLUMNS = 80
_STYLES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass
class Shown:
    """Terminal output of a program, and its exit status."""

    status: int
    text: str

    @property
    def plain(self) -> str:
        """The text without colors."""
        return _STYLES.sub("", self.text)

    @property
    def lines(self) -> Sequence[str]:
        """Final screen of the terminal, line by line."""
        shown: list[str] = []
        for line in self.plain.replace("\r\n", "\n").split("\n"):
            cells = ""
            for part in line.split("\r"):
                cells = part + cells[len(part) :]
            shown.append(cells.rstrip())
        return shown


def in_terminal(
    *command: str,
    stop_after: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Shown:
    """Run a command in a terminal of 80 columns.

    Args:
        command: The program and its arguments.
        stop_after: Text after which Ctrl-C is pressed; None for never.
        environment: Variables beside those of the tests.
    """
    ours, theirs = _open()
    process = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=ROOT,
        env=_variables(environment),
        start_new_session=True,
        # Ctrl-C reaches the programs of the terminal that controls their session.
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    return _shown(process, ours, stop_after)


def command_in_terminal(
    *arguments: str,
    program: str = forked_commands.MODULE,
    stop_after: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Shown:
    """Run `ultrascale` with arguments in a terminal of 80 columns, without its start.

    Args:
        arguments: Those behind `ultrascale`.
        program: As of `forked_commands.start`.
        stop_after: Text after which Ctrl-C is pressed; None for never.
        environment: Variables beside those of the tests.
    """
    ours, theirs = _open()
    process = forked_commands.start(
        *arguments,
        program=program,
        streams=(theirs, theirs, theirs),
        environment=_variables(environment),
        terminal=True,
    )
    os.close(theirs)
    return _shown(process, ours, stop_after)


def _open() -> tuple[int, int]:
    """Return the descriptors of a new terminal: ours, and that of its programs."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    return ours, theirs


def _variables(more: Mapping[str, str] | None) -> Mapping[str, str]:
    unset = ("COLUMNS", "NO_COLOR", "FORCE_COLOR")
    variables = {name: value for name, value in os.environ.items() if name not in unset}
    return variables | {"TERM": "xterm-256color", **(more or {})}


def _shown(
    process: "subprocess.Popen[bytes] | forked_commands.Forked", ours: int, stop_after: str | None
) -> Shown:
    """Read what a program shows until it ends."""
    written = b""
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        try:
            part = os.read(ours, 65_536)
        except OSError:
            break
        if not part:
            break
        written += part
        if stop_after is not None and stop_after.encode() in written:
            os.write(ours, b"\x03")
            stop_after = None
    else:
        os.killpg(process.pid, signal.SIGKILL)
    os.close(ours)
    return Shown(process.wait(), written.decode())


def ultrascale(*arguments: str) -> Sequence[str]:
    """Return the command that runs `ultrascale` with arguments."""
    return (sys.executable, "-m", "ultrascale", *arguments)
