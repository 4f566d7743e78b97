"""A deployment of hours does not end for the sake of a line that could not be printed."""

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.support.deployments import make_project
from ultrascale.cli.deploy_views import Progress
from ultrascale.cli.output import outlive_reader
from ultrascale.deploy.cdk import DeployCommand
from ultrascale.deploy.run import run_stacks


def test_what_a_terminal_cannot_show_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "out"
    with file.open("w", encoding="ascii") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        Progress(1).said("a", " ✅  a")
    assert file.read_text() == "a |  ?  a\n"


def test_a_reader_that_is_gone_is_a_lost_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `ultrascale deploy FILE | tee LOG`, Ctrl-C ends `tee` at once."""
    project = make_project(tmp_path)
    command = DeployCommand(cdk=project.cdk, assembly=tmp_path)
    before = signal.getsignal(signal.SIGTERM)
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", encoding="utf-8") as stdout:  # noqa: PTH123 a pipe has no path
        for name in ("stdout", "__stdout__"):
            monkeypatch.setattr(sys, name, stdout)
        outlive_reader()
        outcomes = run_stacks(
            {"a": frozenset(), "b": frozenset({"a"})}, command.start, Progress(2), concurrency=1
        )

    assert [each.state for each in outcomes][1] == "not started"
    assert signal.getsignal(signal.SIGTERM) == before
