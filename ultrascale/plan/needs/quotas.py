"""Service quotas that a cluster needs, compared with their defaults, with advice."""

import math
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from ultrascale import catalog
from ultrascale.catalog import quotas
from ultrascale.plan.model import (
    AgreedLimit,
    ClusterNeeds,
    ClusterPlan,
    Figure,
    Figures,
    NeedState,
    NetworkPlan,
    PoolPlan,
    QuotaNeed,
    StoragePlan,
)
from ultrascale.plan.needs.launch import PULL_TARGET_SECONDS, image_requests
from ultrascale.plan.needs.pools import (
    address_usage,
    endpoint_interfaces,
    nat_gateways,
    usage_beside_nodes,
)
from ultrascale.plan.needs.tables import Row, Tone, share_of, state_line
from ultrascale.plan.network.vpc import node_draw

# Sizes of terms, by quota code and pool.
_Terms = dict[str, dict[str, tuple[float, str]]]
_GIB_OF_A_TIB = 1024
_STATES: Mapping[NeedState, tuple[Tone, str]] = {
    "within": ("good", "the default holds it"),
    "agreed": ("good", "agreed"),
    "ask": ("warn", "ask for more"),
    "beyond": ("bad", "more than AWS publishes"),
    "unknown": ("plain", "look it up"),
}
_CLUSTER_PAGE = (
    "https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-prerequisites.html"
)


def plan_quotas(plan: ClusterPlan, totals: Figures) -> tuple[QuotaNeed, ...]:
    """Return the quotas that ``plan`` uses.

    Args:
        plan: The cluster.
        totals: Sums over its pools.
    """
    needs = (
        *_ec2_quotas(plan.all_pools),
        *_sagemaker_quotas(plan.all_pools),
        *_eks_quotas(plan),
        *_vpc_quotas(plan.network, totals),
        _disks(plan.all_pools),
        *_lustre_quotas(plan.storage),
        *(
            _need(quotas.quota(use.quota), use.value, use.formula)
            for part in plan.parts
            for use in part.quota_uses
        ),
        *_image_quotas(totals["nodes"].value or 0),
    )
    agreed = {limit.code: limit for limit in plan.agreed_limits}
    held = (
        _with_agreed_limit(need, agreed[need.code]) if need.code in agreed else need
        for need in needs
    )
    return tuple(advised(need, plan.network, plan.all_pools) for need in held)


def _ec2_quotas(pools: Sequence[PoolPlan]) -> Iterator[QuotaNeed]:
    """Yield vCPUs by family, and Capacity Blocks. HyperPod's instances are in AWS's account."""
    terms: _Terms = {}
    unknown: dict[str, str] = {}
    for pool in pools:
        if not pool.facts.in_account:
            continue
        for name in pool.instance_types:
            for fact, count in _quota_facts(pool):
                if count and (missing := _add(terms, pool, name, fact, count)):
                    unknown[name] = missing
    for code, parts in sorted(terms.items()):
        formula = " + ".join(words for _, words in parts.values())
        yield _need(quotas.service_quota(code), sum(value for value, _ in parts.values()), formula)
    for name, why in sorted(unknown.items()):
        figure = Figure(id=f"quota.{name}", value=None, unit="", formula=why)
        yield _unknown("ec2", f"quota of {name}", figure)


def _quota_facts(pool: PoolPlan) -> tuple[tuple[str, int], ...]:
    """Return the facts that name the quotas of a pool, each with the nodes that count there."""
    if pool.purchase == "capacity-block":
        # Blocks count against no quota of vCPUs.
        # Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-blocks.html
        return (("capacity_block_quota_code", 1),)
    if pool.purchase == "spot":
        # The NodePools of Spot and of its fallback divide the nodes between them.
        return (
            ("spot_quota_code", pool.max_nodes - pool.fallback_nodes),
            ("on_demand_quota_code", pool.fallback_nodes),
        )
    # Reservations count against the quota of On-Demand instances, used or not.
    return (("on_demand_quota_code", pool.max_nodes),)


def _add(terms: _Terms, pool: PoolPlan, name: str, fact: str, count: int) -> str | None:
    """Add a pool's use of its types' quota, the most among types; return the unknown figure."""
    spec = catalog.lookup(name)
    needed = (fact,) if fact == "capacity_block_quota_code" else (fact, "quota_vcpus")
    if not all(spec.knows(fact) for fact in needed):
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


def _sagemaker_quotas(all_pools: Sequence[PoolPlan]) -> Iterator[QuotaNeed]:
    """Yield SageMaker's instances of each type, by quotas without a common code."""
    counts: dict[str, list[PoolPlan]] = {}
    for pool in all_pools:
        if not pool.facts.in_account:
            counts.setdefault(pool.node_types[0], []).append(pool)
    for name, pools in sorted(counts.items()):
        figure = Figure(
            id=f"quota.{name}",
            value=sum(pool.max_nodes for pool in pools),
            unit="instances",
            formula=" + ".join(f"{pool.max_nodes:,} nodes of {pool.name}" for pool in pools),
            sources=(_CLUSTER_PAGE,),
        )
        yield _unknown("sagemaker", f"{name} for cluster usage", figure)
    if counts:
        everything = sum(pool.max_nodes for pools in counts.values() for pool in pools)
        formula = f"{everything:,} nodes of HyperPod"
        yield _need(quotas.quota("hyperpod-instances"), everything, formula)
        yield _need(quotas.quota("all-hyperpod-instances"), everything, formula)


def _eks_quotas(plan: ClusterPlan) -> Iterator[QuotaNeed]:
    yield _need(quotas.quota("clusters"), 1, "this one")
    groups = [pool for pool in plan.all_pools if pool.is_managed]
    if groups:
        largest = max(groups, key=lambda pool: pool.max_nodes)
        yield _need(
            quotas.quota("node-groups"), len(groups), ", ".join(pool.name for pool in groups)
        )
        formula = f"{largest.max_nodes:,} nodes of {largest.name}"
        yield _need(quotas.quota("nodes-of-a-group"), largest.max_nodes, formula)
    admins = len(plan.control_plane.admins)
    roles = len(plan.access.entries) - admins
    of_file = f"{admins} administrators" + (f" + {roles} other roles" if roles else "")
    own = [pool for pool in plan.all_pools if pool.is_node_group]
    # Karpenter's nodes are named in two ways, each with a role.
    node_roles = [
        plan.nodes.role,
        plan.nodes.karpenter.node_role_by_id if plan.nodes.karpenter else None,
    ]
    others = sum(role is not None for role in node_roles) + any(
        not pool.facts.in_account for pool in plan.all_pools
    )
    yield _need(
        quotas.quota("access-entries"),
        admins + roles + len(own) + others,
        f"{of_file} + {len(own)} node groups + {others} other node roles, and a few "
        "of functions beside them",
    )
    yield _need(quotas.quota("pod-identities"), *_pod_identities(plan))


def _pod_identities(plan: ClusterPlan) -> tuple[int, str]:
    addons = (*plan.control_plane.node_addons, *plan.control_plane.workload_addons)
    named = [addon.name for addon in addons if addon.service_account is not None]
    agents = [part for part in plan.parts if part.has_agents]
    named += [name for part in agents for name in part.identities]
    for part, name in (
        (plan.nodes.karpenter, "Karpenter"),
        (plan.nodes.autoscaler, "Cluster Autoscaler"),
        (plan.nodes.termination_handler, "Node Termination Handler"),
    ):
        if part is not None:
            named.append(name)
    named += [name for part in plan.parts if part not in agents for name in part.identities]
    return len(named), ", ".join(named) or "none"


def _vpc_quotas(network: NetworkPlan, totals: Figures) -> Iterator[QuotaNeed]:
    gateways, existing = nat_gateways(network), network.existing
    yield _interfaces(network, totals["network_interfaces"], gateways)
    usage = totals["address_usage"]
    # Other users of the VPC use the same quota, which its owner has.
    beside = "" if existing is None else "; what others use of it comes on top"
    yield _need(
        quotas.quota("network-address-usage"),
        usage.value or 0,
        f"{usage.formula}{beside}",
        sources=usage.sources,
    )
    if existing is not None:
        return
    secondary = len(network.secondary_cidrs)
    yield _need(quotas.quota("ipv4-ranges"), 1 + secondary, f"the VPC's own + {secondary} for pods")
    yield _need(quotas.quota("vpcs"), 1, "that of the cluster")
    if gateways:
        yield _need(quotas.quota("elastic-addresses"), gateways, f"{gateways} NAT gateways")


def _interfaces(network: NetworkPlan, nodes: Figure, gateways: int) -> QuotaNeed:
    """Return the network interfaces of nodes, and those that AWS makes for the VPC beside them."""
    endpoints = endpoint_interfaces(network)
    return _need(
        quotas.quota("network-interfaces"),
        (nodes.value or 0) + endpoints + gateways,
        f"{nodes.id} + {endpoints} endpoints in zones + {gateways} NAT gateways; a few of EKS, of "
        "file systems and of load balancers come on top",
        nodes.sources,
    )


def _lustre_quotas(storage: StoragePlan) -> Iterator[QuotaNeed]:
    if storage.lustre:
        gib = sum(system.capacity_gib for system in storage.lustre)
        formula = " + ".join(
            f"{system.capacity_gib:,} GiB of {system.name}" for system in storage.lustre
        )
        yield _need(quotas.quota("lustre-storage"), gib, formula)
        names = ", ".join(system.name for system in storage.lustre)
        yield _need(quotas.quota("lustre-file-systems"), len(storage.lustre), names)


def _image_quotas(nodes: float) -> Iterator[QuotaNeed]:
    """Yield the rates at which each node of a new cluster gets its image in a bearable time."""
    for quota, (count, words) in image_requests(nodes).items():
        formula = f"{words} / {PULL_TARGET_SECONDS} seconds, in which all of them pull"
        yield _need(quota, count / PULL_TARGET_SECONDS, formula)


def _disks(pools: Sequence[PoolPlan]) -> QuotaNeed:
    own = [pool for pool in pools if pool.facts.in_account]
    gib = sum(pool.max_nodes * pool.root_disk.size_gib for pool in own)
    formula = " + ".join(
        f"{pool.max_nodes:,} nodes of {pool.name} x {pool.root_disk.size_gib} GiB" for pool in own
    )
    return _need(quotas.quota("gp3-storage"), gib / _GIB_OF_A_TIB, f"({formula}) / {_GIB_OF_A_TIB}")


def _need(
    quota: quotas.Quota, value: float, formula: str, sources: tuple[str, ...] = ()
) -> QuotaNeed:
    return QuotaNeed(
        code=quota.code or None,
        service=quota.service,
        name=quota.name,
        needed=Figure(
            id=f"quota.{quota.code or quota.name}",
            value=value,
            unit=quota.unit,
            formula=formula,
            sources=tuple(dict.fromkeys((*sources, quota.source))),
        ),
        default=quota.default,
        most=quota.most,
        state=_state(value, quota),
    )


def _with_agreed_limit(need: QuotaNeed, limit: AgreedLimit) -> QuotaNeed:
    value = need.needed.value
    held = need.state in ("ask", "beyond") and value is not None and value <= limit.value
    return replace(need, agreed=limit, state="agreed" if held else need.state)


def _state(value: float, quota: quotas.Quota) -> NeedState:
    if quota.most is not None and value > quota.most:
        return "beyond"
    if quota.default is None:
        return "unknown"
    return "ask" if value > quota.default else "within"


def _unknown(service: str | None, name: str, needed: Figure) -> QuotaNeed:
    return QuotaNeed(
        code=None,
        service=service,
        name=name,
        needed=needed,
        default=None,
        most=None,
        state="unknown",
    )


def advised(need: QuotaNeed, network: NetworkPlan, pools: Sequence[PoolPlan]) -> QuotaNeed:
    """Return ``need`` with advice."""
    value = need.needed.value
    if need.state == "ask" and value is not None:
        doubt = f"; {quotas.BLOCKS_DOUBT}" if need.needed.unit == quotas.BLOCKS else ""
        return replace(need, advice=f"request {math.ceil(value):,} in Service Quotas{doubt}")
    if need.state == "unknown":
        return replace(need, advice="look its value up in Service Quotas")
    if need.state not in ("beyond", "agreed") or need.most is None or value is None:
        return need
    fixed = _fixed(need, network)
    clusters = _clusters(need, value, need.most, fixed)
    if need.state == "agreed" or clusters.value is None:
        return replace(need, clusters=clusters)
    instead = f"divide the nodes among {clusters.value:,.0f} clusters, each in a VPC of its own"
    advice = f"{_request_to_aws(need, value)}{_fewer(need, need.most, network, pools)}{instead}"
    return replace(need, clusters=clusters, advice=advice)


def _request_to_aws(need: QuotaNeed, value: float) -> str:
    if need.most == need.default:
        return "it cannot be raised: "
    asked = f"ask your account team for {math.ceil(value):,} in writing"
    # The quota that has a key in the cluster file.
    stated = need.code == quotas.quota("network-address-usage").code
    return f"{asked}{' and say so in agreed_limits' if stated else ''}, or "


def _fixed(need: QuotaNeed, network: NetworkPlan) -> int:
    """Return the use of the quota by a further cluster before its first node."""
    return (
        usage_beside_nodes(network)
        if need.code == quotas.quota("network-address-usage").code
        else 0
    )


def _clusters(need: QuotaNeed, value: float, most: int, fixed: int) -> Figure:
    known = most > fixed
    return Figure(
        id=f"{need.needed.id}.clusters",
        value=math.ceil((value - fixed) / (most - fixed)) if known else None,
        unit="clusters",
        formula=f"({value:,.0f} - {fixed:,} of each cluster) / ({most:,} - {fixed:,}), rounded up",
        sources=need.needed.sources,
    )


def _fewer(need: QuotaNeed, most: int, network: NetworkPlan, pools: Sequence[PoolPlan]) -> str:
    """Return the advice to use fewer network cards, where the quota counts them."""
    if need.code != quotas.quota("network-address-usage").code:
        return ""
    base = usage_beside_nodes(network) + sum(
        pool.max_nodes
        * address_usage(
            1,
            node_draw(network, pool).prefixes,
            node_draw(network, pool).addresses - 1,
        )
        for pool in pools
    )
    nodes = sum(pool.max_nodes for pool in pools if pool.efa_interfaces)
    if base > most or not nodes:
        return ""
    cards = (most - base) // nodes
    if cards:
        return f"use instance types of at most {cards} EFA interfaces, or "
    return (
        f"write efa: none for every pool ({base:,} with one network interface each), which leaves "
        "jobs of several nodes to TCP, or "
    )


def beyond_limits(needs: ClusterNeeds) -> Iterator[str]:
    """Yield a line with advice for each need above the limit that AWS publishes."""
    for need in needs.quotas:
        if need.state == "beyond":
            agreed = f", of which {need.agreed.value:,} are agreed" if need.agreed else ""
            name = need.name if need.code is None else f"{need.name} ({need.code})"
            yield (
                f"{name}: {round(need.needed.value or 0):,} needed{agreed}, and AWS publishes "
                f"{need.most or 0:,} as the most that it grants; {need.advice}"
            )


def quota_rows(needs: ClusterNeeds) -> Iterator[Row]:
    """Yield the needed quotas beside their defaults; one that suffices has the tone good."""
    for index, need in enumerate(needs.quotas):
        at, (tone, words) = f"quotas.{index}", _STATES[need.state]
        state = state_line(at, words, need.agreed)
        yield Row(at, {"state": state}, tone, share_of(need.needed, need.default))
