"""Data files of the catalog, and the source of each cell in the table of instance types."""

import csv
from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path

from ultrascale.frozen import Frozen

FOLDER = Path(__file__).parent


class Source(Frozen):
    """A public page or file that states values of the catalog."""

    key: str  # Short name in `instance_sources.csv`
    title: str  # Title
    url: str  # Its address
    revision: str  # Commit or version that was read; empty for a source without versions
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
            date=date.fromisoformat(row["date"]) if row["date"] else None,
        )
        for row in read_table("sources.csv")
    }


def sources_of_cell(instance_type: str, column: str) -> tuple[Source, ...]:
    """Return the sources that agree on one cell of `instances.csv`."""
    return tuple(sources()[key] for key in _evidence()[instance_type][column].split())


@cache
def _evidence() -> Mapping[str, Mapping[str, str]]:
    return {row["instance_type"]: row for row in read_table("instance_sources.csv")}


def read_table(name: str, folder: Path = FOLDER) -> tuple[Mapping[str, str], ...]:
    """Return the rows of a data file, by default one beside this module."""
    with (folder / name).open(newline="", encoding="utf-8") as file:
        # `csv.DictReader` takes three times as long, and each command reads tables.
        columns, *rows = csv.reader(file)
        return tuple(dict(zip(columns, row, strict=True)) for row in rows)
