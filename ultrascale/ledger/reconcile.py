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
from ultrascale.ledger.price import Key, Line, Window, shared
from ultrascale.ledger.showback import Showback
from ultrascale.plan.needs.pools import PAID_BEFORE

_HOUR = 3600
_EXACT = 10**10
_AHEAD = int(LONGEST_AHEAD.total_seconds())
_Hour = tuple[str, int]


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
        self.hours: dict[_Hour, dict[Key, float]] = defaultdict(dict)
        self._by_type = by_type

    def add(self, key: Key, share: Share) -> None:
        """Add a share; instances that are missing count by their reservation."""
        if key.purchase in PAID_BEFORE:
            return
        resource = share.instance or key.reservation
        if key.pool in self._by_type:
            resource = f"ml.{key.type.removeprefix('ml.')}"
        for hour in range(share.start - share.start % _HOUR, share.end, _HOUR):
            seconds = min(share.end, hour + _HOUR) - max(share.start, hour)
            own = self.hours[resource, hour]
            own[key] = own.get(key, 0) + seconds * share.n


def reconcile(
    showback: Showback, uses: Uses, bill: Bill, accelerated: Collection[str]
) -> Reconciled:
    """Hold a priced ledger against a bill of the same months.

    ``accelerated`` are the instance types of the ledger; all others are outside of it.

    Raises:
        QuestionError: The bill lacks a month of the period.
    """
    days = range(showback.starts, showback.ends, DAY)
    if lacking := sorted({day_of(at)[:7] for at in days} - bill.months):
        raise QuestionError([f"--reconcile: no line of {', '.join(lacking)}; add its bill"])
    own = [each for each in bill.charges if each.type in accelerated]
    rated, blocks = _by_hour(showback, own)
    spent, held = _held(showback, uses, rated)
    lines = _billed(showback.lines, spent)
    billed = sum((each.usd for charges in rated.values() for each in charges), Decimal())
    estimated = Decimal(sum(line.cents or 0 for line in showback.lines if line.basis == "estimate"))
    rest = billed - estimated / 100 - sum(each.usd for each in held)
    small = abs(rest) <= len(showback.lines) / Decimal(100)
    fees, remarks, left = _fees(showback, [each for each in own if each.use == "fee"], bill.months)
    sums: dict[tuple[str, bool], Decimal] = defaultdict(Decimal)
    for each in (*fees, *held, Difference("rounding" if small else "unexplained", rest, not small)):
        sums[each.name, each.counts] += each.usd
    named = [Difference(name, usd, counts) for (name, counts), usd in sums.items() if round(usd, 2)]
    known = {resource for resource, _ in uses.hours}
    strange = [
        each for (name, _), charges in rated.items() if name not in known for each in charges
    ]
    outside = bill.outside + sum(each.usd for each in bill.charges if each.type not in accelerated)
    remarks.append(f"outside the ledger, such as CPU nodes and storage: {outside:,.2f}")
    if blocks:
        words = "of an operating system, or the fee amortized: not added"
        remarks.append(f"hours in blocks carry {blocks:,.2f}, {words}")
    if bill.repeated:
        remarks.append(f"lines that were given twice count once: {bill.repeated:,}")
    whole = Decimal(max(sum(line.cents or 0 for line in lines), 1)) / 100
    return Reconciled(
        lines=tuple(lines),
        differences=tuple(sorted(named, key=lambda each: (-abs(each.usd), each.name))),
        remarks=tuple(remarks),
        share=float(sum(abs(each.usd) for each in named if each.counts) / whole),
        shapes=tuple(sorted({charge.shape for charge in (*strange, *left)})),
    )


def _by_hour(
    showback: Showback, charges: Iterable[Charge]
) -> tuple[Mapping[_Hour, Sequence[Charge]], Decimal]:
    """Return charges of the period by resource and hour, and the cost of hours in blocks."""
    rated: dict[_Hour, list[Charge]] = defaultdict(list)
    blocks = Decimal()
    prepaid = {each.key.reservation for each in showback.bought}
    for charge in charges:
        if charge.use == "fee" or not showback.starts <= charge.start < showback.ends:
            continue
        if charge.in_block or charge.reservation in prepaid:
            blocks += charge.usd
        elif charge.use != "none":
            rated[charge.resource, charge.start - charge.start % _HOUR].append(charge)
    return rated, blocks


def _held(
    showback: Showback, uses: Uses, rated: Mapping[_Hour, Sequence[Charge]]
) -> tuple[Mapping[Key, Decimal], Sequence[Difference]]:
    """Return the bill's cost of each line, and the differences of each resource and hour."""
    spent: dict[Key, Decimal] = defaultdict(Decimal)
    differences: list[Difference] = []
    for resource, hour in sorted({*rated, *uses.hours}):
        charges, use = rated.get((resource, hour), ()), uses.hours.get((resource, hour))
        usd = sum((charge.usd for charge in charges), Decimal())
        # An instance starts minutes before its node joins, and ends after it.
        own = charges[0].reservation if charges else ""
        beside = ((own, hour), (resource, hour + _HOUR), (resource, hour - _HOUR))
        weights = use or next(filter(None, map(uses.hours.get, beside)), None)
        if weights is None:
            differences.append(Difference(f"in the bill, not in the ledger: {resource}", usd, True))
            continue
        if not charges:
            gap = all(key.reason == NOT_MEASURED for key in weights)
            name = NOT_MEASURED if gap else f"in the ledger, not in the bill: {resource}"
            differences.append(Difference(name, -_estimate(showback, weights), not gap))
            continue
        for key, weight in weights.items():
            spent[key] += usd * Decimal(weight) / Decimal(sum(weights.values()))
        differences += _hour_differences(showback, resource, charges, use or {}, weights)
    return spent, differences


def _estimate(showback: Showback, use: Mapping[Key, float]) -> Decimal:
    return sum(
        (
            Decimal(str(price.price)) * Decimal(weight) / Decimal(showback.sizes[key.type] * _HOUR)
            for key, weight in use.items()
            if (price := showback.rates.get((key.purchase, key.type))) is not None
        ),
        Decimal(),
    )


def _hour_differences(
    showback: Showback,
    resource: str,
    charges: Sequence[Charge],
    use: Mapping[Key, float],
    weights: Mapping[Key, float],
) -> Iterator[Difference]:
    """Yield the differences of one resource in one hour: they add up to bill less estimate."""
    key = next(iter(weights))
    usd = sum((each.usd for each in charges), Decimal())
    hours = sum((each.hours for each in charges), Decimal())
    price = showback.rates.get((key.purchase, key.type))
    if price is None:
        yield Difference(f"without a price in the ledger: {key.type}, {key.purchase}", usd, False)
        return
    rate = Decimal(str(price.price))
    if resource.startswith("i-") and hours > 1:
        twice = usd * (hours - 1) / hours
        yield Difference(f"billed twice: {resource}", twice, True)
        usd, hours = usd - twice, Decimal(1)
    plain = key.purchase != "spot" and all(each.item == "Usage" for each in charges)
    name = "rate" if plain else "rate of Spot, Savings Plans or Reserved Instances"
    yield Difference(f"{name}: {key.type}, {key.purchase}", usd - rate * hours, plain)
    measured = Decimal(sum(use.values())) / Decimal(showback.sizes[key.type] * _HOUR)
    late = measured - hours > Decimal(2 * showback.every) / _HOUR and resource.startswith("i-")
    name = (
        f"in the ledger, not in the bill: {resource}" if late else "time between two measurements"
    )
    yield Difference(name, rate * hours - _estimate(showback, use), late)


def _billed(lines: Iterable[Line], spent: Mapping[Key, Decimal]) -> Sequence[Line]:
    """Return the lines, those with a rate at the bill's amounts."""
    weights = {key: int(usd * _EXACT) for key, usd in spent.items() if usd > 0}
    # The bill has ten places; shares of it have more, and may fall below half a cent.
    cents = shared(round(round(sum(spent.values()), 10) * 100), weights)
    return [
        line
        if line.key.purchase in PAID_BEFORE
        else replace(line, cents=cents.get(line.key, 0), basis="bill")
        for line in lines
    ]


# --- Fees of blocks -------------------------------------------------------------------------------


def _fees(
    showback: Showback, charges: Sequence[Charge], months: Collection[str]
) -> tuple[Sequence[Difference], list[str], Sequence[Charge]]:
    """Return differences of fees, sentences on matches, and lines without a match."""
    left, differences, remarks = [*charges], list[Difference](), list[str]()
    for bought in showback.bought:
        name = bought.key.reservation
        for window in bought.windows:
            if window.cents is None or not (possible := _months(window) & {*months}):
                continue
            charge, way = _match(name, bought.key.type, window, left)
            fee = Decimal(window.cents) / 100
            if charge is not None:
                left.remove(charge)
                remarks.append(f"fee of {name}: matched by {way}")
                exact = round(charge.usd * 100) == window.cents
                label = "rounding" if exact else f"another fee than the ledger's: {name}"
                differences.append(Difference(label, charge.usd - fee, not exact))
            elif possible == _months(window):
                differences.append(
                    Difference(f"in the ledger, not in the bill: fee of {name}", -fee, True)
                )
            else:
                lacking = ", ".join(sorted(_months(window) - possible))
                remarks.append(f"fee of {name}: not in these bills; it may stand in {lacking}")
    known = {each.key.reservation for each in showback.bought}
    for charge in left:
        name = charge.reservation or f"{charge.type} on {day_of(charge.start)}"
        word = "billed twice" if charge.reservation in known else "in the bill, not in the ledger"
        word = "refund" if charge.usd < 0 else word
        differences.append(Difference(f"{word}: {name}", charge.usd, True))
    return differences, remarks, left


def _match(
    name: str, kind: str, window: Window, charges: Iterable[Charge]
) -> tuple[Charge | None, str]:
    """Return the line of a window's fee, and the way it was recognized."""
    paid = [charge for charge in charges if charge.usd > 0]
    own = [charge for charge in paid if charge.reservation == name]
    others = [
        charge
        for charge in paid
        if not charge.reservation
        and charge.type == kind
        and window.starts - _AHEAD <= charge.start < window.starts + DAY
    ]
    for lines, way in ((own, "its ARN"), (others, "usage type, day and amount")):
        for charge in lines:
            if round(charge.usd * 100) == window.cents:
                return charge, way
    return (own[0], "its ARN") if own else (None, "")


def _months(window: Window) -> set[str]:
    """Return the months in whose bill a fee may stand: from its purchase to its start."""
    return {day_of(at)[:7] for at in range(window.starts, window.starts - _AHEAD - 1, -DAY)}
