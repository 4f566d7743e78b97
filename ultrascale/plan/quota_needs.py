"""Which service quotas a cluster needs, and whether their defaults hold it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ultrascale import catalog
from ultrascale.catalog import quotas
from ultrascale.plan import capacity
from ultrascale.plan.model import AgreedLimit, ClusterPlan, Figure, NeedState, PoolPlan, QuotaNeed

# Sizes of terms, by quota code and pool.
_Terms = dict[str, dict[str, tuple[float, str]]]
_GIB_OF_A_TIB = 1024
_HYPERPOD_PAGE = (
    "https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-prerequisites.html"
)


def plan_quotas(plan: ClusterPlan, totals: Mapping[str, Figure]) -> tuple[QuotaNeed, ...]:
    """Return the quotas that ``plan`` needs something of.

    Args:
        plan: The cluster.
        totals: Sums over its pools.
    """
    found = (
        *_ec2_quotas(plan),
        *_hyperpod_quotas(plan),
        *_group_quotas(plan),
        _of_total(quotas.NETWORK_INTERFACES, totals["network_interfaces"]),
        _of_total(quotas.NETWORK_ADDRESS_USAGE, totals["address_usage"]),
        _ranges(plan),
        _disks(plan),
    )
    agreed = {limit.code: limit for limit in plan.agreed_limits}
    return tuple(
        _agreed(need, agreed[need.code]) if need.code in agreed else need for need in found
    )


def _ec2_quotas(plan: ClusterPlan) -> Iterator[QuotaNeed]:
    """Yield vCPUs by family, and Capacity Blocks. HyperPod's instances are of AWS's account."""
    terms: _Terms = {}
    unknown: dict[str, str] = {}
    for pool in plan.all_pools:
        if pool.provisioner == capacity.HYPERPOD:
            continue
        for name in pool.instance_types:
            for fact, count in _quota_facts(pool):
                if count and (missing := _add(terms, pool, name, fact, count)):
                    unknown[name] = missing
    for code, parts in sorted(terms.items()):
        formula = " + ".join(words for _, words in parts.values())
        yield _need(quotas.QUOTAS[code], sum(value for value, _ in parts.values()), formula)
    for name, why in sorted(unknown.items()):
        figure = Figure(id=f"quota.{name}", value=None, unit="", formula=why)
        yield _unknown(None, f"quota of {name}", figure)


def _quota_facts(pool: PoolPlan) -> tuple[tuple[str, int], ...]:
    """Return the facts that name the quotas of a pool, each with the nodes that count there."""
    if pool.purchase == "capacity-block":
        # Blocks count against no quota of vCPUs.
        # Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-blocks.html
        return (("capacity_block_quota_code", 1),)
    if pool.purchase == "spot":
        return (
            ("spot_quota_code", pool.max_nodes),
            ("on_demand_quota_code", pool.fallback_nodes),
        )
    # Reservations count against the quota of On-Demand instances, used or not.
    return (("on_demand_quota_code", pool.max_nodes),)


def _add(terms: _Terms, pool: PoolPlan, name: str, fact: str, count: int) -> str | None:
    """Add what a pool takes of a type's quota, the most among types; return what is unknown."""
    spec = catalog.lookup(name)
    needed = (fact,) if fact == "capacity_block_quota_code" else (fact, "quota_vcpus")
    if not all(spec.knows(each) for each in needed):
        return f"no source states which quota {name} counts against"
    code: str = getattr(spec, fact)
    if fact == "capacity_block_quota_code":
        value, words = count, f"{count} block of {pool.name}"
    else:
        value = count * spec.quota_vcpus
        words = f"{pool.name}: {count:,} nodes x {spec.quota_vcpus} vCPUs of {name}"
    parts = terms.setdefault(code, {})
    parts[pool.name] = max(parts.get(pool.name, (0, "")), (value, words))
    return None


def _hyperpod_quotas(plan: ClusterPlan) -> Iterator[QuotaNeed]:
    """Yield what is asked of SageMaker: instances of each type, by quotas without a common code."""
    counts: dict[str, list[PoolPlan]] = {}
    for pool in plan.all_pools:
        if pool.provisioner == capacity.HYPERPOD:
            counts.setdefault(pool.node_types[0], []).append(pool)
    for name, pools in sorted(counts.items()):
        figure = Figure(
            id=f"quota.{name}",
            value=sum(pool.max_nodes for pool in pools),
            unit="instances",
            formula=" + ".join(f"{pool.max_nodes:,} nodes of {pool.name}" for pool in pools),
            sources=(_HYPERPOD_PAGE,),
        )
        yield _unknown(None, f"{name} for cluster usage", figure)


def _group_quotas(plan: ClusterPlan) -> Iterator[QuotaNeed]:
    groups = [pool for pool in plan.all_pools if pool.provisioner == "managed-node-group"]
    if groups:
        largest = max(groups, key=lambda pool: pool.max_nodes)
        yield _need(quotas.NODE_GROUPS, len(groups), ", ".join(pool.name for pool in groups))
        formula = f"{largest.max_nodes:,} nodes of {largest.name}"
        yield _need(quotas.NODES_OF_A_GROUP, largest.max_nodes, formula)


def _ranges(plan: ClusterPlan) -> QuotaNeed:
    secondary = len(plan.network.secondary_cidrs)
    return _need(quotas.IPV4_RANGES, 1 + secondary, f"the VPC's own + {secondary} for pods")


def _disks(plan: ClusterPlan) -> QuotaNeed:
    """Return the root disks of all nodes of the account."""
    own = [pool for pool in plan.all_pools if pool.provisioner != capacity.HYPERPOD]
    gib = sum(pool.max_nodes * pool.root_disk.size_gib for pool in own)
    formula = " + ".join(
        f"{pool.max_nodes:,} nodes of {pool.name} x {pool.root_disk.size_gib} GiB" for pool in own
    )
    return _need(quotas.GP3_STORAGE, gib / _GIB_OF_A_TIB, f"({formula}) / {_GIB_OF_A_TIB}")


def _of_total(quota: quotas.Quota, total: Figure) -> QuotaNeed:
    return _need(quota, total.value or 0, total.formula, total.sources)


def _need(
    quota: quotas.Quota, value: float, formula: str, sources: tuple[str, ...] = ()
) -> QuotaNeed:
    return QuotaNeed(
        code=quota.code,
        name=quota.name,
        needed=Figure(
            id=f"quota.{quota.code}",
            value=value,
            unit=quota.unit,
            formula=formula,
            sources=tuple(dict.fromkeys((*sources, quota.source))),
        ),
        default=quota.default,
        most=quota.most,
        agreed=None,
        state=_state(value, quota),
    )


def _agreed(need: QuotaNeed, limit: AgreedLimit) -> QuotaNeed:
    value = need.needed.value
    held = need.state in ("ask", "beyond") and value is not None and value <= limit.value
    return replace(need, agreed=limit, state="agreed" if held else need.state)


def _state(value: float, quota: quotas.Quota) -> NeedState:
    if quota.most is not None and value > quota.most:
        return "beyond"
    return "ask" if value > quota.default else "within"


def _unknown(code: str | None, name: str, needed: Figure) -> QuotaNeed:
    return QuotaNeed(
        code=code, name=name, needed=needed, default=None, most=None, agreed=None, state="unknown"
    )
