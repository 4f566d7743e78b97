"""Refusal of the record of copies that an earlier version left beside cluster files."""

import json
from collections.abc import Iterator
from pathlib import Path

from ultrascale.documents import mapping
from ultrascale.errors import ConfigError, Diagnostic

RECORD = "ejected.json"
"""Name of the record, beside the copies and the cluster files that used them."""

_DELETE = f"then delete {RECORD}"
_TODO = {
    "backend/rules": "write what backend/rules.yaml holds as backend.rules",
    "training": "copy it into a folder of images.builds whose Dockerfile installs it",
}
_BY_PATH = "go on to name it by its path"


def refuse_ejected(folder: Path) -> None:
    """Refuse a cluster file beside a record of copies, which this version no longer reads.

    Raises:
        ConfigError: There is a record; one line for each copy.
    """
    record = folder / RECORD
    if record.exists():
        raise ConfigError(_lines(record))


def _lines(record: Path) -> Iterator[Diagnostic]:
    wrong = "copies of the product's files are not read any more"
    for name in _names(record) or ("",):
        todo = f"{_todo(name)}, {_DELETE}" if name else f"delete {RECORD}"
        yield Diagnostic(message=wrong, file=str(record), key=name, fix=todo)


def _names(record: Path) -> tuple[str, ...]:
    try:
        document: object = json.loads(record.read_bytes())
    except (OSError, ValueError):
        return ()
    return tuple(mapping(document))


def _todo(name: str) -> str:
    if name.startswith("images/"):
        return (
            f"state images.builds.REPOSITORY: ./{name}, and let its Dockerfile copy from that "
            "folder alone, as docs/images.md shows"
        )
    return _TODO.get(name, _BY_PATH)
