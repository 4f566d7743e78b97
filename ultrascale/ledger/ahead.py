"""Reserved hours that will go unused, their cost, and the ways out, which are a table."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from string import Template

from ultrascale.catalog.tables import read_table
from ultrascale.frozen import Frozen
from ultrascale.lambdas.forecast import HOUR, forecast, hours_ahead
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
    cost: float | None  # Their price in US dollars; None where it is unknown
    # Those without a user, and both ends of an interval of 80 %; empty: too little use is known
    unused: Sequence[float]
    usd: Sequence[float]  # Their price; empty where it is unknown as well
    error: float | None  # Error of the same forecast in weeks that it did not know, of the nodes
    ways: Sequence[Mapping[str, str]]  # Ways out of each reservation, as in `ways.csv`


def ways() -> Sequence[Mapping[str, str]]:
    """Return the ways out by purchase option."""
    return read_table("ways.csv", Path(__file__).parent)


def look_ahead(ledger: Ledger, file: str, now: int, days: int) -> Iterator[Outlook]:
    """Yield the outlook of each pool whose reservations go on or begin, for ``days`` from ``now``.

    Raises:
        UsageError: The ledger has no state.
        ConfigError: Files of the ledger are wrong.
        UnansweredError: S3 refused.
    """
    cluster, until, midnight = ledger.cluster, now + days * DAY, now - now % DAY
    state = read.state_of(ledger.source, ledger.account_of)
    past = ledger.showback(midnight - _PAST_DAYS * DAY, midnight)
    named: dict[str, str] = {
        **{part.renderer: "" for part in cluster.parts if part.renderer},
        **{"file": file, "partition": cluster.partition, "region": cluster.region},
        "account": cluster.account or "ACCOUNT",
    }
    rows = sorted(state.reservations(), key=itemgetter("pool"))
    for pool, group in groupby(rows, key=itemgetter("pool")):
        reserved = [
            (row, hours_ahead(row, now, until), _usd(row, past, now, until)) for row in group
        ]
        reserved = [one for one in reserved if one[1] or _option(one[0]) == "future-dated"]
        if not reserved:
            continue
        bought = sum((hours for _, hours, _ in reserved), Counter[int]())
        waiting = sum(job["n"] for job in state.waiting() if pool in job["pools"])
        result = forecast(state.use.get(pool, ()), bought, waiting)
        size, type = reserved[0][0]["accelerators"], reserved[0][0]["type"]
        unused = [] if result is None else [hours / size for hours in result[1:4]]
        prices = [(hours.total() / size, usd) for _, hours, usd in reserved if hours]
        costs = [hours * usd for hours, usd in prices if usd is not None]
        cost = sum(costs) if costs and len(costs) == len(prices) else None
        node_hours = bought.total() / size
        values = {**named, "waiting": f"{waiting:g}", **_burst(type, past)}
        spare = 0 if result is None else int(result.spare / size)
        texts: list[Mapping[str, str]] = []
        for row, _, usd in reserved:
            price = {"usd": _UNKNOWN if usd is None else f"{usd:,.2f}"}
            texts += _ways(row, min(spare, row["bought"]), values | price)
            spare = max(spare - row["bought"], 0)
        yield Outlook(
            pool=pool,
            node_hours=node_hours,
            cost=cost,
            unused=unused,
            usd=[] if cost is None else [hours / node_hours * cost for hours in unused],
            error=None if result is None else result.error,
            ways=texts,
        )


def _option(row: ReservationRow) -> str:
    dated = row["window"] is None and row["state"] in _NOT_BEGUN
    return "future-dated" if dated else row["purchase"]


def _usd(row: ReservationRow, past: Showback, now: int, until: int) -> float | None:
    """Return the price of a node-hour that is left: of its fees, or of a rate."""
    if row["window"] is None:
        price = past.rates.get((row["purchase"], row["type"]))
        return price and price.price
    for bought in past.bought:
        if bought.key.reservation == row["reservation"]:
            ahead = (window for window in bought.windows if window.starts < until)
            left = [window for window in ahead if now < window.ends]
            hours = sum(min(window.ends, until) - max(window.starts, now) for window in left) / HOUR
            cents = sum(window.accrual(until) - window.accrual(now) for window in left)
            if left and all(window.cents is not None for window in left):
                return cents / 100 / hours * row["accelerators"] / bought.accelerators
    return None


def _burst(type: str, past: Showback) -> Mapping[str, str]:
    """Return node-hours a day of a type that ran jobs outside reservations, and their price."""
    outside = (line for line in past.lines if not line.key.reservation and not line.key.reason)
    lines = [line for line in outside if line.key.type == type]
    hours = sum(float(line.node_seconds) for line in lines) / HOUR
    cents = sum(line.cents or 0 for line in lines)
    usd = f"{cents / 100 / hours:,.2f}" if cents else _UNKNOWN
    return {"burst": f"{hours / _PAST_DAYS:,.1f}", "burst_usd": usd}


def _ways(
    row: ReservationRow, spare: int, values: Mapping[str, str]
) -> Iterator[Mapping[str, str]]:
    """Yield the ways out of a reservation, of whose nodes ``spare`` are used in no hour."""
    # Commands take a reservation of EC2; none takes a resource group.
    id = "RESERVATION" if ":resource-groups:" in row["reservation"] else row["reservation"]
    # EC2 keeps at least one instance of a reservation that is not cancelled.
    fewer = min(spare, row["bought"] - 1)
    counts = {"spare": spare, "fewer": fewer, "left": row["bought"] - fewer}
    named = {**row, **values, "reservation": id, **counts}
    for cell in ways():
        if cell["option"] == _option(row):
            texts = {name: Template(text).substitute(named) for name, text in cell.items()}
            if cell["needs"] and named.get(cell["needs"], 0) in (0, "0", "0.0"):
                texts |= {"allowed": "no", "price": "", "command": ""}
            if _UNKNOWN in texts["price"]:
                texts["price"] = "its price is unknown; name a price file by --prices"
            yield {"reservation": row["reservation"], **texts}
