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


class Outlook(Frozen):
    """Reserved hours of a pool."""

    pool: str  # The pool
    node_hours: float  # Hours of nodes that are left
    # Those without a user, and both ends of an interval of 80 %; empty: too little use is known
    unused: Sequence[float]
    usd: Sequence[float]  # Their cost; empty without a price as well
    error: float | None  # Error of the same forecast in weeks that it did not know, of the nodes
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
    named = {
        "file": file,
        "partition": ledger.cluster.partition,
        "region": ledger.cluster.region,
        "account": ledger.cluster.account or "ACCOUNT",
    }
    rows: list[ReservationRow] = sorted(state.rows("reservation"), key=itemgetter("pool"))
    for pool, group in groupby(rows, key=itemgetter("pool")):
        reserved = [
            (row, sum(bought_ahead([row], now, until).get(pool, {}).values()), _usd(row, past, now))
            for row in group
        ]
        reserved = [own for own in reserved if own[1] or _option(own[0]) == "future-dated"]
        if not reserved:
            continue
        bought = bought_ahead((row for row, _, _ in reserved), now, until).get(pool, {})
        waiting = sum(job["n"] for job in state.rows("waiting") if pool in job["pools"])
        result = forecast(state.use.get(pool, ()), bought, waiting)
        size, type = reserved[0][0]["accelerators"], reserved[0][0]["type"]
        unused = [] if result is None else [hours / size for hours in result[1:4]]
        costs = [hours * usd for _, hours, usd in reserved if usd is not None and hours]
        is_priced = len(costs) == sum(hours > 0 for _, hours, _ in reserved)
        values = {**named, "waiting": f"{waiting:g}", **_burst(type, past)}
        spare = 0 if result is None else int(result.spare / size)
        texts: list[Mapping[str, str]] = []
        for row, _, usd in reserved:
            texts += _ways(row, min(spare, row["bought"]), {**values, "usd": _amount(usd)})
            spare = max(spare - row["bought"], 0)
        yield Outlook(
            pool=pool,
            node_hours=sum(bought.values()) / size,
            unused=unused,
            usd=[hours * sum(costs) / sum(bought.values()) for hours in unused if is_priced],
            error=None if result is None else result.error,
            waiting=waiting,
            ways=texts,
        )


def _option(row: ReservationRow) -> str:
    dated = row["window"] is None and row["state"] in _NOT_BEGUN
    return "future-dated" if dated else row["purchase"]


def _usd(row: ReservationRow, past: Showback, now: int) -> float | None:
    """Return the price of a node-hour from now on: of its fees, or of a rate."""
    if row["window"] is None:
        price = past.rates.get((row["purchase"], row["type"]))
        return price and price.price
    for bought in past.bought:
        windows = [window for window in bought.windows if window.ends > now]
        cents = [window.cents for window in windows if window.cents is not None]
        is_own = bought.key.reservation == row["reservation"]
        if is_own and cents and len(cents) == len(windows):
            hours = sum(window.ends - window.starts for window in windows) / HOUR
            return sum(cents) / 100 / hours / (bought.accelerators / row["accelerators"])
    return None


def _burst(type: str, past: Showback) -> Mapping[str, str]:
    """Return node-hours a day of a type that ran jobs outside reservations, and their price."""
    lines = [line for line in past.lines if line.key.type == type and not line.key.reservation]
    lines = [line for line in lines if not line.key.reason]
    hours = sum(float(line.node_seconds) for line in lines) / HOUR
    cents = sum(line.cents or 0 for line in lines)
    usd = cents / 100 / hours if cents else None
    return {"burst": f"{hours / _PAST_DAYS:,.1f}", "burst_usd": _amount(usd)}


def _amount(usd: float | None) -> str:
    return "an unknown number of" if usd is None else f"{usd:,.2f}"


def _ways(
    row: ReservationRow, spare: int, values: Mapping[str, str]
) -> Iterator[Mapping[str, str]]:
    """Yield the ways out of a reservation, of whose nodes some are used in no hour."""
    # Commands take a reservation of EC2; none takes a resource group.
    id = "RESERVATION" if ":resource-groups:" in row["reservation"] else row["reservation"]
    left = row["bought"] - spare if spare else "NODES"
    nodes = {"spare": spare, "nodes": spare or "NODES", "left": left}
    for cell in ways():
        if cell["option"] == _option(row):
            named = {**row, **values, **nodes, "reservation": id}
            texts = {name: Template(text).substitute(named) for name, text in cell.items()}
            yield {"reservation": row["reservation"], **texts}
