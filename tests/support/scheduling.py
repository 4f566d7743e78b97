"""Schedule tests that share what begins slowly on one worker, and first."""

import re
from functools import cache
from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling

from tests.support.folders import ROOT

# What a file says that shares a server of forks, a database, synthesized clusters or the imports of
# moto's services with others.
_SHARES = {
    "torch": re.compile(r"\bmark\.training\b"),
    "postgres": re.compile(r"\bmark\.postgres\b"),
    "assemblies": re.compile(r"^from tests\.support\.assembly import .*\bAssembly\b", re.MULTILINE),
    "moto": re.compile(r"^from moto import", re.MULTILINE),
}


def shared(file: Path) -> str | None:
    """Return what the tests of ``file`` share with those of other files."""
    text = file.read_text()
    return next((name for name, says in _SHARES.items() if says.search(text)), None)


def begin_with_shared(items: list[pytest.Item]) -> None:
    """Put first what takes longest: begun last, it would keep a worker when others are done."""
    order = [*_SHARES, None]
    places = {path: order.index(shared(path)) for path in {item.path for item in items}}
    items.sort(key=lambda item: places[item.path])


@cache
def unit(file: str) -> str:
    """Return what one worker is given at once: a file of tests, or all that share something."""
    return shared(ROOT / file) or file


class SharedScheduling(LoadFileScheduling):
    """Gives one worker all files that share something, and the others file by file."""

    def _split_scope(self, nodeid: str) -> str:
        return unit(super()._split_scope(nodeid))
