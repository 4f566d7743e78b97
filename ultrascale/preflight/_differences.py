"""Where an answer of AWS and what we hold of the same thing are not the same."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A field that AWS and we have otherwise.

    Attributes:
        field: Its name in AWS's answer.
        found: What AWS says.
        wanted: What we hold.
    """

    field: str
    found: str
    wanted: str


def told(differences: Iterable[Difference], *, ours: str = "the file", theirs: str = "AWS") -> str:
    """Return the differences as text, each field with both values.

    Args:
        differences: The differences.
        ours: What holds our values.
        theirs: What holds the others.
    """
    return "; ".join(
        f"{each.field} is {each.found} in {theirs}, {each.wanted} in {ours}" for each in differences
    )
