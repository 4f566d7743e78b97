"""Cells of tables: figures of a plan as readers want them."""

from ultrascale.plan.model import Figure


def number(value: float, *, places: int) -> str:
    """Return a number as a reader wants it: no places where there is nothing in them."""
    rounded = round(value, places)
    if rounded == int(rounded):
        return f"{int(rounded):,}"
    return f"{rounded:,.{places}f}"


def cell(figure: Figure | None, *, places: int, is_bound: bool = True) -> str:
    """Return a number as a table shows it, and that it is not known, or not all of it.

    Args:
        figure: The number.
        places: Decimal places.
        is_bound: Whether a sum that lacks parts is at least what is known of it.
    """
    if figure is None:
        return ""
    if figure.value is None:
        return "unknown"
    text = number(figure.value, places=places)
    if not figure.without:
        return text
    if text == "0":
        return "unknown"
    return f"over {text}" if is_bound else f"{text}, without {len(figure.without)}"
