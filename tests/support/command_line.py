"""The command line, run in the tests' own process: a new one takes a second to begin."""

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from ultrascale.cli import main, options

NOW = datetime(2026, 11, 22, tzinfo=UTC)
"""The clock of commands: windows of the cluster files end, and prices age."""


@dataclass
class Answer:
    """Output and exit status of a command."""

    returncode: int
    stdout: str
    stderr: str


class Terminal(io.StringIO):
    """Keyboard input of a person."""

    def isatty(self) -> bool:
        return True


Ultrascale = Callable[..., Answer]


def run(
    *arguments: str | Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Answer:
    """Run `ultrascale` with ``arguments``."""
    monkeypatch.setattr(sys, "argv", ["ultrascale", *(str(each) for each in arguments)])
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        main()
    told = capsys.readouterr()
    if isinstance(end.value.code, str):
        return Answer(1, told.out, f"{told.err}{end.value.code}\n")
    return Answer(int(end.value.code or 0), told.out, told.err)


@pytest.fixture
def ultrascale(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ultrascale:
    """Run `ultrascale` with arguments, at the time `NOW`."""
    monkeypatch.setattr(options, "now", lambda: NOW)
    return partial(run, monkeypatch=monkeypatch, capsys=capsys)
