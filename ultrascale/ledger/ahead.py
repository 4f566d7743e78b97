"""Reserved hours that will go unused, their cost, and the ways out, which are a table."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from string import Template

from ultrascale.catalog.tables import read_table
from ultrascale.frozen import Frozen
from ultrascale.lambdas.forecast import HOUR, bought_ahead, forecast
from ultrascale.lambdas.ledger import DAY, ReservationRow
from ultrascale.ledger import read
from ultrascale.ledger.showback import Ledger, Showback

_NOT_BEGUN = frozenset({"scheduled", "assessing", "delayed"})
_PAST_DAYS = 7  # Of use outside reservations
_UNKNOWN = "an unknown number of"


class Outlook(Frozen):
    """Reserved hours of a pool."""

    pool: str  # The pool
    node_hours: float  # Hours of nodes that are left
    # Those without a user, and both ends of an interval of 80 %; empty: too little use is known
    unused: Sequence[float]
    usd: Sequence[float]  # Their cost; empty without a price as well
    error: float  # Error of the same forecast in weeks that it did not know, as a share of nodes
    waiting: float  # Accelerators that waiting jobs want
    # Ways out of each reservation, as in `ways.csv`, with the values of this pool
    ways: Sequence[Mapping[str, str]]


@cache
def ways() -> Sequence[Mapping[str, str]]:
    """Return the ways out by purchase option."""
    return read_table("ways.csv", Path(__file__).parent)


def look_ahead(ledger: Ledger, file: str, now: int, days: int) -> Iterator[Outlook]:
    """Yield the outlook of each pool with reservations that go on or begin.

    Args:
        ledger: The ledger, with the state of the function that writes it.
        file: Name of the cluster file, for commands.
        now: The time.
        days: Days to look ahead.

    Raises:
        UsageError: The ledger has no state.
        ConfigError: Files of the ledger are wrong.
        UnansweredError: S3 refused.
    """
    midnight, until = now - now % DAY, now + days * DAY
    state = read.state_of(ledger.source, ledger.account_of)
    past = ledger.showback(midnight - _PAST_DAYS * DAY, midnight)
    rows: list[ReservationRow] = [
        row
        for row in sorted(state.rows("reservation"), key=itemgetter("pool"))
        if _option(row) == "future-dated" or bought_ahead([row], now, until)
    ]
    for pool, group in groupby(rows, key=itemgetter("pool")):
        own = list(group)
        bought = bought_ahead(own, now, until).get(pool, {})
        waiting = sum(job["n"] for job in state.rows("waiting") if pool in job["pools"])
        found = forecast(state.use.get(pool, ()), bought, waiting)
        size, usd = own[0]["accelerators"], _usd(own[0], past)
        unused = [] if found is None else [hours / size for hours in found[1:4]]
        values = {
            "file": file,
            "partition": ledger.cluster.partition,
            "region": ledger.cluster.region,
            "account": ledger.cluster.account or "ACCOUNT",
            "waiting": f"{waiting:g}",
            "usd": _UNKNOWN if usd is None else f"{usd:,.2f}",
            "nodes": int(unused[1] / len(bought)) if unused else 0,
            **_burst(own[0]["type"], past),
        }
        yield Outlook(
            pool=pool,
            node_hours=sum(bought.values()) / size,
            unused=unused,
            usd=[] if usd is None else [hours * usd for hours in unused],
            error=0 if found is None else found.error,
            waiting=waiting,
            ways=[way for row in own for way in _ways(row, values)],
        )


def _option(row: ReservationRow) -> str:
    dated = row["window"] is None and row["state"] in _NOT_BEGUN
    return "future-dated" if dated else row["purchase"]


def _usd(row: ReservationRow, past: Showback) -> float | None:
    """Return the price of a node-hour: of its fees, or of a rate."""
    if row["window"] is None:
        price = past.rates.get((row["purchase"], row["type"]))
        return price and price.price
    own = [each for each in past.bought if each.key.reservation == row["reservation"]]
    windows = [window for each in own for window in each.windows]
    if not windows or any(window.cents is None for window in windows):
        return None
    hours = sum(window.ends - window.starts for window in windows) / HOUR
    nodes = own[0].accelerators / row["accelerators"]
    return sum(window.cents or 0 for window in windows) / 100 / hours / nodes


def _burst(type: str, past: Showback) -> Mapping[str, str]:
    """Return node-hours a day of a type that ran jobs outside reservations, and their price."""
    lines = [line for line in past.lines if line.key.type == type and not line.key.reason]
    outside = [line for line in lines if not line.key.reservation]
    hours = sum(float(line.node_seconds) for line in outside) / HOUR
    cents = sum(line.cents or 0 for line in outside)
    usd = f"{cents / 100 / hours:,.2f}" if cents else _UNKNOWN
    return {"burst": f"{hours / _PAST_DAYS:,.1f}", "burst_usd": usd}


def _ways(row: ReservationRow, values: Mapping[str, object]) -> Iterator[Mapping[str, str]]:
    named = {**values, **row, "left": row["bought"] - int(str(values["nodes"]))}
    for cell in ways():
        if cell["option"] == _option(row):
            texts = {name: Template(text).substitute(named) for name, text in cell.items()}
            yield {"reservation": row["reservation"], **texts}
