"""Tables of needs: each figure stands in one row, which the terminal, Markdown and the page show.

A cell of a figure has its place in `plan --json`.
"""

from collections.abc import Iterator, Mapping, Sized
from datetime import UTC, datetime
from typing import Literal, NamedTuple, TypeAlias

from msgspec.structs import replace

from ultrascale.frozen import Frozen
from ultrascale.plan.amounts import SPOT, amount, dollars, number_cell, telling_number
from ultrascale.plan.model import AgreedLimit, ClusterNeeds, Figure, Figures

# Places of money in cells of `plan`; other units have 2.
_CENTS: Mapping[str, int] = {"USD per month": 0, "USD/month": 1}

Tone = Literal["good", "warn", "bad", "plain"]
Output = Literal["text", "page"]
"""Tables of `plan`, and those of the report."""

ColumnKind = Literal["words", "short", "sentences", "names", "number", "state"]
"""Contents of a column: words; a few, which stay on one line; sentences; names, each of which stays
on one line; numbers; states, in a tone."""


class Datum(NamedTuple):
    """A value of `plan --json` as a reader sees it.

    Attributes:
        path: Its place in the JSON, keys and indices parted by dots.
        value: The value there.
        text: Its text in the report.
        cell: Its text in the tables of `plan`.
    """

    path: str
    value: float | datetime | None
    text: str
    cell: str

    @property
    def machine(self) -> str:
        """The value as the JSON writes it; empty for none."""
        if isinstance(self.value, datetime):
            return self.value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return "" if self.value is None else repr(self.value)


Content: TypeAlias = str | Datum
Line: TypeAlias = tuple[Content, ...]


class Column(NamedTuple):
    """A column of a table; ``output`` is the only one that has it, None where all have."""

    title: str
    kind: ColumnKind
    output: Output | None


class Row(NamedTuple):
    """A row of a table.

    Attributes:
        cells: As many as the table has columns.
        tone: Tone of its state.
        share: Part of a limit that it takes; None where there is none.
        output: The only output that has it; None where all have.
    """

    cells: tuple[Line, ...]
    tone: Tone
    share: float | None
    output: Output | None

    def pairs(self, table: "Table") -> Iterator[tuple[Column, Line]]:
        """Return its cells with their columns."""
        return zip(table.columns, self.cells, strict=True)


class Table(Frozen):
    """A table."""

    columns: tuple[Column, ...]  # Its columns; the first names the row
    rows: tuple[Row, ...]  # Its rows
    caption: str = ""  # Its content, in one sentence; empty where the report does not have it
    last_is_total: bool = False  # Whether the last row is the sum of the others

    def of(self, output: Output) -> "Table":
        """Return what an output has of it; the page has no columns without any content."""
        rows = [row for row in self.rows if row.output in (None, output)]
        kept = [
            place
            for place, column in enumerate(self.columns)
            if column.output in (None, output)
            and (output == "text" or any(plain(row.cells[place]) for row in rows))
        ]
        return replace(
            self,
            columns=tuple(self.columns[place] for place in kept),
            rows=tuple(
                row._replace(cells=tuple(row.cells[place] for place in kept)) for row in rows
            ),
        )

    def part(self, caption: str, *tones: Tone) -> "Table":
        """Return its rows of some tones, as a table of the page."""
        rows = tuple(row for row in self.rows if row.tone in tones)
        return replace(self, rows=rows, caption=caption).of("page")


def columns(kind: ColumnKind, *titles: str, output: Output | None = None) -> Iterator[Column]:
    """Yield columns of one kind."""
    return (Column(title, kind, output) for title in titles)


def row(
    *cells: Content | Line,
    tone: Tone = "plain",
    share: float | None = None,
    output: Output | None = None,
) -> Row:
    """Return a row of cells."""
    lines = (((cell,) if isinstance(cell, str | Datum) else cell) for cell in cells)
    return Row(tuple(lines), tone, share, output)


def plain(line: Line) -> str:
    """Return the text of ``line`` in the report."""
    return "".join(part.text if isinstance(part, Datum) else part for part in line)


def share_of(needed: Figure, most: float | None) -> float | None:
    """Return the part of a limit that is needed; None without a limit."""
    return None if not most else (needed.value or 0) / most


def number_at(path: str, value: float | None, *, places: int = 0, without: Sized = ()) -> Datum:
    """Return a number with its place in the JSON; ``without`` are parts that it lacks."""
    text = "" if value is None else telling_number(value, places=places)
    short = number_cell(value, places=places, without=without)
    return Datum(path, value, amount(value, text, without=without), short)


def dollars_at(path: str, value: float | None, *, places: int = 2, without: Sized = ()) -> Datum:
    """Return an amount in US dollars with its place in the JSON, and with places in a cell."""
    text = "" if value is None else dollars(value)
    short = number_cell(value, places=places, without=without)
    return Datum(path, value, amount(value, text, without=without), short)


def stated_at(path: str, value: float | None, *, places: int = 0) -> Content:
    """Return a number with its place in the JSON; empty for none."""
    return "" if value is None else number_at(path, value, places=places)


def time_at(path: str, moment: datetime) -> Datum:
    """Return a time in UTC with its place in the JSON."""
    text = f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}"
    return Datum(path, moment, text, text)


def figure_at(path: str, figure: Figure | None, *, places: int = 0) -> Content:
    """Return a figure of the plan, which says where it lacks a part; empty for none.

    Args:
        path: Its place in the JSON.
        figure: The figure.
        places: Decimal places; money has its own.
    """
    if figure is None:
        return ""
    path, value, without = f"{path}.value", figure.value, figure.without
    if figure.unit.startswith("USD"):
        return dollars_at(path, value, places=_CENTS.get(figure.unit, 2), without=without)
    return number_at(path, value, places=places, without=without)


def figures_at(path: str, figures: Figures, *keys: str, places: int = 0) -> list[Content]:
    """Return the figures of ``keys``, or all; empty for one that is not there."""
    return [figure_at(f"{path}.{key}", figures.get(key), places=places) for key in keys or figures]


def state_line(path: str, words: str, agreed: AgreedLimit | None) -> Line:
    """Return the words of a state, and what AWS has agreed to.

    Args:
        path: Place in the JSON of what is agreed.
        words: Words of the state.
        agreed: What is agreed.
    """
    if agreed is None:
        return (words,)
    opening = "agreed: " if words == "agreed" else f"{words}; agreed: "
    return (opening, number_at(f"{path}.value", agreed.value), f", {agreed.reference}")


def daily_total(needs: ClusterNeeds, index: int) -> Datum:
    """Return the cost a day of step ``index``, the least where parts have no price."""
    total = needs.spend.steps[index].total_usd_per_day
    path = f"spend.steps.{index}.total_usd_per_day"
    return dollars_at(path, total, without=needs.spend.without)


def total_label(needs: ClusterNeeds) -> str:
    """Return the label of the sum of all pools."""
    return f"total, {SPOT}" if needs.money.spot_at_on_demand else "total"
