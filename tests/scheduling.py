"""Which tests one worker runs together, and first: what begins slowly then begins once."""

import re
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

_TESTS = Path(__file__).parent
# What a file says that shares a server of forks, a database or synthesized clusters with others.
_SHARES = {
    "torch": re.compile(r"\bmark\.training\b"),
    "postgres": re.compile(r"\bmark\.postgres\b"),
    "assemblies": re.compile(r"\b(?:trainium|mixed|hybrid|auto|ultra): Assembly\b"),
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


class SharedScheduling(LoadFileScheduling):
    """Gives one worker all files that share something, and the others file by file."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        self._units: dict[str, str] = {}

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        if file not in self._units:
            self._units[file] = shared(_TESTS / Path(file).name) or file
        return self._units[file]
