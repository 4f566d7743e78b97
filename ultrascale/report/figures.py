"""Figures of the report: a number as a reader sees it, with its place in `plan --json`."""

from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias

from ultrascale.plan.amounts import SPOT, amount
from ultrascale.plan.model import ClusterNeeds, Figure, Figures

_MILLION = 1_000_000
_THOUSAND = 1_000
_TWENTIETH = 20


class Datum(NamedTuple):
    """A value of `plan --json` as a reader sees it.

    Attributes:
        path: Its place in the JSON, keys and indices parted by dots.
        value: The value there.
        text: Its text for the reader.
    """

    path: str
    value: float | datetime | None
    text: str

    @property
    def machine(self) -> str:
        """The value as the JSON writes it; empty for none."""
        if isinstance(self.value, datetime):
            return self.value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return "" if self.value is None else repr(self.value)


Content: TypeAlias = str | Datum
Line: TypeAlias = tuple[Content, ...]


def plain(line: Line) -> str:
    """Return the text of ``line``."""
    return "".join(part.text if isinstance(part, Datum) else part for part in line)


def number_at(path: str, value: float | None, *, places: int = 0) -> Datum:
    """Return a number with its place in the JSON."""
    return Datum(path, value, "unknown" if value is None else number(value, places=places))


def dollars_at(path: str, value: float | None) -> Datum:
    """Return an amount in US dollars with its place in the JSON."""
    return Datum(path, value, "unknown" if value is None else dollars(value))


def time_at(path: str, moment: datetime) -> Datum:
    """Return a time in UTC with its place in the JSON."""
    return Datum(path, moment, f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}")


def figure_at(path: str, figure: Figure | None, *, places: int = 0) -> Content:
    """Return a figure of the plan, which says where it lacks a part; empty for none.

    Args:
        path: Its place in the JSON.
        figure: The figure.
        places: Decimal places; money has its own.
    """
    if figure is None:
        return ""
    path, value = f"{path}.value", figure.value
    is_money = figure.unit.startswith("USD")
    datum = dollars_at(path, value) if is_money else number_at(path, value, places=places)
    return datum._replace(text=amount(value, datum.text, without=figure.without))


def figures_at(path: str, figures: Figures, *keys: str, places: int = 0) -> list[Content]:
    """Return the figures of ``keys``; empty for one that is not there."""
    return [figure_at(f"{path}.{key}", figures.get(key), places=places) for key in keys]


def daily_total(needs: ClusterNeeds, index: int) -> Datum:
    """Return the cost a day of step ``index``, the least where parts have no price."""
    spend = needs.spend
    total = spend.steps[index].total_usd_per_day
    datum = dollars_at(f"spend.steps.{index}.total_usd_per_day", total)
    return datum._replace(text=amount(total, datum.text, without=spend.without))


def total_label(needs: ClusterNeeds) -> str:
    """Return the label of the sum of all pools."""
    return f"total, {SPOT}" if needs.money.spot_at_on_demand else "total"


def number(value: float, *, places: int = 0) -> str:
    """Return a number with no places where there is nothing in them.

    Of a small number at least two digits are shown, so that none looks like another one, or none.
    """
    rounded = round(value, places)
    if abs(value - rounded) > abs(value) / _TWENTIETH:
        return f"{value:.2g}" if abs(value) >= 1 / _THOUSAND else f"{value:.1e}"
    if rounded == int(rounded):
        return f"{int(rounded):,}"
    return f"{rounded:,.{places}f}"


def dollars(value: float) -> str:
    """Return an amount in US dollars: cents below a hundred alone."""
    whole = abs(value) >= 100 or value == int(value)
    return f"${value:,.0f}" if whole else f"${value:,.2f}"


def short_dollars(value: float) -> str:
    """Return an amount for an axis: thousands and millions by their letters."""
    for size, letter in ((_MILLION, "M"), (_THOUSAND, "k")):
        if abs(value) >= size:
            return f"${value / size:,.3g}{letter}"
    return f"${value:,.3g}"
