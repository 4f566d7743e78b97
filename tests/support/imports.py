"""Imports of test modules by each worker from another place on, so that each is rewritten once.

Workers collect the same files in the same order. In a new checkout each would write the assertions
of each file anew, at the moment at which the others do; now it finds most of them written.
"""

import importlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.folders import ROOT


def from_its_place(files: Sequence[Path], worker: int, workers: int) -> Sequence[Path]:
    """Return all files, beginning where no other worker begins."""
    begin = len(files) * worker // workers
    return [*files[begin:], *files[:begin]]


def asked_for(arguments: Sequence[str]) -> Sequence[Path]:
    """Return the files of tests in or among what pytest was given."""
    paths = [ROOT / argument.partition("::")[0] for argument in arguments]
    found = {file for path in paths for file in (path, *path.rglob("test_*.py"))}
    return sorted(file for file in found if file.suffix == ".py")


def import_from_its_place(config: pytest.Config) -> None:
    """Import what this worker is about to collect, if it is one of several."""
    given: dict[str, str | int] = getattr(config, "workerinput", {})
    workers = int(given.get("workercount", 1))
    if workers == 1:
        return
    worker = int(str(given["workerid"]).removeprefix("gw"))
    for file in from_its_place(asked_for(config.args), worker, workers):
        # Collecting it says what is wrong with it, or why it is skipped.
        with suppress(Exception, pytest.skip.Exception):
            name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            importlib.import_module(name)
