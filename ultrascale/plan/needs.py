"""What a cluster needs of AWS at its full size: nodes, addresses, quotas and money."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ultrascale import catalog
from ultrascale.catalog import eks, kubelet, prices, quotas
from ultrascale.plan import capacity
from ultrascale.plan.address_demand import single_addresses
from ultrascale.plan.model import ClusterNeeds, ClusterPlan, Figure, PoolNeeds, PoolPlan
from ultrascale.plan.network import node_prefixes
from ultrascale.plan.quota_needs import plan_quotas

HOURS_OF_A_MONTH = 730
"""AWS's own estimate of a month: 8,760 hours a year, by 12."""

MONEY = ("usd_per_hour", "usd_per_month")
_ADDRESS_USAGE = "https://docs.aws.amazon.com/vpc/latest/userguide/network-address-usage.html"
# Purchases that are paid up front, at a price that AWS gives for each offer.
_PAID_BEFORE = frozenset({"capacity-block", "training-plan"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _PerNode:
    """What one node has of something; ``words`` say what, or why ``value`` is None."""

    value: float | None
    words: str
    sources: tuple[str, ...] = ()


def plan_needs(plan: ClusterPlan) -> ClusterNeeds:
    """Return what ``plan`` needs once every pool has its most nodes."""
    shards: dict[str, list[PoolPlan]] = {}
    for pool in plan.all_pools:
        shards.setdefault(pool.pool, []).append(pool)
    pools = tuple(_pool_needs(each, plan) for each in shards.values())
    totals = _totals(plan, pools)
    return ClusterNeeds(
        name=plan.name,
        region=plan.region,
        pools=pools,
        totals=totals,
        quotas=plan_quotas(plan, totals),
    )


def address_usage(interfaces: int, prefixes: int, addresses: int = 0) -> int:
    """Return the Network Address Usage of a node.

    Pods do not count beside the prefix that their addresses are of.

    Args:
        interfaces: Its network interfaces, those without an address too.
        prefixes: /28 prefixes on them.
        addresses: Single addresses beside the first of an interface.

    Source: https://docs.aws.amazon.com/vpc/latest/userguide/network-address-usage.html
    """
    return interfaces + prefixes + addresses


def interfaces_of(pool: PoolPlan) -> int:
    """Return the network interfaces that a node of ``pool`` is launched with."""
    return max(len(pool.network_interfaces), 1)


def _pool_needs(shards: Sequence[PoolPlan], plan: ClusterPlan) -> PoolNeeds:
    first = shards[0]
    nodes = _nodes(shards)
    figures = {"nodes": nodes}
    for key, unit, each in _per_node(first, node_prefixes(plan.network, first)):
        figures[key] = _times(f"{first.pool}.{key}", unit, nodes, each)
    hourly = _times(f"{first.pool}.usd_per_hour", "USD per hour", nodes, _price(first, plan.region))
    figures["usd_per_hour"] = hourly
    figures["usd_per_month"] = _month(f"{first.pool}.usd_per_month", hourly)
    return PoolNeeds(pool=first.pool, figures=figures, usable_hours=_usable_hours(first))


def _nodes(shards: Sequence[PoolPlan]) -> Figure:
    counts = [pool.max_nodes for pool in shards]
    formula = f"{counts[0]} nodes at most"
    if len(shards) > 1:
        formula = f"{len(shards)} shards x {counts[0]} nodes at most"
    return Figure(id=f"{shards[0].pool}.nodes", value=sum(counts), unit="nodes", formula=formula)


def _per_node(pool: PoolPlan, prefixes: int) -> Iterator[tuple[str, str, _PerNode]]:
    """Yield key, unit and what one node has, in the order of the columns."""
    yield "vcpus", "vCPUs", _most(pool, "vcpus", "vCPUs")
    word = pool.accelerator or "accelerators"
    yield (
        "accelerators",
        "accelerators",
        _PerNode(value=pool.accelerators_per_node, words=f"{pool.accelerators_per_node} {word}"),
    )
    yield "neuron_cores", "NeuronCores", _neuron_cores(pool)
    efa, interfaces = pool.efa_interfaces, interfaces_of(pool)
    yield (
        "efa_interfaces",
        "EFA interfaces",
        _PerNode(value=efa, words=_counted(efa, "EFA interface")),
    )
    words = _counted(interfaces, "network interface")
    yield "network_interfaces", "network interfaces", _PerNode(value=interfaces, words=words)
    extra = single_addresses(pool.provisioner, pool.instance_types) - 1
    usage = address_usage(interfaces, prefixes, extra)
    words += f" + {prefixes} /28 prefixes" + (f" + {extra} addresses" if extra else "")
    yield (
        "address_usage",
        "units of Network Address Usage",
        _PerNode(value=usage, words=f"({words})", sources=(_ADDRESS_USAGE,)),
    )


def _most(pool: PoolPlan, fact: str, unit: str) -> _PerNode:
    """Return the most that a node of the pool has of a number that the catalog states."""
    specs = [catalog.lookup(name) for name in pool.instance_types]
    unknown = [spec.instance_type for spec in specs if not spec.knows(fact)]
    if unknown:
        return _PerNode(value=None, words=f"no source states the {unit} of {', '.join(unknown)}")
    largest = max(specs, key=lambda spec: getattr(spec, fact))
    value: int = getattr(largest, fact)
    sources = tuple(source.url for source in largest.sources_of(fact))
    return _PerNode(
        value=value, words=f"{value} {unit} of {largest.instance_type}", sources=sources
    )


def _neuron_cores(pool: PoolPlan) -> _PerNode:
    """Return the physical NeuronCores of a node, the fewest among its types."""
    accelerators = [catalog.lookup(name).accelerator for name in pool.instance_types]
    neuron = [each for each in accelerators if each is not None and each.kind == "neuron"]
    if not neuron:
        return _PerNode(value=0, words="0 NeuronCores")
    if not all(each.knows("neuron_cores_physical") for each in neuron):
        return _PerNode(value=None, words="no source states the NeuronCores of all of its types")
    fewest = min(neuron, key=lambda each: each.neuron_cores_physical)
    value = fewest.neuron_cores_physical
    sources = tuple(source.url for source in fewest.sources_of("neuron_cores_physical"))
    words = f"{value} NeuronCores of {fewest.instance_type}"
    return _PerNode(value=value, words=words, sources=sources)


def _price(pool: PoolPlan, region: str) -> _PerNode:
    """Return the On-Demand price of a node, the highest among its types."""
    if pool.purchase in _PAID_BEFORE:
        words = f"a {pool.purchase} is paid up front, at a price that only AWS's offer states"
        return _PerNode(value=None, words=words)
    if pool.provisioner == capacity.HYPERPOD:
        return _PerNode(value=None, words="the catalog holds no prices of SageMaker")
    known = prices.on_demand(region, pool.instance_types)
    unknown = [name for name in pool.instance_types if name not in known]
    if unknown:
        words = f"no On-Demand price of {', '.join(unknown)} in {region} is known"
        return _PerNode(value=None, words=words)
    name, price = max(known.items(), key=lambda item: item[1])
    most = ", the most that Spot costs" if pool.purchase == "spot" else ""
    words = f"${price:g} of {name} On-Demand in {region} on {prices.SEEN}{most}"
    return _PerNode(value=price, words=words, sources=(prices.SOURCE,))


def _times(key: str, unit: str, nodes: Figure, each: _PerNode) -> Figure:
    if each.value is None or nodes.value is None:
        return Figure(id=key, value=None, unit=unit, formula=each.words, sources=each.sources)
    return Figure(
        id=key,
        value=nodes.value * each.value,
        unit=unit,
        formula=f"{nodes.value:,.0f} nodes x {each.words}",
        sources=each.sources,
    )


def _month(key: str, hourly: Figure) -> Figure:
    known = hourly.value is not None
    return Figure(
        id=key,
        value=hourly.value * HOURS_OF_A_MONTH if hourly.value is not None else None,
        unit="USD per month",
        formula=f"${hourly.value:,.2f} x {HOURS_OF_A_MONTH} hours" if known else hourly.formula,
        sources=hourly.sources,
        without=hourly.without,
    )


def _usable_hours(pool: PoolPlan) -> Figure | None:
    window = pool.window
    if window is None:
        return None
    hours = (window.usable_until - window.starts).total_seconds() / 3600
    return Figure(
        id=f"{pool.pool}.usable_hours",
        value=hours,
        unit="hours",
        formula=f"{window.starts:%Y-%m-%d %H:%M} until {window.usable_until:%Y-%m-%d %H:%M} UTC, "
        f"when its nodes are drained; it ends at {window.ends:%Y-%m-%d %H:%M}",
    )


def _totals(plan: ClusterPlan, pools: Sequence[PoolNeeds]) -> Mapping[str, Figure]:
    totals = {key: _sum(key, pools) for key in pools[0].figures if key != "usd_per_month"}
    totals["usd_per_month"] = _month("total.usd_per_month", totals["usd_per_hour"])
    totals["address_usage"] = _address_usage_of_vpc(plan, totals["address_usage"])
    totals["launch_minutes"] = _launch_minutes(plan)
    totals["binding_seconds"] = _binding_seconds(plan, totals["nodes"])
    totals["leases_per_second"] = _leases_per_second(totals["nodes"])
    return totals


def _sum(key: str, pools: Sequence[PoolNeeds]) -> Figure:
    figures = {pool.pool: pool.figures[key] for pool in pools}
    known = [figure for figure in figures.values() if figure.value is not None]
    without = tuple(name for name, figure in figures.items() if figure.value is None)
    formula = " + ".join(figure.id for figure in known) or "nothing of it is known"
    return Figure(
        id=f"total.{key}",
        value=sum(figure.value for figure in known if figure.value is not None) if known else None,
        unit=next(iter(figures.values())).unit,
        formula=formula + (f", without {', '.join(without)}" if without else ""),
        sources=tuple(dict.fromkeys(page for figure in known for page in figure.sources)),
        without=without,
    )


def _address_usage_of_vpc(plan: ClusterPlan, nodes: Figure) -> Figure:
    """Add what the VPC has beside nodes, each of which counts several times."""
    network = plan.network
    endpoints = len(network.interface_endpoints) * len(network.zones)
    gateways = len(network.of_kind("public"))
    each = quotas.ADDRESS_USAGE_OF_GATEWAYS
    return Figure(
        id=nodes.id,
        value=(nodes.value or 0) + each * (endpoints + gateways),
        unit=nodes.unit,
        formula=f"{nodes.formula} + {each} x ({endpoints} endpoints in zones + {gateways} NAT "
        "gateways)",
        sources=nodes.sources,
        without=nodes.without,
    )


def _launch_minutes(plan: ClusterPlan) -> Figure:
    """Return how long RunInstances takes for all nodes, as EC2 throttles it by default."""
    nodes = sum(pool.max_nodes for pool in plan.all_pools if pool.provisioner != capacity.HYPERPOD)
    at_once, each_second = quotas.RUN_INSTANCES_AT_ONCE, quotas.RUN_INSTANCES_PER_SECOND
    return Figure(
        id="total.launch_minutes",
        value=max(nodes - at_once, 0) / each_second / 60,
        unit="minutes",
        formula=f"({nodes:,} EC2 instances - {at_once:,} at once) / {each_second} a second, as "
        "RunInstances is throttled by default",
        sources=(quotas.RUN_INSTANCES_SOURCE,),
    )


def _binding_seconds(plan: ClusterPlan, nodes: Figure) -> Figure:
    """Return how long a pod for each node takes to be scheduled, at best."""
    tier = plan.control_plane.tier
    limits = eks.TIER_LIMITS.get(tier)
    if limits is None or nodes.value is None:
        value, formula = None, f"tier {tier} has no fixed limits"
    else:
        value = nodes.value / limits.pods_per_second
        formula = f"{nodes.value:,.0f} nodes / {limits.pods_per_second} pods a second of {tier}"
    return Figure(
        id="total.binding_seconds",
        value=value,
        unit="seconds",
        formula=formula,
        sources=(eks.TIER_LIMITS_SOURCE,),
    )


def _leases_per_second(nodes: Figure) -> Figure:
    """Return how often kubelets write to the API server that their nodes live."""
    seconds = kubelet.LEASE_RENEWAL_SECONDS
    return Figure(
        id="total.leases_per_second",
        value=None if nodes.value is None else nodes.value / seconds,
        unit="writes per second",
        formula=f"{nodes.value or 0:,.0f} nodes / {seconds} seconds",
        sources=(kubelet.LEASE_RENEWAL_SOURCE,),
    )


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
