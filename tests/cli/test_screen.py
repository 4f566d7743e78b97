"""Tables and sentences as wide as their reader."""

import io
from contextlib import redirect_stdout

import pytest
from rich.box import MARKDOWN, SIMPLE

from ultrascale.cli.output import say
from ultrascale.cli.screen import Table, screen

ARN = "arn:aws:eks:us-west-2:111122223333:cluster/research-of-a-long-name-that-nobody-cuts"
SENTENCE = f"  the role that {' '.join(['reads'] * 20)} {ARN} is not there"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    return Terminal()


def table(columns: int, text: str = "value of a cell") -> Table:
    made = Table(*(f"title {index}" for index in range(columns)), box=SIMPLE)
    made.add_row(*(text for _ in range(columns)))
    return made


def test_a_pipe_gets_each_row_whole_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    screen().print(table(20))
    say(SENTENCE)
    told = capsys.readouterr().out
    assert any(line.count("value of a cell") == 20 for line in told.splitlines())
    assert SENTENCE in told.splitlines()
    assert all(line == line.rstrip() for line in told.splitlines())


@pytest.mark.parametrize("columns", range(1, 30))
def test_a_terminal_gets_no_line_that_is_wider_and_every_word(
    columns: int, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    with redirect_stdout(terminal):
        screen().print(table(columns))
    told = terminal.getvalue()
    assert max(map(len, told.splitlines())) <= 80
    assert told.split().count("value") == columns
    assert told.split().count("cell") == columns


def test_sentences_break_at_words_and_hang_below_their_beginning(terminal: Terminal) -> None:
    with redirect_stdout(terminal):
        say("  " + " ".join(["word"] * 40))
    first, *others = terminal.getvalue().splitlines()
    assert first.startswith("  word")
    assert others
    assert all(line.startswith("    word") and len(line) <= 80 for line in others)


def test_markdown_is_never_wrapped(terminal: Terminal) -> None:
    made = Table("a", "b", box=MARKDOWN)
    made.add_row("x", "word " * 40)
    with redirect_stdout(terminal):
        screen().print(made)
    assert len([line for line in terminal.getvalue().splitlines() if line.strip()]) == 3


@pytest.mark.parametrize(
    ("variable", "value", "styled"),
    [("NO_COLOR", "1", False), ("TERM", "dumb", False), ("NO_COLOR", "", True)],
)
def test_no_escape_is_written_where_none_is_wanted(
    variable: str, value: str, styled: bool, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with redirect_stdout(terminal):
        screen().print(table(2))
    assert ("\x1b" in terminal.getvalue()) is styled
