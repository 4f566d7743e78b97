"""Tables of needs: a figure stands in one row, which terminal, Markdown and page show.

A cell of a figure has its place in `plan --json`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Sized
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, cast

from msgspec.structs import replace

from ultrascale.catalog.tables import Row as Record
from ultrascale.catalog.tables import read_rows
from ultrascale.frozen import Frozen
from ultrascale.plan.amounts import amount, dollars, number_cell, telling_number
from ultrascale.plan.jobs.checkpoints import span
from ultrascale.plan.model import AgreedLimit, ClusterNeeds, Figure, Figures

# Places of money in cells of `plan`; other units have 2.
_CENTS: Mapping[str, int] = {"USD per month": 0, "USD/month": 1}

Tone = Literal["good", "warn", "bad", "plain"]
Output = Literal["text", "page"]
"""Tables of `plan`, and those of the report."""

ColumnKind = Literal["words", "short", "sentences", "names", "number", "span", "state"]
"""Contents of a column: words; a few, which stay on one line; sentences; names, each on one line;
numbers; seconds as spans of time, in tables of `plan` alone; states, in a tone.
"""


class Datum(NamedTuple):
    """A value of `plan --json` as a reader sees it."""

    path: str  # Its place in the JSON, keys and indices parted by dots
    value: float | datetime | None  # The value there
    text: str  # Its text in the report
    cell: str  # Its text in the tables of `plan`

    @property
    def machine(self) -> str:
        """The value as the JSON writes it; empty for none."""
        if isinstance(self.value, datetime):
            return self.value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return "" if self.value is None else repr(self.value)


Content: TypeAlias = str | Datum
Line: TypeAlias = tuple[Content, ...]


class Column(Record, frozen=True, kw_only=True):
    """A column of a table, as a row of `columns.csv`."""

    table: str  # Name of its table
    title: str = ""  # Its title; a tier's states its subject
    key: str = ""  # Place of its cells below their row's in `plan --json`
    kind: ColumnKind
    output: Output | None = None  # The only output that has it; None where all have
    places: int = 0  # Decimal places of its numbers
    empty: str = ""  # Words of a cell without content


class Row(NamedTuple):
    """A row of a table: a need."""

    at: str  # Its place in `plan --json`; empty where ``cells`` has all of it
    # Cells that the JSON has otherwise, by their column's key.
    cells: Mapping[str, Content | Line] = {}
    tone: Tone = "plain"  # Tone of its state
    share: float | None = None  # Part of a limit that it takes; None where there is none
    output: Output | None = None  # The only output that has it; None where all have
    is_total: bool = False  # Whether it is the sum of the others


class Table(Frozen):
    """A table."""

    columns: tuple[Column, ...]  # Its columns; the first names the row
    rows: tuple[Row, ...]  # Its rows
    lines: tuple[tuple[Line, ...], ...]  # Cells of each row, as many as there are columns
    caption: str = ""  # Its content, in one sentence; empty where the report leaves it out

    def text(self) -> "Table":
        """Return the table for `plan`."""
        return self._for_output("text", self.columns, lambda row: True)

    def page(self, caption: str, *tones: Tone) -> "Table":
        """Return the table for the report: no columns without content, and rows of some tones."""
        table = self._for_output("page", self.columns, lambda row: not tones or row.tone in tones)
        own = zip(table.columns, zip(*table.lines, strict=True), strict=False)
        kept = [column for column, cells in own if any(map(plain, cells))]
        return replace(table._for_output("page", kept, lambda row: True), caption=caption)

    def _for_output(
        self, output: Output, columns: Collection[Column], keep: Callable[[Row], bool]
    ) -> "Table":
        places = [
            place
            for place, column in enumerate(self.columns)
            if column in columns and column.output in (None, output)
        ]
        rows = [
            (row, tuple(line[place] for place in places))
            for row, line in zip(self.rows, self.lines, strict=True)
            if row.output in (None, output) and keep(row)
        ]
        return replace(
            self,
            columns=tuple(self.columns[place] for place in places),
            rows=tuple(row for row, _ in rows),
            lines=tuple(line for _, line in rows),
        )


def table_of(names: Sequence[str], rows: Iterable[Row], needs: ClusterNeeds | None = None) -> Table:
    """Return rows as a table.

    Args:
        names: Names of the columns' tables.
        rows: Its rows.
        needs: The needs that the rows' places refer to; None where the rows have all cells.
    """
    tier = "" if needs is None else needs.control_plane.tier
    columns = tuple(
        replace(column, title=column.title.format(tier=tier))
        for column in _columns()
        if column.table in names
    )
    own = tuple(rows)
    lines = tuple(tuple(_line(row, column, needs) for column in columns) for row in own)
    return Table(columns=columns, rows=own, lines=lines)


def words_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Return a table of words, by the titles of its columns and the cells of its rows."""
    return Table(
        columns=tuple(Column(table="", title=title, kind="words") for title in titles),
        rows=(Row(""),) * len(rows),
        lines=tuple(tuple((cell,) for cell in row) for row in rows),
    )


@cache
def _columns() -> Sequence[Column]:
    return read_rows(str(Path(__file__).with_name("columns.csv")), Column)


def _line(row: Row, column: Column, needs: ClusterNeeds | None) -> Line:
    content = row.cells.get(column.key)
    if content is None:
        path = f"{row.at}.{column.key}".removesuffix(".")
        content = _content(path, _value_at(needs, path), column) if row.at else ""
    line = (content,) if isinstance(content, str | Datum) else content
    return line if any(line) else (column.empty,)


def _value_at(value: object, path: str) -> object:
    for key in path.split("."):
        if isinstance(value, Mapping):
            value = cast("Mapping[str, object]", value).get(key)
        elif isinstance(value, tuple):
            value = cast("Sequence[object]", value)[int(key)]
        else:
            value = getattr(value, key, None)
    return value


def _content(path: str, value: object, column: Column) -> Content:
    if isinstance(value, Figure) and column.kind == "span" and value.value is not None:
        text = span(value.value)
        return Datum(f"{path}.value", value.value, text, text)
    if isinstance(value, Figure):
        return figure_at(path, value, places=column.places)
    if isinstance(value, int | float):
        return number_at(path, value, places=column.places)
    if isinstance(value, datetime):
        return time_at(path, value)
    if isinstance(value, tuple):
        return ", ".join(map(str, cast("Sequence[object]", value)))
    return "" if value is None else str(value)


def plain(line: Line) -> str:
    """Return the text of ``line`` in the report."""
    return "".join(part.text if isinstance(part, Datum) else part for part in line)


def share_of(needed: Figure, most: float | None) -> float | None:
    """Return the part of a limit that is needed; None without a limit."""
    return None if not most else (needed.value or 0) / most


def number_at(path: str, value: float | None, *, places: int = 0, without: Sized = ()) -> Datum:
    """Return a number with its place in the JSON; ``without`` names the parts it lacks."""
    text = "" if value is None else telling_number(value, places=places)
    short = number_cell(value, places=places, without=without)
    return Datum(path, value, amount(value, text, without=without), short)


def dollars_at(path: str, value: float | None, *, places: int = 2, without: Sized = ()) -> Datum:
    """Return an amount in US dollars with its place in the JSON and its decimal places."""
    text = "" if value is None else dollars(value)
    short = number_cell(value, places=places, without=without)
    return Datum(path, value, amount(value, text, without=without), short)


def time_at(path: str, moment: datetime) -> Datum:
    """Return a time in UTC with its place in the JSON."""
    text = f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}"
    return Datum(path, moment, text, text)


def figure_at(path: str, figure: Figure | None, *, places: int = 0) -> Content:
    """Return a figure of the plan, with the parts that it lacks; empty for none.

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
    """Return the figures of ``keys``; empty for a missing one."""
    return [figure_at(f"{path}.{key}", figures.get(key), places=places) for key in keys]


def state_line(path: str, words: str, agreed: AgreedLimit | None) -> Line:
    """Return the words of a state, and the limit agreed with AWS.

    Args:
        path: Place in the JSON of the need.
        words: Words of the state.
        agreed: The agreed limit.
    """
    if agreed is None:
        return (words,)
    opening = "agreed: " if words == "agreed" else f"{words}; agreed: "
    return (opening, number_at(f"{path}.agreed.value", agreed.value), f", {agreed.reference}")


def daily_total(needs: ClusterNeeds, index: int) -> Datum:
    """Return the cost a day of step ``index``, the least where parts have no price."""
    total = needs.spend.steps[index].total_usd_per_day
    path = f"spend.steps.{index}.total_usd_per_day"
    return dollars_at(path, total, without=needs.spend.without)
