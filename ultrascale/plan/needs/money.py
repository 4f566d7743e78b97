"""Cost of a cluster as the file buys it, beside the same fleet On-Demand."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from msgspec.structs import replace

from ultrascale.catalog.prices import Price, PriceList
from ultrascale.plan.model import (
    ClusterNeeds,
    ClusterPlan,
    ControlPlanePlan,
    Figure,
    Figures,
    LoadNeed,
    MoneyItem,
    MoneyNeeds,
    PoolMoney,
    PoolNeeds,
    PoolPlan,
)
from ultrascale.plan.needs.pools import (
    PAID_BEFORE,
    PerNode,
    is_capped,
    on_demand_price,
    price_as_bought,
    prices_as_bought,
    shards_of,
    times,
    total,
    unpriced_types,
)
from ultrascale.plan.needs.standing import plan_items
from ultrascale.plan.needs.tables import Row, figure_at

_AT = "money"
_HALF = 2
_PER_NODE_HOUR = "USD per node-hour"
_FALLBACK = "fallback_usd_per_hour"
_EKS_PRICES = "https://aws.amazon.com/eks/pricing/"
_BLOCK_PRICES = "https://aws.amazon.com/ec2/capacityblocks/pricing/"
_HOLDS_WHEN = {
    "on-demand": "it is the On-Demand rate",
    "odcr": "never: it is paid used or not; half used, each hour of use costs twice as much",
    "spot": "its share of the On-Demand price is below that of its hours that are not lost",
}
_ASSUMPTIONS = (
    "every pool runs all of its nodes for all of the time compared",
    "the comparison is of nodes alone; what stands beside them is in usd_per_hour",
    "usage, such as traffic and stored bytes, is in no sum of an hour",
    "where Spot falls back to On-Demand, the nodes of the fallback run too, at the On-Demand rate",
    "no discount is assumed: prices of Spot, Capacity Blocks and training plans are AWS's offers "
    "of the day; no Savings Plan, no private price",
)


def plan_money(
    plan: ClusterPlan,
    pools: Sequence[PoolNeeds],
    load: Sequence[LoadNeed],
    price_list: PriceList,
    at: datetime | None,
) -> MoneyNeeds:
    """Return the cost of ``plan``, and the prices at which it is half of On-Demand's.

    Args:
        plan: The cluster.
        pools: Needs of its pools, in the same order.
        load: Load of its control plane, for the data of its logs.
        price_list: Prices.
        at: The time to pay for, in UTC; None takes one of Kubernetes' standard support.
    """
    shards = shards_of(plan.all_pools)
    compared = tuple(
        _pool_money(shards[needs.pool], needs.figures["nodes"], plan.region, price_list)
        for needs in pools
    )
    items = plan_items(plan, load, price_list, at)
    own = {
        figure.id.removeprefix(f"{_AT}."): figure
        for figure in _control_plane(plan.region, plan.control_plane, price_list)
    }
    days = [price.valid_on for price in _prices_of(plan.region, plan.all_pools, items, price_list)]
    return MoneyNeeds(
        items=items,
        unpriced=tuple(item.name for item in items if item.unit_price is None),
        unpriced_types={
            needs.pool: unpriced_types(shards[needs.pool][0], plan.region, price_list)
            for needs in pools
            if needs.figures["usd_per_hour"].value is None
        },
        oldest=min(days, default=None),
        newest=max(days, default=None),
        spot_at_on_demand=tuple(
            name
            for name, (pool, *_) in shards.items()
            if is_capped(pool, price_as_bought(pool, plan.region, price_list))
        ),
        pools=compared,
        figures={**own, **_sums(pools, items), **_fleet(compared)},
        half=_half(_fleet(compared)),
        assumptions=_ASSUMPTIONS,
    )


def _sums(pools: Sequence[PoolNeeds], items: Sequence[MoneyItem]) -> Figures:
    standing = {item.name: item.usd_per_hour for item in items if item.kind == "baseline"}
    nodes = {needs.pool: needs.figures["usd_per_hour"] for needs in pools}
    used = {
        item.name: item.usd_per_month
        for item in items
        if item.kind == "usage" and item.quantity is not None
    }
    beside = total(f"{_AT}.standing_usd_per_hour", standing)
    hourly = total(f"{_AT}.usd_per_hour", {**nodes, **standing})
    months = {needs.pool: needs.figures["usd_per_month"] for needs in pools}
    months |= {item.name: item.usd_per_month for item in items if item.kind == "baseline"}
    figures = {
        "standing_usd_per_hour": beside,
        "usd_per_hour": hourly,
        "usd_per_month": total(f"{_AT}.usd_per_month", months),
    }
    if used:
        figures["usage_usd_per_month"] = total(f"{_AT}.usage_usd_per_month", used)
    return figures


def _prices_of(
    region: str, pools: Sequence[PoolPlan], items: Sequence[MoneyItem], price_list: PriceList
) -> Iterator[Price]:
    for pool in pools:
        yield from prices_as_bought(pool, region, price_list)
    for item in items:
        price = price_list.find(region, item.service, item.item)
        if price is not None and item.kind == "baseline":
            yield price


def _pool_money(
    shards: Sequence[PoolPlan], nodes: Figure, region: str, price_list: PriceList
) -> PoolMoney:
    pool = shards[0]
    at = f"{_AT}.{pool.pool}"
    price = on_demand_price(pool, region, price_list)
    if not pool.facts.in_account and price.value is not None:
        words = f"{price.words}, as nodes of EC2"
        price = PerNode(value=price.value, words=words, sources=price.sources)
    hourly = times(f"{at}.on_demand_usd_per_hour", "USD per hour", nodes, price)
    figures = {"on_demand_usd_per_hour": hourly}
    holds_when = _HOLDS_WHEN.get(pool.purchase, "")
    if fallback := sum(shard.fallback_nodes for shard in shards):
        own = replace(nodes, value=fallback)
        figures[_FALLBACK] = times(f"{at}.{_FALLBACK}", "USD per hour", own, price)
        holds_when = f"{holds_when}; {fallback:,} of its nodes are On-Demand"
    if pool.purchase in PAID_BEFORE:
        figures |= {
            figure.id.removeprefix(f"{at}."): figure for figure in _break_even(at, pool, price)
        }
        holds_when = _offer_words(figures["break_even_usd_per_node_hour"])
    return PoolMoney(pool=pool.pool, purchase=pool.purchase, figures=figures, holds_when=holds_when)


def _break_even(at: str, pool: PoolPlan, price: PerNode) -> Iterator[Figure]:
    """Yield the prices of a reserved node-hour that equal On-Demand, and half of it.

    A block is paid to its end, and usable until its nodes are drained.
    """
    window = pool.window
    if window is None:
        return
    used = (window.usable_until - window.starts) / timedelta(hours=1)
    paid = (window.ends - window.starts) / timedelta(hours=1)
    value = None if price.value is None else price.value * used / paid
    words = price.words if value is None else f"{price.words} x {used:,.1f} usable / {paid:,.1f} h"
    for key, share, formula in (
        ("break_even_usd_per_node_hour", 1, words),
        ("half_usd_per_node_hour", _HALF, words if value is None else f"{words} / {_HALF}"),
    ):
        yield Figure(
            id=f"{at}.{key}",
            value=None if value is None else value / share,
            unit=_PER_NODE_HOUR,
            formula=formula,
            sources=(*price.sources, _BLOCK_PRICES) if value is not None else (),
        )


def _offer_words(break_even: Figure) -> str:
    if break_even.value is None:
        return "its offer is below the On-Demand price of its usable hours, unknown here"
    return f"its offer is below ${break_even.value:,.2f} for each reserved node-hour"


def _fleet(pools: Sequence[PoolMoney]) -> Figures:
    """Return the fleet's price On-Demand, the part without discount, and the ratio for half."""
    by_pool = {pool.pool: pool.figures["on_demand_usd_per_hour"] for pool in pools}
    whole = total(f"{_AT}.on_demand_usd_per_hour", by_pool)
    full = {
        pool.pool: pool.figures.get(_FALLBACK, by_pool[pool.pool])
        for pool in pools
        if pool.purchase in ("on-demand", "odcr") or _FALLBACK in pool.figures
    }
    none = Figure(
        id=f"{_AT}.at_on_demand_rates_usd_per_hour",
        value=0,
        unit="USD per hour",
        formula="no pool is bought at On-Demand rates",
    )
    kept = total(none.id, full) if full else none
    return {
        "on_demand_usd_per_hour": whole,
        "at_on_demand_rates_usd_per_hour": kept,
        "half_ratio": _half_ratio(whole, kept, by_pool),
    }


def _half_ratio(whole: Figure, kept: Figure, by_pool: Figures) -> Figure:
    """Return the share of On-Demand's price that the other pools may cost for half of the whole.

    A pool without a price counts on neither side.
    """
    rest = (whole.value or 0) - (kept.value or 0)
    if whole.value is None:
        reasons = dict.fromkeys(price.formula for price in by_pool.values())
        value, formula = None, "; ".join(reasons)
    elif rest:
        value = (whole.value / _HALF - (kept.value or 0)) / rest
        formula = (
            f"({whole.id} / {_HALF} - {kept.id}) / ({whole.id} - {kept.id}), 0 or less: no "
            "discount of Spot, blocks and plans brings the fleet to half"
        )
    else:
        value, formula = None, "no pool with a price is bought below On-Demand rates"
    return Figure(
        id=f"{_AT}.half_ratio",
        value=value,
        unit="of the On-Demand price",
        formula=formula,
        sources=whole.sources,
        without=whole.without,
    )


def _half(fleet: Figures) -> str:
    ratio = fleet["half_ratio"]
    if ratio.value is None:
        return (
            f"whether the file costs half of the same fleet On-Demand is unknown: {ratio.formula}"
        )
    left_out = f", without {', '.join(ratio.without)}, of no known price" if ratio.without else ""
    if ratio.value <= 0:
        return (
            "the file cannot cost half of the same fleet On-Demand: what it buys at On-Demand "
            f"rates is half of it or more{left_out}"
        )
    return (
        "with all nodes all of the time, the file costs half of the same fleet On-Demand where "
        "Spot, blocks and plans together "
        f"cost at most {100 * ratio.value:.0f} % of their On-Demand price{left_out}"
    )


def _control_plane(
    region: str, control_plane: ControlPlanePlan, price_list: PriceList
) -> Iterator[Figure]:
    """Yield the fees of EKS for the cluster, and for its tier on top of that."""
    tier = control_plane.tier
    for key, item, what in (
        ("cluster_usd_per_hour", "cluster", "a cluster"),
        ("tier_usd_per_hour", tier, f"{tier}, on top of the cluster"),
    ):
        price = price_list.find(region, "eks", item)
        free = item == "standard"
        formula = f"no price of EKS in {region} is known"
        if free:
            formula = "standard, which costs nothing beside the cluster"
        elif price is not None:
            formula = f"{what}, in {region} on {price.valid_on} by {_host(price.source)}"
        yield Figure(
            id=f"{_AT}.{key}",
            value=0 if free else price.price if price is not None else None,
            unit="USD per hour",
            formula=formula,
            sources=() if price is None else (price.source, _EKS_PRICES),
        )


def _host(source: str) -> str:
    """Return who states a price: the host of a page, or the user's own words."""
    return urlsplit(source).hostname or source


def money_rows(needs: ClusterNeeds) -> Iterator[Row]:
    """Yield the price of each pool On-Demand and as the file buys it, and the sum."""
    for index, (money, pool) in enumerate(zip(needs.money.pools, needs.pools, strict=True)):
        price = pool.figures["usd_per_hour"]
        bound = "at most " if money.purchase == "spot" and price.value is not None else ""
        own = figure_at(f"pools.{index}.figures.usd_per_hour", price)
        yield Row(f"{_AT}.pools.{index}", {"bought": (bound, own)})
    yield Row(_AT, {"pool": "total"})
