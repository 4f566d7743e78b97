"""Advice for quotas that are too low."""

import math
from collections.abc import Iterator
from dataclasses import replace

from ultrascale.catalog import quotas
from ultrascale.plan.model import ClusterNeeds, ClusterPlan, Figure, QuotaNeed
from ultrascale.plan.needs.pools import address_usage, usage_beside_nodes
from ultrascale.plan.network.demand import single_addresses
from ultrascale.plan.network.vpc import node_prefixes


def advised(need: QuotaNeed, plan: ClusterPlan) -> QuotaNeed:
    """Return ``need`` with what is to be done about it."""
    value = need.needed.value
    if need.state == "ask" and value is not None:
        doubt = f"; {quotas.BLOCKS_DOUBT}" if need.needed.unit == quotas.BLOCKS else ""
        return replace(need, advice=f"request {math.ceil(value):,} in Service Quotas{doubt}")
    if need.state == "unknown":
        return replace(need, advice="look its value up in Service Quotas")
    if need.state not in ("beyond", "agreed") or need.most is None or value is None:
        return need
    fixed = _fixed(need, plan)
    clusters = _clusters(need, value, need.most, fixed)
    if need.state == "agreed" or clusters.value is None:
        return replace(need, clusters=clusters)
    instead = f"divide the nodes among {clusters.value:,.0f} clusters, each in a VPC of its own"
    advice = f"{_asked(need, value)}{_fewer(need, need.most, plan)}{instead}"
    return replace(need, clusters=clusters, advice=advice)


def _asked(need: QuotaNeed, value: float) -> str:
    """Return what to ask of AWS, where it raises the quota at all."""
    if need.most == need.default:
        return "it cannot be raised: "
    asked = f"ask your account team for {math.ceil(value):,} in writing"
    # The one that a cluster file has a key for.
    stated = need.code == quotas.NETWORK_ADDRESS_USAGE.code
    return f"{asked}{' and say so in agreed_limits' if stated else ''}, or "


def _fixed(need: QuotaNeed, plan: ClusterPlan) -> int:
    """Return what each further cluster needs of the quota before its first node."""
    return usage_beside_nodes(plan) if need.code == quotas.NETWORK_ADDRESS_USAGE.code else 0


def _clusters(need: QuotaNeed, value: float, most: int, fixed: int) -> Figure:
    known = most > fixed
    return Figure(
        id=f"{need.needed.id}.clusters",
        value=math.ceil((value - fixed) / (most - fixed)) if known else None,
        unit="clusters",
        formula=f"({value:,.0f} - {fixed:,} of each cluster) / ({most:,} - {fixed:,}), rounded up",
        sources=need.needed.sources,
    )


def _fewer(need: QuotaNeed, most: int, plan: ClusterPlan) -> str:
    """Return what fewer network cards would do, where they are what the quota counts."""
    if need.code != quotas.NETWORK_ADDRESS_USAGE.code:
        return ""
    least = usage_beside_nodes(plan) + sum(
        pool.max_nodes
        * address_usage(
            1,
            node_prefixes(plan.network, pool),
            single_addresses(pool) - 1,
        )
        for pool in plan.all_pools
    )
    nodes = sum(pool.max_nodes for pool in plan.all_pools if pool.efa_interfaces)
    if least > most or not nodes:
        return ""
    cards = (most - least) // nodes
    if cards:
        return f"use instance types of at most {cards} EFA interfaces, or "
    return (
        f"write efa: none for every pool ({least:,} with one network interface each), which leaves "
        "jobs of several nodes to TCP, or "
    )


def beyond_limits(needs: ClusterNeeds) -> Iterator[str]:
    """Yield a line for each need above the limit that AWS publishes, with advice."""
    for need in needs.quotas:
        if need.state == "beyond":
            agreed = f", of which {need.agreed.value:,} are agreed" if need.agreed else ""
            name = need.name if need.code is None else f"{need.name} ({need.code})"
            yield (
                f"{name}: {round(need.needed.value or 0):,} needed{agreed}, and AWS publishes "
                f"{need.most or 0:,} as the most that it grants; {need.advice}"
            )
