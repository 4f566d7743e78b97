"""A table of the report, its columns and its cells."""

from dataclasses import dataclass

from ultrascale.plan.amounts import SPOT, amount
from ultrascale.plan.model import ClusterNeeds, Figure
from ultrascale.report.markup import Content, Shown, shown, shown_usd

Cell = tuple[Content, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table.

    Attributes:
        title: Its title.
        is_number: Whether it holds numbers, which are set to the right.
        is_wide: Whether it holds sentences.
        is_short: Whether it holds a few words, which stay on one line.
        is_list: Whether it holds names, of which each stays on one line.
        is_state: Whether it holds states, in a tone.
    """

    title: str
    is_number: bool = False
    is_wide: bool = False
    is_short: bool = False
    is_list: bool = False
    is_state: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of a table.

    Attributes:
        cells: As many as the table has columns.
        tone: Tone of its state: `good`, `warn`, `bad` or `plain`.
        share: Part of a limit that it takes; None where there is none.
    """

    cells: tuple[Cell, ...]
    tone: str = "plain"
    share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table.

    Attributes:
        caption: Its content, in one sentence.
        columns: Its columns; the first names the row.
        rows: Its rows.
        last_is_total: Whether the last row is the sum of the others.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    last_is_total: bool = False


def text_column(title: str) -> Column:
    """Return a column of words."""
    return Column(title=title)


def short_column(title: str) -> Column:
    """Return a column of a few words, which stay on one line."""
    return Column(title=title, is_short=True)


def number_column(title: str) -> Column:
    """Return a column of numbers."""
    return Column(title=title, is_number=True)


def daily_total(needs: ClusterNeeds, index: int) -> Shown:
    """Return the cost a day of step ``index``, the least where parts have no price."""
    spend = needs.spend
    total = spend.steps[index].total_usd_per_day
    cell = shown_usd(f"spend.steps.{index}.total_usd_per_day", total)
    return Shown(cell.path, cell.value, amount(total, cell.text, without=spend.without))


def total_label(needs: ClusterNeeds) -> str:
    """Return the label of the sum of all pools."""
    return f"total, {SPOT}" if needs.money.spot_at_on_demand else "total"


def figure(at: str, own: Figure | None, *, places: int = 0, usd: bool = False) -> Content:
    """Return a figure of the plan as a cell, with the part that it lacks said in words.

    Args:
        at: Its place in the JSON.
        own: The figure.
        places: Decimal places.
        usd: Whether it is money.
    """
    if own is None:
        return ""
    path = f"{at}.value"
    cell = shown_usd(path, own.value) if usd else shown(path, own.value, places=places)
    words = amount(own.value, cell.text, without=own.without)
    return Shown(cell.path, cell.value, words)
