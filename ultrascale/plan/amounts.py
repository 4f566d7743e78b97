"""Words of numbers and of sums of money, of which a part may have no known price."""

from collections.abc import Sequence, Sized

from ultrascale.plan.model import Figure

UNKNOWN = "unknown"
SPOT = "Spot as On-Demand"
"""Label of sums in which Spot, which may cost less, counts at the On-Demand price."""

_THOUSAND = 1_000
_TWENTIETH = 20


def amount(value: float | None, text: str, *, without: Sized) -> str:
    """Return the words of a sum; with unknown parts it is the least that all cost together.

    Args:
        value: The sum of the known parts; None where none is known.
        text: The sum in a reader's form.
        without: Parts of no known price.
    """
    if value is None or (without and not value):
        return UNKNOWN
    return f"at least {text}" if without else text


def number(value: float, *, places: int) -> str:
    """Return a number in a reader's form: no decimal places where they are zero."""
    rounded = round(value, places)
    if rounded == int(rounded):
        return f"{int(rounded):,}"
    return f"{rounded:,.{places}f}"


def telling_number(value: float, *, places: int) -> str:
    """Return a number with at least two digits, so that different ones look different."""
    if abs(value - round(value, places)) > abs(value) / _TWENTIETH:
        return f"{value:.2g}" if abs(value) >= 1 / _THOUSAND else f"{value:.1e}"
    return number(value, places=places)


def dollars(value: float) -> str:
    """Return an amount in US dollars: cents below a hundred alone."""
    whole = abs(value) >= 100 or value == int(value)
    return f"${value:,.0f}" if whole else f"${value:,.2f}"


def name_list(names: Sequence[str], most: int = 4, *, space: str = " ") -> str:
    """Return names as a list behind a ``space``; a count ends it where there are many."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and{space}{more}{space}more" if more > 0 else "")


def cell(figure: Figure | None, *, places: int) -> str:
    """Return the cell of a number in a table, which may be unknown or incomplete.

    Args:
        figure: The number.
        places: Decimal places.
    """
    if figure is None:
        return ""
    return number_cell(figure.value, places=places, without=figure.without)


def number_cell(value: float | None, *, places: int, without: Sized = ()) -> str:
    """Return a number as `cell` does."""
    text = "" if value is None else number(value, places=places)
    # A part of a cent is no useful bound.
    return amount(0 if text == "0" else value, text, without=without)
