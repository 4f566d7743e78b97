"""Prices of the ledger's lines: fees by time, rates by use; sums are equal to the cent.

The share of a month in a fee is the difference of two integers that grow with time, so that months
add up to the fee, and later ones change no earlier one. Within a month the cents go to the finest
lines by largest remainder; each grouping adds up such lines, and rounds nothing anew.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from itertools import pairwise
from typing import Literal, NamedTuple

from ultrascale.frozen import Frozen
from ultrascale.lambdas.ledger import NOT_MEASURED, Share
from ultrascale.ledger.read import days_of, start_of

Basis = Literal["fee", "estimate", "bill", "unknown"]
_HOUR = 3600
# Pods that share a Neuron device have binary fractions of it.
_UNIT = 64


class Key(NamedTuple):
    """A finest line of the ledger; all groupings add up these."""

    reservation: str  # Id or ARN; empty without one
    purchase: str  # Purchase option
    pool: str  # Pool
    type: str  # Instance type
    # Reason of idleness; empty for used accelerators, `HELD` for those that a job leaves idle
    reason: str
    namespace: str = ""  # Namespace of the owner, like all below; empty for idle accelerators
    team: str = ""  # Its team; empty where it has none
    queue: str = ""  # Its queue; empty where it has none
    job: str = ""  # Its job, or the owner of its pods


_key: Callable[[tuple[object, ...]], Key] = partial(tuple.__new__, Key)


class Window(NamedTuple):
    """A time that one fee pays for: a block or plan as bought, or one extension of it."""

    starts: int  # Its start, in seconds since the epoch
    ends: int  # Its end
    cents: int | None  # Its fee; None where nothing states it

    def accrual(self, until: int) -> int:
        """Return the cents of the fee that the time up to ``until`` has used."""
        passed = min(max(until, self.starts), self.ends) - self.starts
        return (self.cents or 0) * passed // (self.ends - self.starts)


class Bought(NamedTuple):
    """A reservation with an end."""

    key: Key  # Its line without a reason
    accelerators: float  # Accelerators of all its instances
    windows: tuple[Window, ...]  # Its times; only a plan has gaps between them
    source: str  # Who states its fee

    @property
    def fees(self) -> Sequence[int | None]:
        """Fees of its windows in cents."""
        return [window.cents for window in self.windows]

    def is_in(self, starts: int, ends: int) -> bool:
        """Return whether a period has a part of its time."""
        return self.windows[0].starts < ends and starts < self.windows[-1].ends


class Line(Frozen):
    """A finest line of a period, priced."""

    key: Key
    node_seconds: Decimal  # Its accelerators as whole nodes, in seconds
    cents: int | None  # Its cost; None without a price
    basis: Basis  # Origin of the cost


class Prepaid(NamedTuple):
    """Fees of a reservation in cents: accrued before a period, in it, and left at its end."""

    reservation: str
    before: int
    within: int
    after: int


def dollars(cents: int | None) -> str:
    """Return cents as US dollars with two places; empty for None."""
    return "" if cents is None else f"{Decimal(cents) / 100:,.2f}"


def windows_of(
    starts: int,
    ends: Iterable[int],
    fees: Mapping[int | None, Decimal],
    since: Collection[int],
) -> tuple[Window, ...]:
    """Return the windows of a reservation, one for each of its fees; a plan may have gaps.

    Args:
        starts: Its start.
        ends: Its ends, before and after its extensions.
        fees: US dollars by the end of the time that they pay for; None for the first time.
        since: Starts of times with a fee of their own, where AWS tells them.
    """
    until = {end for end in fees if end is not None}
    edges = sorted({*ends, *until, *(start for start in since if start > starts)})
    cents = {end: round(usd * 100) for end, usd in fees.items()}
    if None in cents:
        cents[edges[0]] = cents[None]
    return tuple(
        Window(a, b, cents.get(b))
        for a, b in pairwise([starts, *edges])
        if a not in until or b in until or b not in since
    )


def split_cents(cents: int, weights: Mapping[Key, int]) -> Mapping[Key, int]:
    """Return ``cents`` in proportion to ``weights``, by largest remainder."""
    total = sum(weights.values()) or 1
    parts = {key: divmod(cents * weight, total) for key, weight in weights.items()}
    rest = cents - sum(whole for whole, _ in parts.values())
    raised = frozenset(sorted(parts, key=lambda key: (-parts[key][1], key))[:rest])
    return {key: whole + (key in raised) for key, (whole, _) in parts.items()}


def months_of(starts: int, ends: int) -> Sequence[int]:
    """Return both ends of a period, and the first seconds of the months between them."""
    firsts = (start_of(day) for day in days_of(starts, ends) if day.day == 1)
    return sorted({starts, *(first for first in firsts if first > starts), ends})


class Totals:
    """Accelerator-seconds of each finest line, by times between which prices are constant."""

    def __init__(self, starts: int, ends: int, bought: Iterable[Bought]) -> None:
        self.starts, self.ends = starts, ends
        self.bought = {item.key.reservation: item for item in bought}
        self._months = months_of(starts, ends)
        self._edges = {
            name: sorted({*self._months, *(edge for part in item.windows for edge in part[:2])})
            for name, item in self.bought.items()
        }
        self.weights: dict[tuple[str, int], Counter[Key]] = defaultdict(Counter)
        # Span of one price of the share before, and its reservation
        self._span, self._paid_by = (0, 0, 0), ""

    def spans(self, reservation: str, starts: int, ends: int) -> Iterator[tuple[int, int, int]]:
        """Yield an interval in pieces within one price: start, end, and start of that price."""
        starts, ends = max(starts, self.starts), min(ends, self.ends)
        edges = self._edges.get(reservation, self._months)
        while starts < ends:
            place = bisect_right(edges, starts)
            until = min(ends, edges[place])
            yield starts, until, edges[place - 1]
            starts = until

    def add(self, share: Share) -> Key:
        """Add a share, and return its line."""
        key = _key(share[3:7] + share[11:16])
        start, end, n, paid_by = share[:4]
        count = int(n * _UNIT)
        low, high, edge = self._span
        if paid_by == self._paid_by and low <= start and end <= high:
            # Most shares have the price of the share before.
            self.weights[paid_by, edge][key] += count * (end - start)
            return key
        self._paid_by = share.reservation
        for span in self.spans(share.reservation, share.start, share.end):
            first, last, edge = self._span = span
            self.weights[share.reservation, edge][key] += count * (last - first)
        return key


def lines_of(
    totals: Totals, sizes: Mapping[str, float], rate_of: Callable[[Key], Decimal | None]
) -> Sequence[Line]:
    """Return the priced lines of a period; a line spans all of its months.

    Args:
        totals: Accelerator-seconds.
        sizes: Accelerators of a node, by instance type.
        rate_of: Returns US dollars of a node-hour of a line without a fee; None without a price.
    """
    seconds: dict[tuple[Key, Basis], Decimal] = defaultdict(Decimal)
    money: dict[tuple[Key, Basis], int] = defaultdict(int)
    for weights, cents, priced in (*_fee_parts(totals), *_rate_parts(totals, sizes, rate_of)):
        basis = "unknown" if cents is None else priced
        for key, weight in weights.items():
            seconds[key, basis] += Decimal(weight) / Decimal(sizes[key.type] * _UNIT)
        for key, part in split_cents(cents or 0, weights).items():
            money[key, basis] += part
    return [
        Line(
            key=key,
            node_seconds=seconds[key, basis],
            cents=None if basis == "unknown" else money[key, basis],
            basis=basis,
        )
        for key, basis in sorted(seconds)
    ]


def _fee_parts(totals: Totals) -> Iterator[tuple[Mapping[Key, int], int | None, Basis]]:
    """Yield the lines of each window in each month, with the part of its fee."""
    for name, bought in totals.bought.items():
        for window in bought.windows:
            for first, last, edge in totals.spans(name, window.starts, window.ends):
                weights: Mapping[Key, int] = totals.weights[name, edge]
                left = int(bought.accelerators * _UNIT) * (last - first) - sum(weights.values())
                if left > 0:
                    gap = bought.key._replace(reason=NOT_MEASURED)
                    weights = {**weights, gap: weights.get(gap, 0) + left}
                yield weights, window.cents and window.accrual(last) - window.accrual(first), "fee"


def _rate_parts(
    totals: Totals, sizes: Mapping[str, float], rate_of: Callable[[Key], Decimal | None]
) -> Iterator[tuple[Mapping[Key, int], int | None, Basis]]:
    """Yield the lines of each rate in each month, with their cost."""
    rated: dict[tuple[int, str, str], dict[Key, int]] = defaultdict(dict)
    for (name, edge), weights in totals.weights.items():
        for key, weight in weights.items():
            if name not in totals.bought:
                rated[edge, key.purchase, key.type][key] = weight
    for weights in rated.values():
        key = next(iter(weights))
        usd = rate_of(key)
        hours = Decimal(sum(weights.values())) / Decimal(sizes[key.type] * _UNIT * _HOUR)
        yield weights, None if usd is None else round(usd * 100 * hours), "estimate"


def prepaid_of(totals: Totals) -> Iterator[Prepaid]:
    """Yield the fees that a period uses in part or in all."""
    for name, bought in totals.bought.items():
        windows = bought.windows
        if bought.is_in(totals.starts, totals.ends) and None not in bought.fees:
            before, until, fee = (
                sum(window.accrual(edge) for window in windows)
                for edge in (totals.starts, totals.ends, windows[-1].ends)
            )
            yield Prepaid(reservation=name, before=before, within=until - before, after=fee - until)


class Group(NamedTuple):
    """The sum of several lines."""

    node_seconds: Decimal = Decimal()
    cents: int | None = None  # Cost by fees or the bill; None without any
    estimate: int | None = None  # Cost by rates of a price list; None without any

    @property
    def total(self) -> int:
        """All cents of the group."""
        return (self.cents or 0) + (self.estimate or 0)


def group_by(lines: Iterable[Line], name_of: Callable[[Key], str]) -> Mapping[str, Group]:
    """Return the sums of lines by name, the dearest first."""
    sums: dict[str, Group] = defaultdict(Group)
    for line in lines:
        name = name_of(line.key)
        seconds, cents, estimate = sums[name]
        if line.basis == "estimate":
            estimate = (estimate or 0) + (line.cents or 0)
        elif line.cents is not None:
            cents = (cents or 0) + line.cents
        sums[name] = Group(seconds + line.node_seconds, cents, estimate)
    order = sorted(sums, key=lambda name: (-sums[name].total, -sums[name].node_seconds, name))
    return {name: sums[name] for name in order}
