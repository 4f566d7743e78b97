"""Showback of a period: its priced lines, prepaid fees, prices, and time without a measurement."""

import gc
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import partial
from itertools import chain
from typing import NamedTuple

from ultrascale import config
from ultrascale.account import Account
from ultrascale.catalog.prices import Price, PriceList
from ultrascale.config._parts import parts_of
from ultrascale.errors import ConfigError, Diagnostic
from ultrascale.frozen import Frozen
from ultrascale.lambdas.ledger import (
    DAY,
    DRAIN,
    MISSING,
    NOT_MEASURED,
    VERSION,
    WINDOW_START,
    Fee,
    ReservationRow,
    Row,
    Share,
    WaitingRow,
    shares_of,
)
from ultrascale.ledger import read
from ultrascale.ledger.price import (
    Bought,
    Key,
    Line,
    Prepaid,
    Totals,
    dollars,
    lines_of,
    prepaid_of,
    windows_of,
)
from ultrascale.ledger.read import Blob
from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.needs.pools import PAID_BEFORE, RATES, listed_prices

_NO_NODE = frozenset({DRAIN, WINDOW_START, MISSING, NOT_MEASURED})
_ML = "ml."
_MOST_MISTAKES = 20


class Showback(Frozen):
    """Owners of all paid hours of a period or reasons of idleness, and their cost."""

    cluster: str  # Name of the cluster
    starts: int  # Start of the period, in seconds since the epoch
    ends: int  # Its end
    every: int  # Sampling interval, in seconds
    lines: tuple[Line, ...]  # Finest lines
    prepaid: tuple[Prepaid, ...]  # Reservations whose fees are known
    missing_days: tuple[date, ...]  # Days without a file
    unmeasured: float  # Share of the period's time without a measurement
    bought: tuple[Bought, ...]  # Reservations with an end
    rates: Mapping[tuple[str, str], Price]  # Prices of a node-hour by purchase and type
    sizes: Mapping[str, float]  # Accelerators of a node by type
    centers: Mapping[str, str]  # Cost centers by the name of a queue or a team
    waiting: tuple[WaitingRow, ...]  # Jobs that waited, in the order of their files

    @property
    def unmeasured_hours(self) -> float:
        """Share of the lines' node-hours without a measurement."""
        lost = (line.node_seconds for line in self.lines if line.key.reason == NOT_MEASURED)
        return float(sum(lost)) / (float(sum(line.node_seconds for line in self.lines)) or 1)

    @property
    def cents(self) -> int:
        """Sum of all lines with a price."""
        return sum(line.cents or 0 for line in self.lines)


class Ledger(NamedTuple):
    """A cluster's ledger, and all that prices it."""

    cluster: ClusterPlan  # The cluster
    source: str  # A folder, or ``s3://BUCKET/PREFIX``
    account_of: Callable[[], Account]  # Connects to the account of the bucket
    prices: PriceList  # Prices, with fees of reservations
    # Fees of the file by reservation or pool, as US dollars by the end of the time they pay for
    fees: Mapping[str, Mapping[int | None, Decimal]]
    centers: Mapping[str, str]  # Cost centers by the name of a queue or a team
    kept: dict[date, Sequence[Blob]]  # Files that were read, by day

    def showback(
        self, starts: int, ends: int, watch: Callable[[Key, Share], None] | None = None
    ) -> Showback:
        """Read the ledger of a period, and price it.

        ``watch`` takes each share with its line.

        Raises:
            ConfigError: Files of the ledger are wrong; they are named, up to a limit.
            UnansweredError: S3 refused to list or to read the bucket.
        """
        files = self.files(starts, ends)
        bought = tuple(self._reservations(chain.from_iterable(files.values())))
        totals = Totals(starts, ends, bought)
        measured = _Measured(self.cluster.name, totals, watch)
        # Rows form no cycles: the collector would walk millions of them, and free nothing.
        collects = gc.isenabled()
        gc.disable()
        try:
            for day, blobs in files.items():
                measured.add_day(read.start_of(day), blobs)
        finally:
            if collects:
                gc.enable()
        if measured.mistakes:
            raise ConfigError(measured.mistakes[:_MOST_MISTAKES])
        sizes = {
            pool.node_types[0]: float(pool.accelerators_per_node)
            for pool in self.cluster.pools
            if pool.accelerator is not None
        }
        sizes |= measured.sizes
        rates: dict[tuple[str, str], Price] = {}

        return Showback(
            cluster=self.cluster.name,
            starts=starts,
            ends=ends,
            every=measured.every,
            lines=tuple(lines_of(totals, sizes, partial(self._rate, rates))),
            prepaid=tuple(prepaid_of(totals)),
            missing_days=tuple(day for day, blobs in files.items() if not blobs),
            unmeasured=measured.gaps / (ends - starts),
            bought=bought,
            rates=rates,
            sizes=sizes,
            centers=self.centers,
            waiting=tuple(measured.waiting),
        )

    def files(self, starts: int, ends: int) -> Mapping[date, Sequence[Blob]]:
        """Return the files of a period by day; each day is read once."""
        days = read.days_of(starts, ends)
        if unread := [day for day in days if day not in self.kept]:
            self.kept.update(read.files_of(self.source, self.cluster.name, unread, self.account_of))
        return {day: self.kept[day] for day in days}

    def _reservations(self, blobs: Iterable[Blob]) -> Iterator[Bought]:
        """Yield the reservations with an end that the file or the ledger names."""
        by_name: dict[str, list[ReservationRow]] = defaultdict(list)
        for row in chain.from_iterable(map(read.reservations_of, blobs)):
            if row["window"] is not None:
                by_name[row["reservation"]].append(row)
        for name, rows in by_name.items():
            last = rows[-1]
            windows = [row["window"] or [] for row in rows]
            fees = {fee["until"]: fee for row in rows for fee in row["fees"]}
            most = max(row["bought"] for row in rows)  # None in a gap of a plan
            key = Key(name, last["purchase"], last["pool"], last["type"], "")
            yield self._reservation(key, most * last["accelerators"], windows, [*fees.values()])
        for pool in self.cluster.pools:
            name = None if pool.reservation is None else pool.reservation.id
            if name is None or name in by_name or pool.window is None:
                continue
            by_name[name] = []
            # The file alone names it: nothing of it was measured.
            window = [int(at.timestamp()) for at in (pool.window.starts, pool.window.ends)]
            key = Key(name, pool.purchase, pool.pool, pool.node_types[0], "")
            yield self._reservation(key, pool.max_nodes * pool.accelerators_per_node, [window], [])

    def _rate(self, rates: dict[tuple[str, str], Price], key: Key) -> Decimal | None:
        """Return US dollars of a node-hour; None without a price, or where a fee pays."""
        if key.purchase in PAID_BEFORE:
            return None
        pools = (pool for pool in self.cluster.pools if pool.pool == key.pool)
        seller = next((pool.facts.seller for pool in pools), "ec2")
        name = key.type if seller == "ec2" else f"{_ML}{key.type.removeprefix(_ML)}"
        region, listed = self.cluster.region, self.prices
        for price in listed_prices([name], key.purchase, seller, region, listed).prices:
            rates[key.purchase, key.type] = price
            return Decimal(str(price.price))
        return None

    def _reservation(
        self,
        key: Key,
        accelerators: float,
        windows: Sequence[Sequence[int]],
        fees: Sequence[Fee],
    ) -> Bought:
        """Return a reservation with its fees: the file's, else of a price file and of AWS."""
        known: dict[int | None, Decimal] = {fee["until"]: Decimal(fee["usd"]) for fee in fees}
        source = "AWS"
        price = self.prices.find(self.cluster.region, "ec2-capacity-block", key.reservation)
        if price is not None:
            known[None] = Decimal(str(price.price))
            source = f"{price.source} on {price.valid_on}"
        starts, ends = min(start for start, _ in windows), {end for _, end in windows}
        stated = self._fees_of(key, windows)
        if None in stated and not any(fee["since"] <= starts for fee in fees):
            # The fee of the purchase; AWS tells those of extensions.
            known, source = {**known, **stated}, "the cluster file"
        elif until := [end for end in stated if end is not None]:
            # The file leads up to the end that it knows; later fees are AWS's.
            ends = {end for end in ends if end > max(until)}
            fees = [fee for fee in fees if fee["since"] >= max(until)]
            known = {**stated, **{fee["until"]: Decimal(fee["usd"]) for fee in fees}}
            source = "the cluster file"
        return Bought(
            key,
            accelerators,
            windows_of(starts, ends, known, {fee["since"] for fee in fees}),
            source,
        )

    def _fees_of(self, key: Key, windows: Sequence[Sequence[int]]) -> Mapping[int | None, Decimal]:
        """Return the fees of the file: by the reservation, else by its pool at the same time."""
        times = [
            pool.window for pool in self.cluster.pools if pool.pool == key.pool and pool.window
        ]
        # Tags may name one reservation after another.
        is_named = any(
            low < time.ends.timestamp() and time.starts.timestamp() < high
            for time in times
            for low, high in windows
        )
        return self.fees.get(key.reservation) or (self.fees.get(key.pool, {}) if is_named else {})


class _Measured:
    """Rows of the ledger, added up a day at a time: each row ends at midnight at last."""

    def __init__(
        self, cluster: str, totals: Totals, watch: Callable[[Key, Share], None] | None
    ) -> None:
        self._cluster, self._totals, self._watch = cluster, totals, watch
        self._known: _Known = {}
        self.waiting: list[WaitingRow] = []
        self.mistakes: list[Diagnostic] = []
        self.sizes: dict[str, float] = {}
        self.every = self.gaps = 0

    def add_day(self, start: int, blobs: Sequence[Blob]) -> None:
        """Add the files of the day that begins at ``start``; without any, it was not measured."""
        starts, ends = max(start, self._totals.starts), min(start + DAY, self._totals.ends)
        rows: list[Row] = []
        if not blobs:
            rows.append({"v": VERSION, "kind": "gap", "from": starts, "to": ends})
        for blob in blobs:
            try:
                interval, more = read.rows_of(blob, self._cluster)
            except ConfigError as error:
                self.mistakes += error.diagnostics
            else:
                self.every = max(self.every, interval)
                rows += more
        for row in rows:
            if row["kind"] == "gap":
                self.gaps += max(min(row["to"], ends) - max(row["from"], starts), 0)
            elif row["kind"] == "waiting":
                self.waiting.append(row)
            else:
                self.sizes[row["type"]] = row["accelerators"]
        for share in shares_of(rows, starts, ends, self._known):
            key = self._totals.add(share)
            if self._watch is not None:
                self._watch(key, share)
        self._known = _last_reservations(rows, self._known)


_Known = Mapping[str, ReservationRow]


def _last_reservations(rows: Sequence[Row], known: _Known) -> _Known:
    """Return the reservations at a day's last measurement; others are in no gap that follows."""
    end = max((row["to"] for row in rows if row["kind"] != "gap"), default=None)
    if end is None:
        return known
    last = (row for row in rows if row["kind"] == "reservation" and row["to"] == end)
    return {row["reservation"]: row for row in last}


# --- Prices ---------------------------------------------------------------------------------------


def price_words(showback: Showback) -> Iterator[str]:
    """Yield a sentence on each price and fee of the lines: amount, day and source."""
    rated = {
        (line.key.purchase, line.key.type, line.basis)
        for line in showback.lines
        if line.key.purchase not in PAID_BEFORE
    }
    for purchase, name, basis in sorted(rated):
        price = showback.rates.get((purchase, name))
        if price is not None and basis == "estimate":
            words = f"${price.price:g} an hour {RATES[price.service]} on {price.valid_on}"
            yield f"{name}, {purchase}: {words}, {price.source}"
        elif price is None and basis == "unknown":
            yield f"no price of {name}, {purchase}: its lines have hours and no money"
    for bought in showback.bought:
        name = bought.key.reservation
        if not bought.is_in(showback.starts, showback.ends):
            continue
        if None in bought.fees:
            todo = "write it into purchase.fee, or into a price file once the pool has another"
            yield f"no fee of {name}: its lines have hours and no money; {todo}"
        else:
            yield f"{name}: a fee of {' + '.join(map(dollars, bought.fees))}, by {bought.source}"


def fees_of(stated: config.Cluster) -> Mapping[str, Mapping[int | None, Decimal]]:
    """Return the fees of a cluster file by reservation, or by pool where tags name it.

    They are US dollars by the end of their time; None for the purchase of one that AWS may extend.
    """
    fees: dict[str, dict[int | None, Decimal]] = {}
    for pool in stated.pools:
        purchase = pool.purchase
        if not isinstance(purchase, config.CapacityBlock | config.TrainingPlan):
            continue
        named = purchase.plan if isinstance(purchase, config.TrainingPlan) else purchase.reservation
        single = len(purchase.fee) == 1 and purchase.fee[0].until is None
        for fee in purchase.fee:
            until = None if single else int((fee.until or purchase.ends).timestamp())
            fees.setdefault(named or pool.name, {})[until] = Decimal(str(fee.usd))
    return fees


def centers_of(stated: config.Cluster) -> Mapping[str, str]:
    """Return the cost centers of a cluster file by the name of a queue or a team."""
    items = [placed.item for placed in parts_of(stated).placed]
    teams = (item for item in items if isinstance(item, config.Team))
    owners = (*stated.scheduling.queues, *teams)
    return {owner.name: owner.cost_center for owner in owners if owner.cost_center}


# --- Groups of lines ------------------------------------------------------------------------------


def _owner(key: Key, name: str) -> str:
    """Return ``name`` for used accelerators, and the reason of idle ones."""
    if key.reason and not key.namespace:
        return f"({key.reason})" if key.reason in _NO_NODE else f"(idle: {key.reason})"
    return name or f"(namespace {key.namespace})"


def groupings(centers: Mapping[str, str]) -> Mapping[str, Callable[[Key], str]]:
    """Return the groupings of ``--by``.

    Args:
        centers: Cost centers by the name of a queue or a team.
    """
    return {
        "team": lambda key: _owner(key, key.team),
        "queue": lambda key: _owner(key, key.queue),
        "job": lambda key: _owner(key, f"{key.namespace}/{key.job}" if key.job else ""),
        "pool": lambda key: key.pool,
        "node-type": lambda key: key.type,
        "reservation": lambda key: key.reservation or f"({key.purchase})",
        "reason": lambda key: key.reason or "(used)",
        "cost-center": lambda key: _owner(key, centers.get(key.queue) or centers.get(key.team, "")),
    }
