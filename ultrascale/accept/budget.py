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
    """
    pools = shards_of(plan.all_pools)

    def priced(cost: Cost) -> Cost:
        pool = pools[cost.pool][0]
        price = price_as_bought(pool, plan.region, prices).value
        if price is None:
            price = on_demand_price(pool, plan.region, prices).value
        return replace(cost, usd=price and cost.nodes * cost.minutes / 60 * price)

    return [replace(check, costs=[*map(priced, check.costs)]) for check in checks]


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
        left = f"; a stop leaves {check.leaves}" if check.leaves else ""
        yield f"{check.level}: {check.name} {check.subject}: {nodes}, ${usd_of([check]):,.2f}{left}"
    if holding:
        yield f"${usd_of(holding):,.2f} in all, beside what the cluster costs anyway"


def refuse_beyond(checks: Sequence[Check], budget: float | None) -> None:
    """Refuse checks that cost more than the budget, or that have no known price.

    Raises:
        QuestionError: They are refused.
    """
    costs = [cost for check in checks for cost in check.costs]
    usd = usd_of(checks)
    if unknown := sorted({cost.pool for cost in costs if cost.usd is None}):
        wrong = f"no price of nodes of {', '.join(unknown)} is known"
        raise QuestionError([f"--prices: {wrong}; name a file that has one"])
    if costs and budget is None:
        raise QuestionError([f"--budget: missing; the checks cost ${usd:,.2f}"])
    if budget is not None and usd > budget:
        cheapest = min(usd_of([check]) for check in checks if check.costs)
        todo = "choose fewer levels by --level, a pool by --pool, or a larger budget"
        if budget < cheapest:
            todo = f"the cheapest of them alone costs ${cheapest:,.2f}"
        raise QuestionError([f"--budget: the checks cost ${usd:,.2f}, not ${budget:,.2f}; {todo}"])


def in_time(checks: Sequence[Check], plan: ClusterPlan, at: datetime) -> Iterator[Check]:
    """Yield checks; one that would not end within its pools' windows says so, and holds no nodes.

    Args:
        checks: The checks, in the order in which they run.
        plan: The cluster.
        at: Start of the first one, in UTC.
    """
    for check in checks:
        ends = at + timedelta(minutes=sum(cost.minutes for cost in check.costs))
        closed = [cost.pool for cost in check.costs if not _is_open(plan, cost.pool, at, ends)]
        if closed:
            yield replace(check, costs=(), run=partial(_not_run, check, closed[0]))
        else:
            yield check
            at = ends


def _not_run(check: Check, pool: str, _: Run) -> Iterator[Finding]:
    why = f"it would not end within the window of pool {pool}"
    yield Finding(check=check.name, subject=check.subject, state="not run", evidence=why)


def _is_open(plan: ClusterPlan, pool: str, begins: datetime, ends: datetime) -> bool:
    windows = (each.window for each in plan.all_pools if each.pool == pool)
    return any(w is None or (w.starts <= begins and ends <= w.usable_until) for w in windows)
