"""Loader of the catalog's data files, and the source of each cell of its instance types.

A module decodes its table at the first use. Instance types are read as text, without a library:
the build of the package needs them, and has no msgspec.
"""

import csv
from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import TypeVar, get_origin

import msgspec

from ultrascale.frozen import Frozen

# --- Data files of the catalog, and the source of each cell in the table of instance types --------


FOLDER = Path(__file__).parent


class Source(Frozen):
    """A public page or file that states values of the catalog."""

    key: str  # Short name in `instance_sources.csv`
    title: str  # Title
    url: str  # Its address
    revision: str  # Commit or version that was read; empty for a source without versions
    seen: date  # Date of the text, or the day on which a text without a date was read
    date: date | None  # Date of the text that was read; None for a text without a date


@cache
def sources() -> Mapping[str, Source]:
    """Return every source by its key."""
    return {
        row["key"]: Source(
            key=row["key"],
            title=row["title"],
            url=row["url"],
            revision=row["revision"],
            seen=date.fromisoformat(row["date"] or row["read"]),
            date=date.fromisoformat(row["date"]) if row["date"] else None,
        )
        for row in read_table("sources.csv")
    }


def sources_of_cell(instance_type: str, column: str) -> tuple[Source, ...]:
    """Return the sources that agree on one cell of `instances.csv`."""
    columns, cells = (_evidence()[name].split(",") for name in ("instance_type", instance_type))
    return tuple(sources()[key] for key in cells[columns.index(column)].split())


def sources_of_type(instance_type: str) -> frozenset[str]:
    """Return the keys of the sources of all cells of a type; empty for a type without a row."""
    return frozenset(_evidence().get(instance_type, "").replace(",", " ").split()[1:])


@cache
def _evidence() -> Mapping[str, str]:
    """Return the lines of the table by their first cell; `check` needs few of them, and fast."""
    lines = (FOLDER / "instance_sources.csv").read_text(encoding="utf-8").splitlines()
    return {line.partition(",")[0]: line for line in lines}


def read_table(name: str, folder: Path = FOLDER) -> tuple[Mapping[str, str], ...]:
    """Return the rows of a data file, by default one beside this module."""
    with (folder / name).open(newline="", encoding="utf-8") as file:
        # `csv.DictReader` takes three times as long, and each command reads tables.
        columns, *rows = csv.reader(file)
        return tuple(dict(zip(columns, row, strict=True)) for row in rows)


# --- Loader of the catalog's data files: it decodes rows into typed structs -----------------------


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of a table; cells hold tuples as words between spaces, booleans as `yes` or `no`."""

    note: str = ""
    """Reason for the row, or the service fact behind it, for editors of the table."""


T = TypeVar("T")
R = TypeVar("R", bound=Row)


def read_rows(name: str, kind: type[R]) -> tuple[R, ...]:
    """Return the rows of a CSV file, beside this module unless its path is absolute.

    An empty cell means the field's default.

    Raises:
        msgspec.ValidationError: A cell does not fit its field.
    """
    types = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    return tuple(
        msgspec.convert(
            {column: _value(cell, types.get(column)) for column, cell in row.items() if cell},
            kind,
            strict=False,
        )
        for row in read_table(name)
    )


def read_document(name: str, kind: type[T]) -> T:
    """Return the content of a JSON file beside this module.

    Raises:
        msgspec.ValidationError: The document does not fit ``kind``.
    """
    return msgspec.json.decode((FOLDER / name).read_bytes(), type=kind)


def _value(cell: str, kind: object) -> str | bool | list[str]:
    if kind is bool and cell in ("yes", "no"):
        return cell == "yes"
    return cell.split() if get_origin(kind) is tuple else cell
