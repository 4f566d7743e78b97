"""Money of an acceptance: the price of its checks, and those that have no time left."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial

from msgspec.structs import replace

from ultrascale.accept.model import Check, Cost, Run
from ultrascale.catalog.prices import PriceList
from ultrascale.errors import QuestionError
from ultrascale.findings import Finding
from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.needs.pools import on_demand_price, price_as_bought, shards_of


def with_prices(checks: Sequence[Check], plan: ClusterPlan, prices: PriceList) -> Sequence[Check]:
    """Return checks with the prices of the nodes that they hold.

    A node that is paid up front, at a price that no list states, counts at its On-Demand price.

    Args:
        checks: The checks.
        plan: The cluster.
        prices: Prices of node-hours.
    """
    hourly: dict[str, float | None] = {}
    for name, (pool, *_) in shards_of(plan.all_pools).items():
        price = price_as_bought(pool, plan.region, prices).value
        if price is None:
            price = on_demand_price(pool, plan.region, prices).value
        hourly[name] = price

    def priced(cost: Cost) -> Cost:
        price = hourly[cost.pool]
        usd = None if price is None else cost.nodes * cost.minutes / 60 * price
        return replace(cost, usd=usd)

    return [replace(check, costs=[priced(cost) for cost in check.costs]) for check in checks]


def usd_of(checks: Sequence[Check]) -> float:
    """Return the sum of the known prices of ``checks``."""
    return sum(cost.usd or 0.0 for check in checks for cost in check.costs)


def cost_lines(checks: Sequence[Check]) -> Iterator[str]:
    """Yield a line for each check that holds nodes, and one of their sum."""
    holding = [check for check in checks if check.costs]
    for check in holding:
        nodes = ", ".join(
            f"{cost.nodes} of {cost.pool} for at most {cost.minutes:g} minutes"
            for cost in check.costs
        )
        unknown = any(cost.usd is None for cost in check.costs)
        usd = "no known price" if unknown else f"${usd_of([check]):,.2f}"
        left = f"; a stop leaves {check.leaves}" if check.leaves else ""
        yield f"{check.level}: {check.name} {check.subject}: {nodes}, {usd}{left}"
    if holding:
        yield f"${usd_of(holding):,.2f} in all, beside what the cluster costs anyway"


def refuse_beyond(checks: Sequence[Check], budget: float | None) -> None:
    """Refuse checks that cost more than the budget, or that have no known price.

    Args:
        checks: The checks, with prices.
        budget: The budget in US dollars; None where the user names none.

    Raises:
        QuestionError: They are refused.
    """
    holding = [check for check in checks if check.costs]
    if not holding:
        return
    unknown = {cost.pool: None for check in holding for cost in check.costs if cost.usd is None}
    if unknown:
        wrong = f"no price of nodes of {', '.join(unknown)} is known"
        raise QuestionError([f"--prices: {wrong}; name a file that has one"])
    usd = usd_of(holding)
    if budget is None:
        raise QuestionError([f"--budget: missing; the checks cost ${usd:,.2f}"])
    if usd > budget:
        cheapest = min(usd_of([check]) for check in holding)
        todo = "choose fewer levels by --level, a pool by --pool, or a larger budget"
        if budget < cheapest:
            todo = f"the cheapest of them alone costs ${cheapest:,.2f}; give more, or none"
        raise QuestionError(
            [f"--budget: the checks cost ${usd:,.2f}, more than ${budget:,.2f}; {todo}"]
        )


def in_time(checks: Sequence[Check], plan: ClusterPlan, at: datetime) -> Sequence[Check]:
    """Return checks, without the nodes of those that do not end within the windows of their pools.

    These say why they are not run.

    Args:
        checks: The checks, in the order in which they run.
        plan: The cluster.
        at: Start of the first one, in UTC.
    """
    timed: list[Check] = []
    for check in checks:
        ends = at + timedelta(minutes=sum(cost.minutes for cost in check.costs))
        if reason := _closed(check, plan, at, ends):
            timed.append(replace(check, costs=(), run=partial(_not_run, check, reason)))
        else:
            timed.append(check)
            at = ends
    return timed


def _not_run(check: Check, reason: str, run: Run) -> Iterator[Finding]:
    del run
    yield Finding(check=check.name, subject=check.subject, state="not run", evidence=reason)


def _closed(check: Check, plan: ClusterPlan, begins: datetime, ends: datetime) -> str:
    """Return why a pool of a check has no nodes for all of its time; empty if it may have them."""
    for cost in check.costs:
        windows = [pool.window for pool in plan.all_pools if pool.pool == cost.pool]
        stated = [window for window in windows if window is not None]
        if len(stated) < len(windows):
            continue
        if not any(window.starts <= begins and ends <= window.usable_until for window in stated):
            spans = " and ".join(
                f"{window.starts:%Y-%m-%d %H:%M} to {window.usable_until:%Y-%m-%d %H:%M} UTC"
                for window in stated
            )
            return f"nodes of {cost.pool} are there from {spans}, which the check exceeds"
    return ""
