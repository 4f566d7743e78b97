"""Needs of each pool, and their sums."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ultrascale import catalog
from ultrascale.catalog import prices, quotas
from ultrascale.plan.model import ClusterPlan, Figure, Figures, PoolNeeds, PoolPlan
from ultrascale.plan.network.demand import single_addresses
from ultrascale.plan.network.vpc import node_prefixes

HOURS_OF_A_MONTH = 730
"""AWS's own estimate of a month: 8,760 hours a year, by 12."""

_ADDRESS_USAGE = "https://docs.aws.amazon.com/vpc/latest/userguide/network-address-usage.html"
# Purchases that are paid up front, at a price that AWS gives for each offer.
PAID_BEFORE = frozenset({"capacity-block", "training-plan"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PerNode:
    """What one node has of something; ``words`` say what, or why ``value`` is None."""

    value: float | None
    words: str
    sources: tuple[str, ...] = ()


def shards_of(plan: ClusterPlan) -> Mapping[str, Sequence[PoolPlan]]:
    """Return the shards of each pool, by its name in the cluster file."""
    shards: dict[str, list[PoolPlan]] = {}
    for pool in plan.all_pools:
        shards.setdefault(pool.pool, []).append(pool)
    return shards


def plan_pool_needs(plan: ClusterPlan) -> tuple[PoolNeeds, ...]:
    """Return what each pool needs with all of its nodes."""
    return tuple(_pool_needs(each, plan) for each in shards_of(plan).values())


def plan_totals(plan: ClusterPlan, pools: Sequence[PoolNeeds]) -> Figures:
    """Return the sums of the figures of ``pools``."""
    totals = {key: _sum(key, pools) for key in pools[0].figures if key != "usd_per_month"}
    totals["usd_per_month"] = _month("total.usd_per_month", totals["usd_per_hour"])
    totals["address_usage"] = _address_usage_of_vpc(plan, totals["address_usage"])
    return totals


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


def usage_beside_nodes(plan: ClusterPlan) -> int:
    """Return the Network Address Usage of what stands in a VPC for its nodes."""
    gateways = endpoint_interfaces(plan) + nat_gateways(plan)
    return quotas.ADDRESS_USAGE_OF_GATEWAYS * gateways


def interfaces_of(pool: PoolPlan) -> int:
    """Return the network interfaces that a node of ``pool`` is launched with."""
    return max(len(pool.network_interfaces), 1)


def endpoint_interfaces(plan: ClusterPlan) -> int:
    """Return the network interfaces of a VPC's endpoints: one of each in each zone."""
    return len(plan.network.interface_endpoints) * len(plan.network.zones)


def nat_gateways(plan: ClusterPlan) -> int:
    """Return the NAT gateways of a VPC: one in each zone."""
    return len(plan.network.of_kind("public"))


def on_demand_price(pool: PoolPlan, region: str) -> PerNode:
    """Return the On-Demand price of a node of EC2, the highest among its types."""
    if region not in prices.REGIONS:
        return PerNode(value=None, words=f"no On-Demand prices of {region} are known")
    known = prices.on_demand(region, pool.instance_types)
    unknown = [name for name in pool.instance_types if name not in known]
    if unknown:
        words = f"no On-Demand price of {', '.join(unknown)} in {region} is known"
        return PerNode(value=None, words=words)
    name, price = max(known.items(), key=lambda item: item[1])
    words = f"${price:g} of {name} On-Demand in {region} on {prices.SEEN}"
    return PerNode(value=price, words=words, sources=(prices.SOURCE,))


def times(key: str, unit: str, nodes: Figure, each: PerNode) -> Figure:
    """Return what ``nodes`` have of something together."""
    if each.value is None or nodes.value is None:
        return Figure(id=key, value=None, unit=unit, formula=each.words, sources=each.sources)
    return Figure(
        id=key,
        value=nodes.value * each.value,
        unit=unit,
        formula=f"{nodes.value:,.0f} nodes x {each.words}",
        sources=each.sources,
    )


def _pool_needs(shards: Sequence[PoolPlan], plan: ClusterPlan) -> PoolNeeds:
    first = shards[0]
    nodes = _nodes(shards)
    figures = {"nodes": nodes}
    for key, unit, each in _per_node(first, node_prefixes(plan.network, first)):
        figures[key] = times(f"{first.pool}.{key}", unit, nodes, each)
    hourly = times(f"{first.pool}.usd_per_hour", "USD per hour", nodes, _price(first, plan.region))
    figures["usd_per_hour"] = hourly
    figures["usd_per_month"] = _month(f"{first.pool}.usd_per_month", hourly)
    return PoolNeeds(pool=first.pool, figures=figures)


def _nodes(shards: Sequence[PoolPlan]) -> Figure:
    counts = [pool.max_nodes for pool in shards]
    formula = f"{counts[0]} nodes at most"
    if len(shards) > 1:
        formula = f"{len(shards)} shards x {counts[0]} nodes at most"
    return Figure(id=f"{shards[0].pool}.nodes", value=sum(counts), unit="nodes", formula=formula)


def _per_node(pool: PoolPlan, prefixes: int) -> Iterator[tuple[str, str, PerNode]]:
    """Yield key, unit and what one node has, in the order of the columns."""
    yield "vcpus", "vCPUs", _most(pool, "vcpus", "vCPUs")
    count, efa, interfaces = pool.accelerators_per_node, pool.efa_interfaces, interfaces_of(pool)
    words = f"{count} {pool.accelerator or 'accelerators'}{_fewest(pool)}"
    yield "accelerators", "accelerators", PerNode(value=count, words=words)
    yield "neuron_cores", "NeuronCores", _neuron_cores(pool)
    words = _counted(efa, "EFA interface")
    yield "efa_interfaces", "EFA interfaces", PerNode(value=efa, words=words)
    words = _counted(interfaces, "network interface")
    yield "network_interfaces", "network interfaces", PerNode(value=interfaces, words=words)
    extra = single_addresses(pool) - 1
    usage = address_usage(interfaces, prefixes, extra)
    words += f" + {prefixes} /28 prefixes"
    words += f" + {extra} addresses" if extra else ""
    yield (
        "address_usage",
        "units of Network Address Usage",
        PerNode(value=usage, words=f"({words})", sources=(_ADDRESS_USAGE,)),
    )


def _fewest(pool: PoolPlan) -> str:
    """Return what tells that some types of a pool have more accelerators than are counted."""
    kinds = (catalog.lookup(name).accelerator for name in pool.instance_types)
    counts = {0 if kind is None else kind.count for kind in kinds}
    return ", the fewest among its types" if len(counts) > 1 else ""


def _most(pool: PoolPlan, fact: str, unit: str) -> PerNode:
    """Return the most that a node of the pool has of a number that the catalog states."""
    specs = [catalog.lookup(name) for name in pool.instance_types]
    unknown = [spec.instance_type for spec in specs if not spec.knows(fact)]
    if unknown:
        return PerNode(value=None, words=f"no source states the {unit} of {', '.join(unknown)}")
    largest = max(specs, key=lambda spec: getattr(spec, fact))
    value: int = getattr(largest, fact)
    sources = tuple(source.url for source in largest.sources_of(fact))
    words = f"{value} {unit} of {largest.instance_type}"
    return PerNode(value=value, words=words, sources=sources)


def _neuron_cores(pool: PoolPlan) -> PerNode:
    """Return the physical NeuronCores of a node, the fewest among its types."""
    accelerators = [catalog.lookup(name).accelerator for name in pool.instance_types]
    neuron = [each for each in accelerators if each is not None and each.kind == "neuron"]
    if not neuron:
        return PerNode(value=0, words="0 NeuronCores")
    if not all(each.knows("neuron_cores_physical") for each in neuron):
        return PerNode(value=None, words="no source states the NeuronCores of all of its types")
    fewest = min(neuron, key=lambda each: each.neuron_cores_physical)
    value = fewest.neuron_cores_physical
    sources = tuple(source.url for source in fewest.sources_of("neuron_cores_physical"))
    words = f"{value} NeuronCores of {fewest.instance_type}"
    return PerNode(value=value, words=words, sources=sources)


def _price(pool: PoolPlan, region: str) -> PerNode:
    """Return what a node costs by the file's purchase, as far as the catalog can say."""
    if pool.purchase in PAID_BEFORE:
        words = f"a {pool.purchase} is paid up front, at a price that only AWS's offer states"
        return PerNode(value=None, words=words)
    if pool.is_hyperpod:
        return PerNode(value=None, words="the catalog holds no prices of SageMaker")
    price = on_demand_price(pool, region)
    if price.value is None or pool.purchase != "spot":
        return price
    words = f"{price.words}, the most that Spot costs"
    return PerNode(value=price.value, words=words, sources=price.sources)


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


def _sum(key: str, pools: Sequence[PoolNeeds]) -> Figure:
    return total(f"total.{key}", {pool.pool: pool.figures[key] for pool in pools})


def total(key: str, figures: Figures) -> Figure:
    """Return the sum of ``figures``, by the pools that they are of; at least one."""
    known = [figure for figure in figures.values() if figure.value is not None]
    without = tuple(name for name, figure in figures.items() if figure.value is None)
    formula = " + ".join(figure.id for figure in known) or "nothing of it is known"
    return Figure(
        id=key,
        value=sum(figure.value for figure in known if figure.value is not None) if known else None,
        unit=next(iter(figures.values())).unit,
        formula=formula + (f", without {', '.join(without)}" if without else ""),
        sources=tuple(dict.fromkeys(page for figure in known for page in figure.sources)),
        without=without,
    )


def _address_usage_of_vpc(plan: ClusterPlan, nodes: Figure) -> Figure:
    """Add what the VPC has beside nodes, each of which counts several times."""
    each = quotas.ADDRESS_USAGE_OF_GATEWAYS
    return Figure(
        id=nodes.id,
        value=(nodes.value or 0) + usage_beside_nodes(plan),
        unit=nodes.unit,
        formula=f"{nodes.formula} + {each} x ({endpoint_interfaces(plan)} endpoints in zones + "
        f"{nat_gateways(plan)} NAT gateways); pods are not counted beside the prefix of their "
        "addresses, though AWS's page names them",
        sources=nodes.sources,
        without=nodes.without,
    )


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
