"""Needs of each pool, and their sums."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from msgspec.structs import replace

from ultrascale.catalog import quotas
from ultrascale.catalog.prices import Price, PriceList, catalog_prices
from ultrascale.frozen import Frozen
from ultrascale.plan.amounts import SPOT
from ultrascale.plan.model import (
    ClusterNeeds,
    Figure,
    Figures,
    NetworkPlan,
    PoolNeeds,
    PoolPart,
    PoolPlan,
)
from ultrascale.plan.needs.tables import Row
from ultrascale.plan.network.assignment import Draw
from ultrascale.plan.network.vpc import node_draw

HOURS_OF_A_MONTH = 730
"""AWS's own estimate of a month: 8,760 hours a year, by 12."""

PURCHASES: Mapping[str, str] = {
    "on-demand": "On-Demand",
    "spot": "Spot",
    "odcr": "On-Demand Capacity Reservation",
    "capacity-block": "Capacity Block",
    "training-plan": "training plan",
}
"""Names of purchase options, as AWS writes them."""

_ADDRESS_USAGE = "https://docs.aws.amazon.com/vpc/latest/userguide/network-address-usage.html"
RATES: Mapping[str, str] = {
    "ec2": "On-Demand",
    "ec2-spot": "Spot",
    "sagemaker": "HyperPod",
    "ec2-capacity-block": "in a block",
}
"""Names of the rates of a price list, by service."""
# Services of EC2's prices, the first that has all types, by purchase option; others: On-Demand.
_SERVICES: Mapping[str, tuple[str, ...]] = {
    "spot": ("ec2-spot", "ec2"),
    "capacity-block": ("ec2-capacity-block",),
}
# Purchases paid up front, at the price of an offer.
PAID_BEFORE = frozenset({"capacity-block", "training-plan"})


class PerNode(Frozen):
    """An amount of one node; ``words`` name it, or say why ``value`` is None.

    ``price`` is the price behind ``value``, where it is money.
    """

    value: float | None
    words: str
    sources: tuple[str, ...] = ()
    price: Price | None = None


def shards_of(pools: Sequence[PoolPlan]) -> Mapping[str, Sequence[PoolPlan]]:
    """Return the shards of each pool, by its name in the cluster file."""
    shards: dict[str, list[PoolPlan]] = {}
    for pool in pools:
        shards.setdefault(pool.pool, []).append(pool)
    return shards


def plan_pool_needs(
    region: str,
    network: NetworkPlan,
    pools: Sequence[PoolPlan],
    price_list: PriceList | None = None,
) -> tuple[PoolNeeds, ...]:
    """Return the needs of each pool with all of its nodes.

    Args:
        region: AWS Region.
        network: Network of the cluster.
        pools: Its pools.
        price_list: Prices; None takes those of the catalog.
    """
    known = price_list or catalog_prices()
    return tuple(
        _pool_needs(shards, region, network, known) for shards in shards_of(pools).values()
    )


def plan_totals(network: NetworkPlan, pools: Sequence[PoolNeeds]) -> Figures:
    """Return the sums of the figures of ``pools``."""
    totals = {key: _sum(key, pools) for key in pools[0].figures}
    totals["address_usage"] = _address_usage_of_vpc(network, totals["address_usage"])
    return totals


def address_usage(interfaces: int, prefixes: int, addresses: int = 0) -> int:
    """Return the Network Address Usage of a node.

    Pods do not count beside the prefix of their addresses.

    Args:
        interfaces: Its network interfaces, also those without an address.
        prefixes: /28 prefixes on them.
        addresses: Single addresses beside the first of an interface.

    Source: https://docs.aws.amazon.com/vpc/latest/userguide/network-address-usage.html
    """
    return interfaces + prefixes + addresses


def usage_beside_nodes(network: NetworkPlan) -> int:
    """Return the Network Address Usage of a VPC without its nodes."""
    gateways = endpoint_interfaces(network) + nat_gateways(network)
    return quotas.ADDRESS_USAGE_OF_GATEWAYS * gateways


def interfaces_of(pool: PoolPlan) -> int:
    """Return the network interfaces with which a node of ``pool`` is launched."""
    return max(len(pool.network_interfaces), 1)


def endpoint_interfaces(network: NetworkPlan) -> int:
    """Return the network interfaces of the endpoints that are made: one for each in each zone."""
    zones = {subnet.zone for subnet in network.of_kind("private")}
    return len(network.interface_endpoints) * len(zones)


def nat_gateways(network: NetworkPlan) -> int:
    """Return the NAT gateways of a VPC of ours: one in each zone."""
    return 0 if network.existing else len(network.of_kind("public"))


class Listed(NamedTuple):
    """Prices of several instance types from one service of a price list."""

    service: str  # The service
    prices: tuple[Price, ...]  # Prices of all types; empty where one is missing
    missing: tuple[str, ...]  # Types without a price

    def highest_price(self, region: str) -> PerNode:
        """Return the highest price."""
        if self.prices:
            return _per_node(max(self.prices, key=lambda price: price.price), RATES[self.service])
        names = ", ".join(self.missing)
        words = f"no {RATES[self.service]} price of {names} in {region} is known"
        return PerNode(value=None, words=words)


def listed_prices(
    names: Sequence[str], purchase: str, seller: str, region: str, price_list: PriceList
) -> Listed:
    """Return the prices at which instance types are bought.

    Args:
        names: Instance types, those of SageMaker with its prefix.
        purchase: Purchase option; without prices of Spot, those of On-Demand stand in.
        seller: ``ec2`` or ``sagemaker``.
        region: AWS Region.
        price_list: Prices.
    """
    service, missing = seller, tuple(names)
    for service in _SERVICES.get(purchase, ("ec2",)) if seller == "ec2" else (seller,):
        prices = {name: price_list.find(region, service, name) for name in names}
        missing = tuple(name for name, price in prices.items() if price is None)
        if not missing:
            return Listed(service, tuple(price for price in prices.values() if price), ())
    return Listed(service, (), missing)


def on_demand_price(pool: PoolPlan, region: str, price_list: PriceList) -> PerNode:
    """Return the On-Demand price of a node in EC2, the highest among its types."""
    listed = listed_prices(pool.instance_types, "on-demand", "ec2", region, price_list)
    return listed.highest_price(region)


def _per_node(price: Price, words: str) -> PerNode:
    text = f"${price.price:g} of {price.item} {words} in {price.region} on {price.valid_on}"
    return PerNode(value=price.price, words=text, sources=(price.source,), price=price)


def times(key: str, unit: str, nodes: Figure, per_node: PerNode) -> Figure:
    """Multiply an amount per node by the number of nodes."""
    if per_node.value is None or nodes.value is None:
        return Figure(
            id=key, value=None, unit=unit, formula=per_node.words, sources=per_node.sources
        )
    return Figure(
        id=key,
        value=nodes.value * per_node.value,
        unit=unit,
        formula=f"{nodes.value:,.0f} nodes x {per_node.words}",
        sources=per_node.sources,
    )


def _pool_needs(
    shards: Sequence[PoolPlan], region: str, network: NetworkPlan, price_list: PriceList
) -> PoolNeeds:
    first = shards[0]
    nodes = _nodes(shards)
    figures = {"nodes": nodes}
    for key, unit, per_node in _counts(first, node_draw(network, first)):
        figures[key] = times(f"{first.pool}.{key}", unit, nodes, per_node)
    hourly = _hourly(shards, nodes, region, price_list)
    figures["usd_per_hour"] = hourly
    figures["usd_per_month"] = month(f"{first.pool}.usd_per_month", hourly, first)
    return PoolNeeds(pool=first.pool, figures=figures)


def _hourly(
    shards: Sequence[PoolPlan], nodes: Figure, region: str, price_list: PriceList
) -> Figure:
    """Return the cost of all nodes in an hour; nodes of a Spot pool's fallback are On-Demand."""
    pool = shards[0]
    key, unit = f"{pool.pool}.usd_per_hour", "USD per hour"
    price = price_as_bought(pool, region, price_list)
    fallback = sum(shard.fallback_nodes for shard in shards)
    if not fallback or is_capped(pool, price):
        return times(key, unit, nodes, price)
    rest = replace(nodes, value=(nodes.value or 0) - fallback)
    spot = times(key, unit, rest, price)
    beside = times(
        key, unit, replace(nodes, value=fallback), on_demand_price(pool, region, price_list)
    )
    if spot.value is None or beside.value is None:
        return spot if spot.value is None else beside
    return replace(
        spot,
        value=spot.value + beside.value,
        formula=f"{spot.formula} + {beside.formula}",
        sources=tuple(dict.fromkeys((*spot.sources, *beside.sources))),
    )


def _nodes(shards: Sequence[PoolPlan]) -> Figure:
    counts = [pool.max_nodes for pool in shards]
    formula = f"{counts[0]} nodes at most"
    if len(shards) > 1:
        formula = f"{len(shards)} shards x {counts[0]} nodes at most"
    return Figure(id=f"{shards[0].pool}.nodes", value=sum(counts), unit="nodes", formula=formula)


def _counts(pool: PoolPlan, draw: Draw) -> Iterator[tuple[str, str, PerNode]]:
    yield "vcpus", "vCPUs", _most(pool, "vcpus", "vCPUs")
    count, efa, interfaces = pool.accelerators_per_node, pool.efa_interfaces, interfaces_of(pool)
    words = f"{count} {pool.accelerator or 'accelerators'}{_fewest(pool)}"
    yield "accelerators", "accelerators", PerNode(value=count, words=words)
    yield "neuron_cores", "NeuronCores", _neuron_cores(pool)
    words = _counted_words(efa, "EFA interface")
    yield "efa_interfaces", "EFA interfaces", PerNode(value=efa, words=words)
    words = _counted_words(interfaces, "network interface")
    yield "network_interfaces", "network interfaces", PerNode(value=interfaces, words=words)
    extra = draw.addresses - 1
    usage = address_usage(interfaces, draw.prefixes, extra)
    words += f" + {draw.prefixes} /28 prefixes"
    words += f" + {extra} addresses" if extra else ""
    yield (
        "address_usage",
        "units of Network Address Usage",
        PerNode(value=usage, words=f"({words})", sources=(_ADDRESS_USAGE,)),
    )


def _fewest(pool: PoolPlan) -> str:
    """Return the note that some types of a pool have more accelerators than are counted."""
    kinds = (spec.accelerator for spec in pool.specs)
    counts = {0 if kind is None else kind.count for kind in kinds}
    return ", the fewest among its types" if len(counts) > 1 else ""


def _most(pool: PoolPlan, fact: str, unit: str) -> PerNode:
    specs = pool.specs
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
    accelerators = [spec.accelerator for spec in pool.specs]
    neuron = [
        accelerator
        for accelerator in accelerators
        if accelerator is not None and accelerator.kind == "neuron"
    ]
    if not neuron:
        return PerNode(value=0, words="0 NeuronCores")
    if not all(accelerator.knows("neuron_cores_physical") for accelerator in neuron):
        return PerNode(value=None, words="no source states the NeuronCores of all of its types")
    fewest = min(neuron, key=lambda accelerator: accelerator.neuron_cores_physical)
    value = fewest.neuron_cores_physical
    sources = tuple(source.url for source in fewest.sources_of("neuron_cores_physical"))
    words = f"{value} NeuronCores of {fewest.instance_type}"
    return PerNode(value=value, words=words, sources=sources)


def price_as_bought(pool: PoolPlan, region: str, price_list: PriceList) -> PerNode:
    """Return the cost of a node by the file's purchase, as far as the price list has it.

    Args:
        pool: The pool.
        region: AWS Region.
        price_list: Prices, for pools without a fee. That of a block, of Spot, or of HyperPod goes
            where it has one.
    """
    if pool.fee_per_node_hour is not None:
        words = f"${pool.fee_per_node_hour:,.2f} an hour of purchase.fee"
        return PerNode(value=pool.fee_per_node_hour, words=words)
    seller = pool.facts.seller
    names = pool.instance_types if seller == "ec2" else pool.node_types
    listed = listed_prices(names, pool.purchase, seller, region, price_list)
    if pool.purchase in PAID_BEFORE and (seller != "ec2" or not listed.prices):
        words = f"a {pool.purchase} is paid up front, at a price that only AWS's offer states"
        return PerNode(value=None, words=words)
    price = listed.highest_price(region)
    if not is_capped(pool, price):
        return price
    return replace(price, words=f"{price.words}, the most that Spot costs")


def unpriced_types(pool: PoolPlan, region: str, price_list: PriceList) -> tuple[str, ...]:
    """Return the instance types of ``pool`` without a price; none where AWS's offer states it."""
    if pool.purchase in PAID_BEFORE:
        return ()
    seller = pool.facts.seller
    return listed_prices(pool.node_types, pool.purchase, seller, region, price_list).missing


def is_capped(pool: PoolPlan, price: PerNode) -> bool:
    """Return whether ``price`` is the On-Demand price of Spot nodes, the most that they cost."""
    return pool.purchase == "spot" and price.price is not None and price.price.service == "ec2"


def prices_as_bought(pool: PoolPlan, region: str, price_list: PriceList) -> Iterator[Price]:
    """Yield the prices by which the nodes of ``pool`` count; none where it has no price."""
    taken = [price_as_bought(pool, region, price_list)]
    if pool.fallback_nodes:
        taken.append(on_demand_price(pool, region, price_list))
    yield from (price.price for price in taken if price.price is not None)


def month(key: str, hourly: Figure, pool: PoolPlan | None = None) -> Figure:
    """Return the cost of ``hourly`` in a month of ``HOURS_OF_A_MONTH``.

    Args:
        key: Id of the figure.
        hourly: The price of an hour.
        pool: The paid pool: its window ends the month where it is shorter.
    """
    value, formula, hours = hourly.value, hourly.formula, float(HOURS_OF_A_MONTH)
    if pool is not None and pool.window is not None:
        hours = min(hours, (pool.window.ends - pool.window.starts) / timedelta(hours=1))
    words = "hours" if hours == HOURS_OF_A_MONTH else "hours of its window"
    if value is not None:
        # Cents would hide the change of a small price.
        formula = f"${value:,.{2 if value >= 1 else 6}f} x {hours:g} {words}"
    return Figure(
        id=key,
        value=None if value is None else value * hours,
        unit="USD per month",
        formula=formula,
        sources=hourly.sources,
        without=hourly.without,
    )


def _sum(key: str, pools: Sequence[PoolNeeds]) -> Figure:
    return total(f"total.{key}", {pool.pool: pool.figures[key] for pool in pools})


def total(key: str, figures: Figures) -> Figure:
    """Return the sum of ``figures``, at least one, by their pools."""
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


def _address_usage_of_vpc(network: NetworkPlan, nodes: Figure) -> Figure:
    """Return the usage of the VPC with its nodes, each of which counts several times."""
    usage = quotas.ADDRESS_USAGE_OF_GATEWAYS
    return Figure(
        id=nodes.id,
        value=(nodes.value or 0) + usage_beside_nodes(network),
        unit=nodes.unit,
        formula=f"{nodes.formula} + {usage} x ({endpoint_interfaces(network)} endpoints in zones + "
        f"{nat_gateways(network)} NAT gateways); pods are not counted beside the prefix of their "
        "addresses, though AWS's page names them",
        sources=nodes.sources,
        without=nodes.without,
    )


def _counted_words(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def purchase_of(pool: PoolPart) -> str:
    """Return how a pool is bought, with its fallback."""
    name = PURCHASES.get(pool.purchase, pool.purchase)
    return f"{name}, then On-Demand" if pool.fallback_nodes else name


def pool_rows(needs: ClusterNeeds) -> Iterator[Row]:
    """Yield the pools with their needs at full size, and the sum."""
    for index, (pool, part) in enumerate(zip(needs.pools, needs.topology.pools, strict=True)):
        cells = {
            "pool": pool.pool,
            "purchase": purchase_of(part),
            "provisioner": part.provisioner,
            "instance_types": ", ".join(part.instance_types),
            "zones": ", ".join(part.zones),
        }
        yield Row(f"pools.{index}.figures", cells)
    label = f"total, {SPOT}" if needs.money.spot_at_on_demand else "total"
    yield Row("totals", {"pool": label}, is_total=True)
