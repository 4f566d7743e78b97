"""Output of `ultrascale plan` for the cluster files at one time.

`python -m tests.support.plan_golden` records it: the opening lines as text, and a hash of each
table of `--all` and each section of `--json`. Review the difference as a change of the product.
"""

import contextlib
import io
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, cast
from unittest import mock

from tests.support.folders import DATA, ROOT
from tests.support.hashed import Hashed
from ultrascale.cli import main

AT = "2026-12-15T00:00Z"
STATUSES: Mapping[str, int] = {
    "auto-mode": 1,
    "existing-estate": 0,
    "hybrid-hyperpod": 0,
    "llm-kueue": 0,
    "mixed-capacity": 1,
    "post-training": 0,
    "serving": 0,
    "trainium-bert": 0,
    "ultra-100k": 2,
}
"""Exit status of `plan` by cluster file: 1 after a window's end, 2 beyond published limits."""

ANSWERS = DATA / "golden" / "answers.txt"
TABLES = Hashed(DATA / "golden" / "tables.txt")

# Long sections, which are hashed key by key.
_SPLIT = ("answer", "money", "topology")
# Keys by which the entries of a list are hashed apart.
_NAMES = ("pool", "service", "group", "kind")


def printed(name: str, *options: str) -> tuple[str, int]:
    """Return what the command prints of a cluster file, and the status that it ends with."""
    # A long path of the checkout would change where lines of 80 columns end.
    file = f"clusters/{name}.yaml"
    output, arguments = io.StringIO(), sys.argv
    sys.argv = ["ultrascale", "plan", file, "--at", AT, *options]
    try:
        with (
            mock.patch.dict(os.environ),
            contextlib.chdir(ROOT),
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            os.environ.pop("FORCE_COLOR", None)
            main()
    except SystemExit as end:
        status = 1 if isinstance(end.code, str) else int(end.code or 0)
    else:
        status = 0
    finally:
        sys.argv = arguments
    # Tables fill their last column, and an editor takes away what ends a line.
    return "".join(f"{line.rstrip()}\n" for line in output.getvalue().splitlines()), status


def recorded_answers() -> Mapping[str, str]:
    """Return the recorded opening lines by cluster file: an empty line stands between them."""
    blocks = ANSWERS.read_text().rstrip("\n").split("\n\n")
    return {name: f"{block}\n" for name, block in zip(STATUSES, blocks, strict=True)}


def tables(name: str) -> Mapping[str, str]:
    """Return the tables and sections of a cluster file by their labels."""
    opening, _ = printed(name)
    everything, _ = printed(name, "--all")
    sections = cast("dict[str, Any]", json.loads(printed(name, "--json")[0]))
    texts: dict[str, str] = {}
    for table in everything.removeprefix(opening).split("\n\n\n"):
        label = table_label(table)
        texts[label] = texts.get(label, "") + table
    for label, value in _sections(sections, "json"):
        texts[label] = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    return {f"{name} {label}": text for label, text in texts.items()}


def table_label(table: str) -> str:
    """Return the first two columns of a table's head, which tell it from the other tables."""
    lines = table.splitlines()
    rule = next((number for number, line in enumerate(lines) if line.startswith(" ──")), 1)
    columns = re.split(r" {2,}", lines[rule - 1].strip())
    return "table " + ", ".join(column.replace(" ", "-") for column in columns[:2])


def _sections(document: Mapping[str, Any], label: str) -> Iterator[tuple[str, object]]:
    """Yield the sections of a document: a list by its entries' names, long ones by their keys.

    Scalars and what is empty go together, for a change of one is plain beside the others.
    """
    plain: dict[str, object] = {
        key: value
        for key, value in document.items()
        if not isinstance(value, dict | list) or not value
    }
    yield label, plain
    for key, value in document.items():
        if key in _SPLIT and isinstance(value, dict):
            yield from _sections(cast("dict[str, Any]", value), f"{label}.{key}")
        elif key not in plain:
            yield from _entries(f"{label}.{key}", value)


def _entries(label: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield the entries of a list by their names; ``value`` where they have none."""
    entries = cast("list[object]", value) if isinstance(value, list) else []
    names = [_name_of(entry) for entry in entries]
    if None in (names or [None]):
        yield label, value
        return
    for name in dict.fromkeys(names):
        group = [entry for entry, other in zip(entries, names, strict=True) if other == name]
        yield f"{label}[{name}]", group


def _name_of(entry: object) -> str | None:
    if not isinstance(entry, dict):
        return None
    keys = cast("dict[str, str]", entry)
    return next((keys[key] for key in _NAMES if key in keys), None)


if __name__ == "__main__":
    ANSWERS.parent.mkdir(exist_ok=True)
    ANSWERS.write_text("\n".join(printed(name)[0] for name in STATUSES))
    TABLES.record({label: text for name in STATUSES for label, text in tables(name).items()})
