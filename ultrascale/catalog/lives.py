"""Lives of the facts that age, by kind: for how long a reading is trusted.

`lives.csv` has a row of each kind, and a row of each fact with another life. Its days are our own
judgement. Whatever reads a clock warns of a fact that is past its life; no template depends on it.
`readings.csv` has the days of tables whose rows state none.
"""

from collections.abc import Mapping
from datetime import date, timedelta
from functools import cache

from ultrascale.catalog.tables import Row, read_rows
from ultrascale.errors import CatalogError


class Life(Row, frozen=True, kw_only=True):
    """The life of a kind of facts, or of one of them."""

    kind: str
    """Kind of facts, such as ``price``."""
    name: str = ""
    """The fact with a life of its own; empty for all others of its kind."""
    days: int
    """Days from its reading to its expiry."""
    why: str
    """Reason for the days."""


class Reading(Row, frozen=True, kw_only=True):
    """The reading of a whole table, whose rows state no day."""

    kind: str
    """Kind of its facts."""
    table: str
    """File of the catalog."""
    seen: date
    """Day of the reading."""
    source: str
    """Page that was read; rows may name others."""


@cache
def readings() -> Mapping[str, Reading]:
    """Return the readings of whole tables by the kind of their facts."""
    return {row.kind: row for row in read_rows("readings.csv", Reading)}


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
