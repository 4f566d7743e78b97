"""Cells of tables: figures of a plan as readers want them."""

from ultrascale.plan.amounts import amount
from ultrascale.plan.model import Figure


def number(value: float, *, places: int) -> str:
    """Return a number as a reader wants it: no places where there is nothing in them."""
    rounded = round(value, places)
    if rounded == int(rounded):
        return f"{int(rounded):,}"
    return f"{rounded:,.{places}f}"


def cell(figure: Figure | None, *, places: int) -> str:
    """Return a number as a table shows it, and that it is not known, or not all of it.

    Args:
        figure: The number.
        places: Decimal places.
    """
    if figure is None:
        return ""
    text = "" if figure.value is None else number(figure.value, places=places)
    # A part of a cent is no bound that helps anybody.
    value = 0 if text == "0" else figure.value
    return amount(value, text, without=figure.without)
