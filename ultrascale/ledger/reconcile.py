"""Differences between the ledger and AWS's bill, each with its name, and the bill's amounts."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from msgspec.structs import replace

from ultrascale.catalog.capacity_blocks import LONGEST_AHEAD
from ultrascale.errors import QuestionError
from ultrascale.frozen import Frozen
from ultrascale.lambdas.ledger import DAY, NOT_MEASURED, Share, day_of
from ultrascale.ledger.bill import Bill, Charge
from ultrascale.ledger.price import Key, Line, Window, split_cents
from ultrascale.ledger.showback import Showback
from ultrascale.plan.needs.pools import PAID_BEFORE

_HOUR = 3600
_EXACT = 10**10
_AHEAD = int(LONGEST_AHEAD.total_seconds())
_NOT_IN_LEDGER, _NOT_IN_BILL = "in the bill, not in the ledger", "in the ledger, not in the bill"
_Weights = Mapping[Key, float]


class Difference(NamedTuple):
    """A named difference: the bill's amount less the ledger's."""

    name: str  # Its name, and its resource
    usd: Decimal  # Its amount
    counts: bool  # Whether it counts against the tolerance


class Reconciled(Frozen):
    """The ledger held against the bill."""

    lines: tuple[Line, ...]  # Lines of the ledger, those with a rate at the bill's amounts
    differences: tuple[Difference, ...]  # All differences
    remarks: tuple[str, ...]  # Sentences on matches, and on what the bill cannot show
    share: float  # Sum of the differences that count, beside the cost of the ledger
    shapes: tuple[str, ...]  # Lines without a match, without ids and amounts


class Uses:
    """Accelerator-seconds of each hour that a rate pays for, by the bill's name of the resource.

    Args:
        by_type: Pools whose nodes the bill knows by their type alone.
    """

    def __init__(self, by_type: Collection[str]) -> None:
        self.hours: dict[tuple[str, int], dict[Key, float]] = defaultdict(dict)
        self._by_type = by_type

    def add(self, key: Key, share: Share) -> None:
        """Add a share; instances that are missing count by their reservation."""
        if key.purchase in PAID_BEFORE:
            return
        resource = share.instance or key.reservation or share.node
        if key.pool in self._by_type:
            resource = f"ml.{key.type.removeprefix('ml.')}"
        for hour in range(share.start - share.start % _HOUR, share.end, _HOUR):
            seconds = min(share.end, hour + _HOUR) - max(share.start, hour)
            weights = self.hours[resource, hour]
            weights[key] = weights.get(key, 0) + seconds * share.n


def reconcile(showback: Showback, uses: Uses, bill: Bill) -> Reconciled:
    """Hold a priced ledger against a bill of the same months.

    Raises:
        QuestionError: The bill lacks a month of the period.
    """
    days = range(showback.starts, showback.ends, DAY)
    if lacking := sorted({day_of(at)[:7] for at in days} - bill.months):
        raise QuestionError([f"--reconcile: no line of {', '.join(lacking)}; add its bill"])
    held = _Held(showback, uses)
    rated: dict[tuple[str, int], list[Charge]] = defaultdict(list)
    prepaid = {bought.key.reservation for bought in showback.bought}
    fees, billed, blocks = list[Charge](), Decimal(), Decimal()
    for charge in bill.charges:
        if charge.use == "fee" and charge.usd > 0:
            fees.append(charge)
        elif not showback.starts <= charge.start < showback.ends:
            continue
        elif charge.usd < 0:
            billed += charge.usd
            held.add(f"refund: {charge.name}", charge.usd, [charge])
        elif charge.in_block or charge.reservation in prepaid:
            blocks += charge.usd
        elif charge.use != "type" or charge.usd:
            billed += charge.usd
            rated[charge.resource, charge.start - charge.start % _HOUR].append(charge)
    for resource, hour in sorted({*rated, *uses.hours}):
        held.add_hour(resource, hour, rated.get((resource, hour), ()))
    estimated = Decimal(sum(line.cents or 0 for line in showback.lines if line.basis == "estimate"))
    rest = billed - estimated / 100 - sum(held.sums.values())
    small = abs(rest) <= len(showback.lines) / Decimal(100)
    held.add("rounding" if small else "unexplained", rest, counts=not small)
    held.add_fees(fees, bill.months)
    differences = [
        Difference(name, usd, counts)
        for (name, counts), usd in sorted(held.sums.items(), key=lambda item: -abs(item[1]))
        if round(usd, 2)
    ]
    lines = _lines_at_bill(showback.lines, held.spent)
    whole = Decimal(max(sum(line.cents or 0 for line in lines), 1)) / 100
    return Reconciled(
        lines=tuple(lines),
        differences=tuple(differences),
        remarks=(*held.remarks, *_remarks(bill, blocks)),
        share=float(sum(abs(usd) for _, usd, counts in differences if counts) / whole),
        shapes=tuple(sorted(held.shapes)),
    )


def _remarks(bill: Bill, blocks: Decimal) -> Iterator[str]:
    yield f"outside the ledger, such as CPU nodes and storage: {bill.outside:,.2f}"
    if blocks:
        words = "of an operating system, or the fee amortized: not added"
        yield f"hours in blocks carry {blocks:,.2f}, {words}"
    if bill.repeated:
        yield f"lines that were given twice count once: {bill.repeated:,}"


class _Held:
    """Differences by name, and the bill's cost of each line."""

    def __init__(self, showback: Showback, uses: Uses) -> None:
        self.sums: dict[tuple[str, bool], Decimal] = defaultdict(Decimal)
        self.spent: dict[Key, Decimal] = defaultdict(Decimal)
        self.remarks: list[str] = []
        self.shapes: set[str] = set()
        self._showback, self._hours = showback, uses.hours

    def add(
        self, name: str, usd: Decimal, charges: Iterable[Charge] = (), *, counts: bool = True
    ) -> None:
        """Add a difference, with the lines that have no match.

        ``counts`` says whether it counts against the tolerance.
        """
        self.sums[name, counts] += usd
        self.shapes.update(charge.shape for charge in charges)

    def add_hour(self, resource: str, hour: int, charges: Sequence[Charge]) -> None:
        """Add one resource in one hour: its differences are bill less estimate."""
        use = self._hours.get((resource, hour), {})
        # An instance starts minutes before its node joins, and ends after it.
        paid_by = charges[0].reservation if charges else ""
        beside = (paid_by, hour), (resource, hour + _HOUR), (resource, hour - _HOUR)
        weights = use or next(filter(None, map(self._hours.get, beside)), None)
        if weights is None:
            self.add(f"{_NOT_IN_LEDGER}: {charges[0].name}", _sum(charges), charges)
        elif charges:
            self._spread_cost(resource, charges, use, weights)
        else:
            gap = all(key.reason == NOT_MEASURED for key in weights)
            name = NOT_MEASURED if gap else f"{_NOT_IN_BILL}: {resource}"
            self.add(name, -self._estimate(weights), counts=not gap)

    def _spread_cost(
        self, resource: str, charges: Sequence[Charge], use: _Weights, weights: _Weights
    ) -> None:
        """Give the cost of one resource in one hour to lines by their weights."""
        key = next(iter(weights))
        measured = Decimal(sum(use.values())) / Decimal(self._showback.sizes[key.type] * _HOUR)
        usd, hours = _sum(charges), sum((charge.hours for charge in charges), Decimal())
        single = resource.startswith("i-")
        # Nodes of a type run for some time before they join; more than an hour is another's.
        if hours > (most := Decimal(1) if single else measured + 1):
            extra = usd * (hours - most) / hours
            self.add(f"{'billed twice' if single else _NOT_IN_LEDGER}: {resource}", extra)
            usd, hours = usd - extra, most
        for line, weight in weights.items():
            self.spent[line] += usd * Decimal(weight) / Decimal(sum(weights.values()))
        price = self._showback.rates.get((key.purchase, key.type))
        if price is None:
            name = f"without a price in the ledger: {key.type}, {key.purchase}"
            self.add(name, usd, counts=False)
            return
        rate = Decimal(str(price.price))
        plain = key.purchase != "spot" and all(charge.item == "Usage" for charge in charges)
        name = "rate" if plain else "rate of Spot, Savings Plans or Reserved Instances"
        self.add(f"{name}: {key.type}, {key.purchase}", usd - rate * hours, counts=plain)
        slack = Decimal(2 * self._showback.every) / _HOUR * max(measured, 1)
        late = measured - hours > slack and not resource.startswith("cr-")
        name = f"{_NOT_IN_BILL}: {resource}" if late else "time between two measurements"
        self.add(name, rate * hours - self._estimate(use), counts=late)

    def _estimate(self, weights: _Weights) -> Decimal:
        rates, sizes = self._showback.rates, self._showback.sizes
        return sum(
            (
                Decimal(str(price.price)) * Decimal(weight) / Decimal(sizes[key.type] * _HOUR)
                for key, weight in weights.items()
                if (price := rates.get((key.purchase, key.type))) is not None
            ),
            Decimal(),
        )

    def add_fees(self, charges: list[Charge], months: Collection[str]) -> None:
        """Add the differences of fees, with sentences on their matches."""
        windows = [(item.key, window) for item in self._showback.bought for window in item.windows]
        # A line of another amount may be that of a fee that the ledger lacks.
        for key, window in sorted(windows, key=lambda pair: pair[1].cents is None):
            name, dates = key.reservation, _months(window)
            charge, way = _match_charge(key, window, charges)
            fee = Decimal(window.cents or 0) / 100
            if charge is not None:
                charges.remove(charge)
                self.remarks.append(f"fee of {name}: matched by {way}")
                label = "another fee than the ledger's" if fee else "no fee in the ledger"
                self.add(f"{label}: {name}", charge.usd - fee)
            elif dates <= {*months}:
                self.add(f"{_NOT_IN_BILL}: fee of {name}", -fee)
            elif dates & {*months} and fee:
                lacking = ", ".join(sorted(dates - {*months}))
                self.remarks.append(f"fee of {name}: not in these bills; it may stand in {lacking}")
        known = {key.reservation for key, _ in windows}
        for charge in charges:
            if charge.reservation in known:
                self.add(f"billed twice: {charge.name}", charge.usd, [charge])
            elif self._showback.starts <= charge.start < self._showback.ends:
                self.add(f"{_NOT_IN_LEDGER}: {charge.name}", charge.usd, [charge])
            else:
                words = f"fee of {charge.name}, {charge.usd:,.2f}: in no month of the period"
                self.remarks.append(words)


def _sum(charges: Iterable[Charge]) -> Decimal:
    return sum((charge.usd for charge in charges), Decimal())


def _lines_at_bill(lines: Iterable[Line], spent: Mapping[Key, Decimal]) -> Sequence[Line]:
    """Return the lines, those with a rate at the bill's amounts; without one they have no money."""
    weights = {key: int(usd * _EXACT) for key, usd in spent.items()}
    # The bill has ten places; shares of it have more, and may fall below half a cent.
    cents = split_cents(round(round(sum(spent.values()), 10) * 100), weights)
    return [
        line
        if line.key.purchase in PAID_BEFORE
        else replace(
            line,
            cents=cents.get(line.key),
            basis="bill" if line.key in cents else "unknown",
        )
        for line in lines
    ]


def _match_charge(key: Key, window: Window, charges: Iterable[Charge]) -> tuple[Charge | None, str]:
    """Return the line of a window's fee, and the way it was recognized."""
    named = [charge for charge in charges if charge.reservation == key.reservation]
    others = [
        charge
        for charge in charges
        if not charge.reservation
        and charge.type == key.type
        and window.starts - _AHEAD <= charge.start < window.starts + DAY
    ]
    for lines, way in ((named, "its ARN"), (others, "usage type, day and amount")):
        for charge in lines:
            if round(charge.usd * 100) == window.cents:
                return charge, way
    return (named[0], "its ARN") if named else (None, "")


def _months(window: Window) -> set[str]:
    """Return the months whose bills may have a fee: from its purchase to its start."""
    return {day_of(at)[:7] for at in range(window.starts, window.starts - _AHEAD - 1, -DAY)}
