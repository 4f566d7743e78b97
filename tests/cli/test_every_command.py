"""The command line as people expect it, whatever the command."""

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
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support import forked_commands
from tests.support.command_line import Ultrascale
from tests.support.folders import ROOT
from ultrascale import cli

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
    *command: str, stop_after: str | None = None, environment: Mapping[str, str] | None = None
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


def program(*arguments: str) -> Sequence[str]:
    """Return the command that runs `ultrascale` with arguments."""
    return (sys.executable, "-m", "ultrascale", *arguments)


ULTRA = str(ROOT / "clusters" / "ultra-100k.yaml")
TRAINIUM = str(ROOT / "clusters" / "trainium-bert.yaml")
EVERY: Sequence[tuple[str, ...]] = (
    (),
    *((name,) for name in cli.COMMANDS),
    ("capacity", "find"),
    ("capacity", "buy"),
    ("network", "needs"),
    ("network", "record"),
)
SHOWING: Sequence[tuple[str, ...]] = (
    ("check", TRAINIUM),
    ("plan", TRAINIUM),
    ("plan", TRAINIUM, "--all", "--explain"),
    ("matrix",),
    ("types", "p5"),
    ("plan", "missing.yaml"),
    ("capacity",),
)
_SLOW = '''
import subprocess, sys, types
from ultrascale import cli
from ultrascale.__main__ import run
from ultrascale.progress import progress

def slow():
    """Take long."""
    with progress("working on it"):
        print("begun", flush=True)
        subprocess.run(["sleep", "30"])

module = types.ModuleType("ultrascale.cli.slow")
module.slow = slow
sys.modules[module.__name__] = module
cli.COMMANDS["check"] = cli.Command("slow", "slow", "Take long.", stopped="no file was written")
sys.argv = ["ultrascale", "check"]
run()
'''


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_help_fits_a_terminal_and_an_unknown_option_is_wrong_use(
    words: tuple[str, ...], ultrascale: Ultrascale
) -> None:
    short, long = ultrascale(*words, "-h"), ultrascale(*words, "--help")
    unknown = ultrascale(*words, "--hepl")
    assert short == long
    assert (short.returncode, short.stderr) == (0, "")
    assert max(map(len, short.stdout.splitlines())) <= COLUMNS
    assert (unknown.returncode, unknown.stdout) == (64, "")
    assert "--help" in unknown.stderr


def test_a_misspelt_command_is_answered_with_its_neighbour(ultrascale: Ultrascale) -> None:
    answer = ultrascale("prefligth", "a.yaml")
    assert answer.returncode == 64
    assert "Did you mean 'preflight'?" in answer.stderr


def test_no_word_at_all_shows_the_commands_by_goal(ultrascale: Ultrascale) -> None:
    answer = ultrascale()
    assert (answer.returncode, answer.stderr) == (0, "")
    for name, command in cli.COMMANDS.items():
        assert f"  {name} " in answer.stdout
        assert command.summary in answer.stdout
    assert [goal for goal in cli.GOALS if f"{goal}:" not in answer.stdout] == []


def test_every_command_has_its_goal() -> None:
    listed = [name for names in cli.GOALS.values() for name in names]
    assert set(cli.COMMANDS) <= set(listed)
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_the_first_line_of_the_version_is_the_product(option: str, ultrascale: Ultrascale) -> None:
    answer = ultrascale(option)
    first, *parts = answer.stdout.splitlines()
    assert answer.returncode == 0
    assert first.startswith("ultrascale 0.")
    assert {"aws-cdk-lib", "Node.js", "Python"} <= {part.split()[0] for part in parts}


@pytest.mark.parametrize("words", SHOWING, ids=" ".join)
def test_a_terminal_of_80_columns_is_never_exceeded(words: tuple[str, ...]) -> None:
    shown = command_in_terminal(*words)
    wide = [line for line in shown.lines if len(line) > COLUMNS]
    # An address or a path is one word, and is not cut.
    assert [line for line in wide if len(line.split()) > 1] == []
    assert shown.plain.strip()


@cache
def colored() -> str:
    return command_in_terminal("plan", TRAINIUM, "--all").text


@pytest.mark.parametrize("variable", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_no_color_is_no_escape(variable: dict[str, str]) -> None:
    assert "\x1b" in colored()
    plain = command_in_terminal("plan", TRAINIUM, "--all", environment=variable)
    assert "\x1b" not in plain.text


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("--help",), 0),
        (("types", "--json"), 0),
        (("check", TRAINIUM), 0),
        (("check", "missing.yaml"), 1),
        (("--show-completion", "bash"), 0),
        (("plan", "--nodez"), 64),
        (("plan", ULTRA, "--explain"), 2),
    ],
    ids=str,
)
def test_a_closed_pipe_is_silent_and_keeps_the_status(
    words: tuple[str, ...], status: int, stream: str
) -> None:
    """``ultrascale plan FILE | head`` of a shell with ``pipefail`` ends as the plan does."""
    reading, writing = os.pipe()
    os.close(reading)

    with open(writing, "wb") as nobody:  # noqa: PTH123 a pipe has no path
        streams: dict[str, Any] = {stream: nobody.fileno()}
        answer = forked_commands.run(*words, **streams)

    assert answer.returncode == status
    for text in (answer.stdout or "", answer.stderr or ""):
        assert "Traceback" not in text
        assert "Broken" not in text


def test_a_program_that_is_started_without_output_ends_as_ever() -> None:
    command = ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *program("plan", ULTRA)]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has it")
@pytest.mark.parametrize("words", [("types",), ("check", TRAINIUM)], ids=str)
def test_a_full_disk_is_an_error_in_one_line(words: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        answer = forked_commands.run(*words, stdout=full.fileno())
    assert answer.returncode == 1
    assert answer.stderr.splitlines()[-1] == (
        "what was to be printed is not all there: no space left on device"
    )
    assert "Traceback" not in answer.stderr


def test_what_takes_long_is_named_on_a_terminal_alone_and_gone_at_the_end() -> None:
    code = _SLOW.replace('"30"', '"1.5"')
    shown = command_in_terminal(program=code)
    piped = forked_commands.run(program=code)
    assert "working on it … 1 s" in shown.plain
    assert [line for line in shown.lines if line] == ["begun"]
    assert shown.status == 0
    assert (piped.returncode, piped.stdout, piped.stderr) == (0, "begun\n", "")


def test_ctrl_c_ends_a_command_and_its_children_and_says_what_is_left() -> None:
    shown = command_in_terminal(program=_SLOW, stop_after="working on it")
    assert shown.status == 130
    assert [line for line in shown.lines if line and line != "begun"] == [
        "stopped: no file was written"
    ]


def test_ctrl_c_while_the_command_is_loaded_has_no_traceback(tmp_path: Path) -> None:
    package = tmp_path / "typer.py"
    package.write_text('print("loading", flush=True)\nimport time\ntime.sleep(30)\n')
    shown = in_terminal(
        *program("check"), stop_after="loading", environment={"PYTHONPATH": str(tmp_path)}
    )
    assert shown.status == 130
    assert "Traceback" not in shown.plain
