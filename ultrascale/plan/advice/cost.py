"""Cost of a candidate, as far as it is known offline."""

from collections.abc import Iterator
from datetime import timedelta

from ultrascale.catalog import prices, purchasing
from ultrascale.plan.advice.model import Candidate, Cost, Question, Reason
from ultrascale.plan.advice.times import commitment, may_be_dated
from ultrascale.plan.needs.pools import HOURS_OF_A_MONTH

_HOURS_OF_A_DAY = 24


def cost_of(question: Question, candidate: Candidate, nodes: int) -> Cost:
    """Return what ``nodes`` nodes of ``candidate`` cost: in all, or in a month without an end."""
    period, hours = _period(question)
    if candidate.held is not None and candidate.option != "odcr":
        return Cost(low=0, high=0, period=period, formula="paid for already")
    if candidate.option in ("capacity-block", "training-plan"):
        return _of_offer(candidate, period)
    if candidate.is_hyperpod:
        text = "the catalog holds no prices of SageMaker"
        return Cost(low=None, high=None, period=period, formula=text)
    types, region = candidate.instance_types, question.region
    known = prices.on_demand(region, types)
    missing = [name for name in types if name not in known]
    if missing:
        text = f"no On-Demand price of {', '.join(missing)} in {region} is known; look it up"
        return Cost(low=None, high=None, period=period, formula=text)
    used, kept = question.utilisation, ""
    if candidate.option == "odcr":
        used, kept = 1.0, ", used or not"
        if candidate.held is None and may_be_dated(question, candidate, nodes):
            least_hours = commitment(question) / timedelta(hours=1)
            if hours < least_hours:
                hours, kept = least_hours, ", the shortest term with a start date, used or not"
    least, most = min(known.values()), max(known.values())
    low, high = (nodes * hours * used * price for price in (least, most))
    each = f"${least:g}" if least == most else f"${least:g} to ${most:g}"
    text = f"{nodes:,} nodes x {hours:g} hours x {each} On-Demand in {region} on {prices.SEEN}"
    text += f" x {used:.0%} of the time" if used < 1 else ""
    text += kept
    if candidate.is_auto_mode:
        text += "; without the fee of EKS Auto Mode, which comes on top"
    if candidate.option == "spot":
        low *= 1 - purchasing.SPOT_LARGEST_DISCOUNT
        text += f"; Spot is up to {purchasing.SPOT_LARGEST_DISCOUNT:.0%} below that"
    return Cost(low=low, high=high, period=period, formula=text, sources=(prices.SOURCE,))


def money_warnings(question: Question, cost: Cost) -> Iterator[Reason]:
    """Yield what is to be said of ``cost`` beside a budget and a contract."""
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
        least = 1 - purchasing.SAVINGS_PLAN_LARGEST_DISCOUNT
        text = (
            "a Savings Plan pays where the nodes work more of the time than 1 - its discount: "
            f"never below {least:.0%}, and for accelerated types, whose discounts are lower, from "
            "more on; ask for the rates"
        )
        yield Reason(code="cost", text=text)


def _period(question: Question) -> tuple[str, float]:
    if question.days is None:
        return "a month", HOURS_OF_A_MONTH
    return "in all", question.days * _HOURS_OF_A_DAY


def _of_offer(candidate: Candidate, period: str) -> Cost:
    text = "paid up front, at a price that only AWS's offer states: ask with `ultrascale capacity`"
    (name,) = candidate.instance_types
    seen = purchasing.SEEN_RATIOS.get(name) if candidate.option == "capacity-block" else None
    if seen is None:
        return Cost(low=None, high=None, period=period, formula=text)
    text += f"; seen in {seen.seen}: {seen.ratio:g} of On-Demand ({seen.quality})"
    return Cost(low=None, high=None, period=period, formula=text, sources=(seen.source,))
