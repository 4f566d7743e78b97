"""Nodes and money of services: idle, fully used, and for a million tokens."""

import math
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ultrascale.catalog.prices import AUTO_MODE, PriceList, catalog_prices
from ultrascale.frozen import Frozen
from ultrascale.plan.model import (
    ClusterNeeds,
    ClusterPlan,
    Figure,
    Figures,
    NodePart,
    PoolPlan,
    ServiceDemandPlan,
    ServiceNeeds,
)
from ultrascale.plan.needs.pools import PerNode, is_capped, price_as_bought, times
from ultrascale.plan.needs.tables import Content, Line, Row, figures_at

_AT = "service"
_USD_PER_HOUR = "USD per hour"
_USD_PER_MILLION = "USD per million tokens"
_SECONDS = 3_600
_MILLION = 1_000_000
_NOT_STATED = "tokens_per_second of the service is not stated"


class _Node(Frozen):
    """A node that pods of a service may run on, with its price."""

    part: NodePart
    price: PerNode

    @property
    def pod_price(self) -> float:
        """Price of a pod in an hour by its share of the node; without a price the share alone."""
        return self.part.share * (1 if self.price.value is None else self.price.value)


def plan_service_needs(
    plan: ClusterPlan, price_list: PriceList | None = None
) -> tuple[ServiceNeeds, ...]:
    """Return nodes and money of the services of a cluster file.

    Args:
        plan: The cluster.
        price_list: Prices; None takes the catalog's.
    """
    known = price_list or catalog_prices()
    return tuple(_needs(service, plan.all_pools, plan.region, known) for service in plan.services)


def replica_usd_per_hour(
    service: ServiceDemandPlan, pools: Sequence[PoolPlan], region: str
) -> float | None:
    """Return the cost of a replica in an hour by its share of nodes; None without a price.

    Args:
        service: The service.
        pools: All pools of the cluster.
        region: AWS Region, with the catalog's prices.
    """
    return _needs(service, pools, region, catalog_prices()).figures["usd_per_hour_share"].value


def _needs(
    service: ServiceDemandPlan, pools: Sequence[PoolPlan], region: str, price_list: PriceList
) -> ServiceNeeds:
    by_name = {pool.pool: pool for pool in pools}
    nodes = [
        _Node(part=part, price=_price(by_name[part.pool], part.instance_type, region, price_list))
        for part in service.parts
    ]
    return ServiceNeeds(
        service=service.name,
        pools=tuple(dict.fromkeys(part.pool for part in service.parts)),
        figures={figure.id.rpartition(".")[2]: figure for figure in _figures(service, nodes)},
        is_bound=any(is_capped(by_name[node.part.pool], node.price) for node in nodes),
    )


def _price(pool: PoolPlan, instance_type: str, region: str, price_list: PriceList) -> PerNode:
    """Return the cost of a node of one type of a pool as it is bought, with Auto Mode's fee."""
    own = replace(pool, instance_types=(instance_type,))
    price = price_as_bought(own, region, price_list)
    if not pool.is_auto_mode or price.value is None:
        return price
    fee = price_list.find(region, "eks", f"{AUTO_MODE}{instance_type}")
    if fee is None:
        words = f"no fee of EKS Auto Mode for {instance_type} in {region} is known"
        return PerNode(value=None, words=words)
    return replace(
        price,
        value=price.value + fee.price,
        words=f"({price.words} + ${fee.price:g} of EKS Auto Mode)",
        sources=(*price.sources, fee.source),
    )


def _figures(service: ServiceDemandPlan, nodes: Sequence[_Node]) -> Iterator[Figure]:
    at = f"{_AT}.{service.name}"
    unpriced = next((node for node in nodes if node.price.value is None), None)
    dearest = unpriced or max(nodes, key=lambda node: node.pod_price)
    part = dearest.part
    said = service.tokens_per_second
    speed = Figure(
        id=f"{at}.tokens_per_second",
        value=said,
        unit="tokens per second of a replica",
        formula=_NOT_STATED if said is None else f"{said:g}, as the file states it",
    )
    for key, replicas in (("least", service.least), ("most", service.most)):
        yield Figure(
            id=f"{at}.replicas_{key}", value=replicas, unit="replicas", formula=f"{replicas:,}"
        )
        taken = _whole_nodes(f"{at}.nodes_{key}", service, part, replicas)
        yield taken
        hourly = times(f"{at}.usd_per_hour_{key}", _USD_PER_HOUR, taken, dearest.price)
        yield hourly
        tokens_key = f"{at}.usd_per_million_tokens_{key}"
        yield _per_million(tokens_key, hourly, speed, replicas)
    yield Figure(
        id=f"{at}.share",
        value=part.share,
        unit="of a node, a pod",
        formula=f"the largest part of {part.instance_type} that a pod takes, of CPU, memory and "
        "accelerators",
    )
    yield speed
    alone = _by_share(f"{at}.usd_per_hour_share", service, dearest)
    yield alone
    yield _per_million(f"{at}.usd_per_million_tokens_share", alone, speed, 1)
    if service.model is not None:
        yield from service.model.figures(at)


def _whole_nodes(key: str, service: ServiceDemandPlan, part: NodePart, replicas: int) -> Figure:
    """Return the whole nodes of replicas where no other pod shares them."""
    pods = replicas * service.nodes
    zones = max(min(pods, part.zones), 1)
    evenly, more = divmod(pods, zones)
    larger, smaller = math.ceil((evenly + 1) / part.pods), math.ceil(evenly / part.pods)
    spanned = "" if service.nodes == 1 else f" x {service.nodes} pods"
    # Pods that take whole nodes take as many of them in any zones.
    spread = f" in each of {zones} zones" if zones > 1 and part.pods > 1 else ""
    return Figure(
        id=key,
        value=more * larger + (zones - more) * smaller,
        unit="nodes",
        formula=f"{replicas:,} replicas{spanned} / {part.pods} on a node of {part.instance_type}, "
        f"rounded up{spread}",
    )


def _by_share(key: str, service: ServiceDemandPlan, node: _Node) -> Figure:
    """Return the cost of a replica where other pods fill the rest of its nodes."""
    price, share = node.price, node.part.share
    value = None if price.value is None else service.nodes * share * price.value
    words = f"{service.nodes} x {share:.3g} nodes x {price.words}"
    return Figure(
        id=key,
        value=value,
        unit=_USD_PER_HOUR,
        formula=price.words if value is None else words,
        sources=price.sources,
    )


def _per_million(key: str, hourly: Figure, speed: Figure, replicas: int) -> Figure:
    """Return the cost of a million tokens while all replicas are fully used."""
    value, formula = None, hourly.formula
    if speed.value is None:
        formula = speed.formula
    elif hourly.value is not None:
        value = hourly.value / (replicas * speed.value * _SECONDS) * _MILLION
        formula = (
            f"{hourly.id} / ({replicas:,} replicas x {speed.value:g} tokens/s x {_SECONDS:,} s) "
            f"x {_MILLION:,}, fully used: half used, a token costs twice as much"
        )
    return Figure(
        id=key, value=value, unit=_USD_PER_MILLION, formula=formula, sources=hourly.sources
    )


def service_rows(needs: ClusterNeeds) -> Iterator[Row]:
    """Yield nodes and money of the services, and their models."""
    for index, service in enumerate(needs.services):
        at, own = f"services.{index}.figures", service.figures
        bound = "at most " if service.is_bound else ""
        cells: dict[str, Content | Line] = {
            "replicas": _fewest_and_most(at, own, "replicas"),
            "nodes": _fewest_and_most(at, own, "nodes"),
            "usd_per_hour": _fewest_and_most(at, own, "usd_per_hour", bound),
        }
        if own["tokens_per_second"].value is not None:
            key = "usd_per_million_tokens"
            cells[key] = _fewest_and_most(at, own, key, bound)
        if "device_gib" in own:
            needed, whole = figures_at(at, own, "device_gib_needed", "device_gib", places=1)
            cells["device_gib"] = (needed, " of ", whole)
        for key in ("tokens_per_second", "load_seconds", "cold_start_seconds"):
            if key in own and own[key].value is None:
                cells[f"figures.{key}"] = ""
        yield Row(f"services.{index}", cells)


def _fewest_and_most(at: str, figures: Figures, key: str, bound: str = "") -> Line:
    """Return a number at the fewest and at the most replicas, once where they are the same."""
    fewest, most = figures_at(at, figures, f"{key}_least", f"{key}_most")
    same = figures[f"{key}_least"].value == figures[f"{key}_most"].value
    return (bound, fewest) if same else (bound, fewest, " to ", most)
