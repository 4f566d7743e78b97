"""Every way to have the nodes of a question, legal or not, with its cost as far as it is known."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from ultrascale import catalog
from ultrascale.catalog import matrix, purchasing
from ultrascale.catalog.prices import Price, PriceList
from ultrascale.catalog.provisioners import PROVISIONERS
from ultrascale.plan.advice.model import Candidate, Cost, Question, Reason
from ultrascale.plan.advice.times import commitment, may_be_dated
from ultrascale.plan.needs.pools import HOURS_OF_A_MONTH, RATES, listed_prices

LAUNCHED: tuple[matrix.PurchaseOption, ...] = ("on-demand", "spot")
"""Options without a reservation: the pool has several types and zones, and nothing is bought ahead.
"""


def candidates(question: Question) -> Iterator[Candidate]:
    """Yield all candidates: held capacity, then each option, provisioner and shape of a pool."""
    for held in question.held:
        for provisioner in PROVISIONERS:
            yield Candidate(
                option=held.option,
                provisioner=provisioner,
                instance_types=(held.instance_type,),
                zones=(held.zone,),
                held=held,
            )
    for option in matrix.PURCHASE_OPTIONS:
        for types, zones in _shapes(question, option):
            for provisioner in PROVISIONERS:
                yield Candidate(
                    option=option, provisioner=provisioner, instance_types=types, zones=zones
                )


def is_spread(candidate: Candidate) -> bool:
    """Return whether nodes of the pool may differ in type or zone."""
    return len(candidate.instance_types) > 1 or len(candidate.zones) > 1


def _shapes(
    question: Question, option: matrix.PurchaseOption
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield types and zones of a pool: one of each, or all suitable ones.

    A reservation has one type in one zone. The offer alone names the zone: the first of the
    question stands in for it.
    """
    for name in question.instance_types:
        yield (name,), question.zones[:1]
    if option in LAUNCHED:
        for types in _alike(question.instance_types):
            if len(types) > 1 or len(question.zones) > 1:
                yield types, question.zones


def _alike(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the types that may share a pool, each group of one kind of hardware."""
    groups: dict[tuple[str | None, str], list[str]] = {}
    for name in names:
        spec = catalog.lookup(name)
        if matrix.can_be_planned(spec):
            kind = spec.accelerator.kind if spec.accelerator else None
            groups.setdefault((kind, spec.architecture), []).append(name)
    for group in groups.values():
        yield tuple(group)


# --- Cost of a candidate, as far as it is known offline -------------------------------------------


_HOURS_OF_A_DAY = 24


def cost_of(question: Question, candidate: Candidate, nodes: int, price_list: PriceList) -> Cost:
    """Return the cost of ``nodes`` nodes of ``candidate``: in all, or in a month without an end.

    Args:
        question: The workload.
        candidate: A way to buy it.
        nodes: Nodes.
        price_list: Prices, with those of Spot or of HyperPod where it has one.
    """
    period, hours = _period(question)
    if candidate.held is not None and candidate.option != "odcr":
        return Cost(low=0, high=0, period=period, formula="paid for already")
    if candidate.option in ("capacity-block", "training-plan"):
        return _cost_of_offer(candidate, period)
    region = question.region
    taken = _prices(candidate, region, price_list)
    if isinstance(taken, str):
        return Cost(low=None, high=None, period=period, formula=taken)
    used, kept = question.utilisation, ""
    if candidate.option == "odcr":
        used, kept = 1.0, ", used or not"
        if candidate.held is None and may_be_dated(question, candidate, nodes):
            least_hours = commitment(question) / timedelta(hours=1)
            if hours < least_hours:
                hours, kept = least_hours, ", the shortest term with a start date, used or not"
    lowest, most = (pick(price.price for price in taken) for pick in (min, max))
    low, high = (nodes * hours * used * price for price in (lowest, most))
    range_ = f"${lowest:g}" if lowest == most else f"${lowest:g} to ${most:g}"
    day, service = min(price.valid_on for price in taken), taken[0].service
    text = f"{nodes:,} nodes x {hours:g} hours x {range_} {RATES[service]} in {region} on {day}"
    text += f" x {used:.0%} of the time" if used < 1 else ""
    text += kept
    if candidate.is_auto_mode:
        text += "; without the fee of EKS Auto Mode, which comes on top"
    if candidate.option == "spot" and service != "ec2-spot":
        low *= 1 - purchasing.SPOT_LARGEST_DISCOUNT
        text += f"; Spot is up to {purchasing.SPOT_LARGEST_DISCOUNT:.0%} below that"
    return Cost(low=low, high=high, period=period, formula=text, sources=_pages(taken))


def _prices(candidate: Candidate, region: str, price_list: PriceList) -> Sequence[Price] | str:
    """Return the prices of a candidate's types, or the reason where one is missing."""
    facts = candidate.facts
    prefix = "" if facts.in_account else facts.type_prefix
    names = [f"{prefix}{name}" for name in candidate.instance_types]
    listed = listed_prices(names, candidate.option, facts.seller, region, price_list)
    if listed.prices:
        return listed.prices
    return (
        f"no {RATES[listed.service]} price of {', '.join(listed.missing)} in {region} is known; "
        f"get it with: ultrascale prices {region} -o prices.csv, and add --prices prices.csv"
    )


def _pages(taken: Sequence[Price]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(price.source for price in taken))


def money_warnings(question: Question, cost: Cost) -> Iterator[Reason]:
    """Yield notes on ``cost`` beside a budget and a contract."""
    budget = question.budget_usd
    if budget is not None and cost.high is None:
        text = f"whether the budget of ${budget:,.0f} is enough is not known: {cost.formula}"
        yield Reason(code="cost", text=text)
    elif budget is not None and cost.high is not None and cost.high > budget:
        text = (
            f"it may cost ${cost.high:,.0f} {cost.period}, more than the budget of ${budget:,.0f}"
        )
        yield Reason(code="cost", text=text)
    if question.commitment != "none" and question.days is None:
        share = 1 - purchasing.SAVINGS_PLAN_LARGEST_DISCOUNT
        text = (
            "a Savings Plan pays where the nodes work more of the time than 1 - its discount: "
            f"never below {share:.0%}, and for accelerated types, whose discounts are lower, from "
            "more on; ask for the rates"
        )
        yield Reason(code="cost", text=text)


def _period(question: Question) -> tuple[str, float]:
    if question.days is None:
        return "a month", HOURS_OF_A_MONTH
    return "in all", question.days * _HOURS_OF_A_DAY


def _cost_of_offer(candidate: Candidate, period: str) -> Cost:
    text = "paid up front, at a price that only AWS's offer states: ask with `ultrascale capacity`"
    (name,) = candidate.instance_types
    seen = purchasing.SEEN_RATIOS.get(name) if candidate.option == "capacity-block" else None
    if seen is None:
        return Cost(low=None, high=None, period=period, formula=text)
    text += f"; seen in {seen.seen}: {seen.ratio:g} of On-Demand ({seen.quality})"
    return Cost(low=None, high=None, period=period, formula=text, sources=(seen.source,))
