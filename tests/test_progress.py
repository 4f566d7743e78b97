"""The line that says what a command is at."""

import io
import sys
import time
from contextlib import redirect_stderr

import pytest

from ultrascale import progress as module
from ultrascale.progress import progress, show_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(module, "_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(module, "_EVERY_SECONDS", 0.001)
    monkeypatch.setattr(module, "_line", None)
    monkeypatch.setenv("TERM", "xterm")
    show_progress()
    return shown


def until(shown: Terminal, text: str) -> None:
    ends = time.monotonic() + 10
    while text not in shown.getvalue():
        assert time.monotonic() < ends, shown.getvalue()
        time.sleep(0.001)


def on_screen(shown: Terminal) -> list[str]:
    """Return what a terminal shows after all that was written, line by line."""
    lines: list[str] = []
    for line in shown.getvalue().split("\n"):
        cells = ""
        for part in line.split("\r"):
            cells = part + cells[len(part) :]
        lines.append(cells.rstrip())
    return lines


def test_work_is_named_while_it_lasts_and_gone_afterwards(terminal: Terminal) -> None:
    with progress("synthesizing a.yaml"):
        until(terminal, "synthesizing a.yaml … 0 s")

    assert on_screen(terminal) == [""]


def test_what_others_print_meanwhile_stands_alone_on_its_line(terminal: Terminal) -> None:
    with redirect_stderr(terminal), progress("synthesizing a.yaml"):
        until(terminal, "synthesizing")
        print("a warning", file=sys.stderr)

    assert on_screen(terminal) == ["a warning", ""]


def test_work_within_work_is_shown_and_then_the_outer_again(terminal: Terminal) -> None:
    with progress("deploying") as outer:
        with progress("synthesizing"):
            until(terminal, "synthesizing")
        outer.say("deploying 3 stacks")
        until(terminal, "deploying 3 stacks")

    assert on_screen(terminal) == [""]


def test_an_error_leaves_no_line(terminal: Terminal) -> None:
    def interrupted() -> None:
        with progress("synthesizing"):
            until(terminal, "synthesizing")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()

    assert on_screen(terminal) == [""]


def test_a_long_line_is_cut_to_the_terminal(terminal: Terminal) -> None:
    with progress("x" * 300):
        until(terminal, "… 0 s")

    assert all(len(part) < 80 for part in terminal.getvalue().split("\r"))


def test_a_terminal_that_takes_nothing_back_is_told_once(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")

    with progress("synthesizing"):
        until(terminal, "synthesizing …\n")
        time.sleep(0.02)

    assert terminal.getvalue() == "synthesizing …\n"


def test_a_pipe_is_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    monkeypatch.setattr(module, "_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(module, "_line", None)
    show_progress()

    with progress("synthesizing"):
        time.sleep(0.01)

    assert pipe.getvalue() == ""


def test_a_library_is_silent_until_the_command_line_asks(terminal: Terminal) -> None:
    module._line = None  # pyright: ignore[reportPrivateUsage]

    with progress("synthesizing"):
        time.sleep(0.01)

    assert terminal.getvalue() == ""
