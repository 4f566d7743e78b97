"""Words of sums of money, of which a part may have no known price."""

from collections.abc import Sized

UNKNOWN = "unknown"
SPOT = "Spot as On-Demand"
"""Label of sums in which Spot, which may cost less, counts at the On-Demand price."""


def amount(value: float | None, text: str, *, without: Sized) -> str:
    """Return the words of a sum: what is known of it is the least that all parts cost together.

    Args:
        value: The sum of the known parts; None where none is known.
        text: The same as a reader wants it.
        without: Parts of no known price.
    """
    if value is None or (without and not value):
        return UNKNOWN
    return f"at least {text}" if without else text
