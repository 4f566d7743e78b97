"""Lives of the facts that age, by kind: for how long a reading is trusted.

`lives.csv` has a row of each kind, and of each fact with another life. Its days are our own
judgement. `readings.csv` has the days of facts whose own table states none. Whatever reads a clock
warns of a fact that is past its life; no template depends on it.
"""

from collections.abc import Mapping
from datetime import date, timedelta
from functools import cache

from ultrascale.catalog.tables import Row, read_rows
from ultrascale.errors import CatalogError


class Life(Row, frozen=True, kw_only=True):
    """The life of a kind of facts, or of one of them."""

    kind: str
    name: str = ""
    """The fact with a life of its own; empty for all others of its kind."""
    days: int
    why: str


class Reading(Row, frozen=True, kw_only=True):
    """A fact whose own table states no day."""

    kind: str
    name: str
    value: str
    seen: date
    """Day of the page, or of its reading."""
    source: str
    marks: tuple[str, ...]
    """Words of the plans that rest on it, as `ultrascale.plan.facts` writes them."""
    ends: date | None = None
    """The end that AWS states, which is its own expiry."""


@cache
def readings() -> tuple[Reading, ...]:
    """Return the facts whose own tables state no day."""
    return read_rows("readings.csv", Reading)


@cache
def lives() -> Mapping[tuple[str, str], Life]:
    """Return the lives by kind and name."""
    return {(row.kind, row.name): row for row in read_rows("lives.csv", Life)}


def expiry(kind: str, seen: date, *, name: str = "", ends: date | None = None) -> date:
    """Return the first day on which a fact is no longer trusted.

    Args:
        kind: Kind of the fact.
        seen: Day of its reading.
        name: Its name, which may have a life of its own.
        ends: The end that AWS states, which is its own expiry.

    Raises:
        CatalogError: No facts of that kind age.
    """
    life = lives().get((kind, name)) or lives().get((kind, ""))
    if life is None:
        kinds = ", ".join(dict.fromkeys(kind for kind, _ in lives()))
        raise CatalogError(f"no life of facts of this kind, got {kind!r}; write one of: {kinds}")
    return ends or seen + timedelta(days=life.days)
