"""Tables, and the sections of the report that they stand in."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from ultrascale.frozen import Frozen
from ultrascale.report.figures import Content, Datum, Line
from ultrascale.report.words import Tone

ColumnKind = Literal["words", "short", "sentences", "names", "number", "state"]
"""Contents of a column: words; a few, which stay on one line; sentences; names, each of which stays
on one line; numbers; states, in a tone."""


class Column(NamedTuple):
    """A column of a table."""

    title: str
    kind: ColumnKind


def columns(kind: ColumnKind, *titles: str) -> Iterator[Column]:
    """Yield columns of one kind."""
    return (Column(title, kind) for title in titles)


class Row(NamedTuple):
    """A row of a table.

    Attributes:
        cells: As many as the table has columns.
        tone: Tone of its state.
        share: Part of a limit that it takes; None where there is none.
    """

    cells: tuple[Line, ...]
    tone: Tone = "plain"
    share: float | None = None

    def pairs(self, table: "Table") -> Iterator[tuple[Column, Line]]:
        """Return its cells with their columns."""
        return zip(table.columns, self.cells, strict=True)


def row(*cells: Content | Line, tone: Tone = "plain", share: float | None = None) -> Row:
    """Return a row of cells."""
    lines = (((cell,) if isinstance(cell, str | Datum) else cell) for cell in cells)
    return Row(tuple(lines), tone, share)


class Table(Frozen):
    """A table."""

    caption: str  # Its content, in one sentence
    columns: tuple[Column, ...]  # Its columns; the first names the row
    rows: tuple[Row, ...]  # Its rows
    last_is_total: bool = False  # Whether the last row is the sum of the others


class Block(NamedTuple):
    """A part of a section.

    Attributes:
        table: Its table; None without one.
        note: Its sentence.
        items: Its list of sentences.
        commands: Its list of commands.
        heading: Heading above it.
        summary: Title of a part that a reader opens; empty for an open one.
        page_only: Whether Markdown leaves it out.
        open_on_page: Whether only Markdown folds it.
    """

    table: Table | None = None
    note: str = ""
    items: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    heading: str = ""
    summary: str = ""
    page_only: bool = False
    open_on_page: bool = False


class Section(NamedTuple):
    """A section of the report; a drawing of the same id stands in it."""

    id: str
    title: str
    blocks: tuple[Block, ...]
    tone: Tone | None = None
    verdict: str = ""
