"""Paid things beside nodes: those that stand, and those paid by use."""

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from typing import Literal

from ultrascale.catalog.cloudwatch import AUDIT_LINE_BYTES, FLOW_RECORD_BYTES, PRICED_AS
from ultrascale.catalog.prices import AUTO_MODE, DOLLARS, PriceList, unit_of
from ultrascale.plan.model import (
    ClusterNeeds,
    ClusterPlan,
    ControlPlanePlan,
    Figure,
    LoadNeed,
    MoneyItem,
    PlannedPart,
    PoolPlan,
)
from ultrascale.plan.needs.pools import (
    HOURS_OF_A_MONTH,
    endpoint_interfaces,
    month,
    nat_gateways,
    shards_of,
)
from ultrascale.plan.needs.tables import Row

# A gp3 volume includes as much throughput.
# Source: https://docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html
_FREE_IOPS = 3_000
_FREE_MIBPS = 125
_USD_PER_HOUR = "USD per hour"
_SECONDS = HOURS_OF_A_MONTH * 3_600
# Name, service, item, quantity, and the counted unit.
_Row = tuple[str, str, str, float | None, str]


def plan_items(
    plan: ClusterPlan,
    load: Sequence[LoadNeed],
    price_list: PriceList,
    at: datetime | None = None,
) -> tuple[MoneyItem, ...]:
    """Return the paid things of ``plan`` beside nodes, the standing ones first.

    Args:
        plan: The cluster.
        load: Load of its control plane, for the data of its logs.
        price_list: Prices.
        at: The time to pay for, in UTC; None takes one of Kubernetes' standard support.
    """
    region = plan.region
    return (
        *(_item("baseline", row, region, price_list) for row in _baseline(plan, price_list, at)),
        *(
            _item("baseline", row, region, price_list, shards[0])
            for shards in shards_of(plan.all_pools).values()
            if shards[0].window is not None
            for row in _window_rows(shards, region, price_list)
        ),
        *(_item("usage", row, region, price_list) for row in _usage(plan, load)),
    )


def _window_rows(shards: Sequence[PoolPlan], region: str, price_list: PriceList) -> Iterator[_Row]:
    """Yield the costs of a pool's nodes while its window lasts."""
    if shards[0].provisioner == "auto-mode":
        yield _auto_mode(shards, region, price_list)
    for name, service, item, quantity, words in _volumes(shards):
        yield f"{name} of {shards[0].pool}", service, item, quantity, words


def extended_support_begins(control_plane: ControlPlanePlan) -> date | None:
    """Return the UTC day on which EKS begins to bill extended support; None without it.

    EKS upgrades a cluster that does not extend support instead.
    """
    extends = control_plane.support_type == "EXTENDED"
    return control_plane.facts.support_ends.get(control_plane.version) if extends else None


def is_in_extended_support(control_plane: ControlPlanePlan, at: datetime | None) -> bool:
    """Return whether EKS bills extended support at a time."""
    begins = extended_support_begins(control_plane)
    return begins is not None and at is not None and at.astimezone(UTC).date() >= begins


def _baseline(plan: ClusterPlan, price_list: PriceList, at: datetime | None) -> Iterator[_Row]:
    yield "EKS cluster", "eks", "cluster", 1, "1 cluster"
    if is_in_extended_support(plan.control_plane, at):
        words = f"1 cluster of Kubernetes {plan.control_plane.version}"
        yield "EKS extended support", "eks", "extended-support", 1, words
    tier = plan.control_plane.tier
    if tier != "standard":
        yield "EKS control-plane tier", "eks", tier, 1, f"1 {tier}"
    for shards in shards_of(plan.all_pools).values():
        if shards[0].provisioner == "auto-mode" and shards[0].window is None:
            yield _auto_mode(shards, plan.region, price_list)
    gateways, endpoints = nat_gateways(plan.network), endpoint_interfaces(plan.network)
    if gateways:
        yield "NAT gateways", "vpc", "nat-gateway", gateways, f"{gateways} gateways"
        words = f"{gateways} addresses of NAT gateways"
        yield "public IPv4 addresses", "vpc", "public-ipv4", gateways, words
    if endpoints:
        services = len(plan.network.interface_endpoints)
        words = f"{services} endpoints x {endpoints // services} zones"
        yield "interface endpoints", "vpc", "interface-endpoint", endpoints, words
    yield from _part_rows(plan.parts, "network")
    yield from _volumes([pool for pool in plan.all_pools if pool.window is None])
    for system in plan.storage.lustre:
        item = f"lustre-persistent-2-{system.throughput_mbps_per_tib}"
        words = f"{system.capacity_gib:,} GiB of {system.name}"
        yield f"FSx for Lustre {system.name}", "fsx", item, system.capacity_gib, words
    yield from _part_rows(plan.parts, "storage")


def _auto_mode(shards: Sequence[PoolPlan], region: str, price_list: PriceList) -> _Row:
    """Return the fee of EKS Auto Mode for a pool, the highest among its types.

    A type without a price makes the row its own, without a price.
    """
    pool = shards[0]
    nodes = sum(shard.max_nodes for shard in shards)
    fees = {
        instance_type: price_list.find(region, "eks", f"{AUTO_MODE}{instance_type}")
        for instance_type in pool.instance_types
    }
    name = max(fees, key=lambda type_: math.inf if (fee := fees[type_]) is None else fee.price)
    words = f"{nodes:,} nodes of {name}"
    return f"EKS Auto Mode fee of {pool.pool}", "eks", f"{AUTO_MODE}{name}", nodes, words


def _volumes(shards: Sequence[PoolPlan]) -> Iterator[_Row]:
    """Yield the root volumes of all nodes; HyperPod's are in AWS's account."""
    pools = [pool for pool in shards if pool.facts.in_account]
    for name, item, sizes, unit in (
        ("root volumes", "gp3", [pool.root_disk.size_gib for pool in pools], "GiB"),
        (
            "IOPS of root volumes",
            "gp3-iops",
            [max(0, pool.root_disk.iops - _FREE_IOPS) for pool in pools],
            f"IOPS above {_FREE_IOPS:,}",
        ),
        (
            "throughput of root volumes",
            "gp3-throughput",
            [max(0, pool.root_disk.throughput_mibps - _FREE_MIBPS) for pool in pools],
            f"MiB/s above {_FREE_MIBPS}",
        ),
    ):
        terms = [(pool.max_nodes, size) for pool, size in zip(pools, sizes, strict=True) if size]
        if terms:
            words = " + ".join(f"{nodes:,} x {size:,}" for nodes, size in terms)
            total = sum(nodes * size for nodes, size in terms)
            yield name, "ebs", item, total, f"({words}) {unit}"


def _part_rows(
    parts: Sequence[PlannedPart], behind: Literal["network", "storage"] | None
) -> Iterator[_Row]:
    """Yield the parts' items behind rows of the core; None: those paid by use."""
    for item in (item for part in parts for item in part.standing):
        if behind == (None if item.quantity is None else item.follows):
            yield item.name, item.service, item.item, item.quantity, item.words


def _usage(plan: ClusterPlan, load: Sequence[LoadNeed]) -> Iterator[_Row]:
    """Yield items paid by use; the load of the control plane states the log data."""
    if nat_gateways(plan.network):
        yield "data through NAT gateways", "vpc", "nat-gateway-data", None, "GB"
    if endpoint_interfaces(plan.network):
        yield "data through endpoints", "vpc", "interface-endpoint-data", None, "GB"
    lines = {row.name: row for row in load if row.group == "logs"}
    audit = lines.get("audit log")
    if audit is not None and audit.needed.value:
        gb = audit.needed.value * AUDIT_LINE_BYTES * _SECONDS / 1e9
        yield "audit log", "logs", "ingestion", gb, f"{gb:,.0f} GB a month, {audit.needed.formula}"
    flows = plan.network.flow_logs
    records = lines.get(f"VPC flow logs ({flows})")
    if records is not None and records.needed.value:
        gb = records.needed.value * FLOW_RECORD_BYTES * _SECONDS / 1e9
        words = f"{gb:,.0f} GB a month, {records.needed.formula}"
        yield "VPC flow logs", "logs", PRICED_AS[flows], gb, words
    yield from _part_rows(plan.parts, None)
    if plan.storage.buckets:
        yield "objects in S3", "s3", "standard", None, "GB-months"
    if plan.images.repositories:
        yield "images in ECR", "ecr", "storage", None, "GB-months"


def _item(
    kind: Literal["baseline", "usage"],
    row: _Row,
    region: str,
    price_list: PriceList,
    pool: PoolPlan | None = None,
) -> MoneyItem:
    name, service, item, quantity, words = row
    price = price_list.find(region, service, item)
    unit = price.unit if price is not None else unit_of(service, item) or "hour"
    key = f"money.item.{name}.usd_per_hour".replace(" ", "_")
    if price is None:
        formula = f"no price of {service} {item} in {region} is known"
    elif quantity is None:
        formula = f"${price.price:g} for each {unit}, by use"
    else:
        hours = "" if unit == "hour" else f" a month / {HOURS_OF_A_MONTH} hours"
        formula = f"{words} x ${price.price:g}{hours} in {region} on {price.valid_on}"
    value = None
    if price is not None and quantity is not None:
        value = quantity * price.price / (1 if unit == "hour" else HOURS_OF_A_MONTH)
    sources = () if price is None else (price.source,)
    hourly = Figure(id=key, value=value, unit=_USD_PER_HOUR, formula=formula, sources=sources)
    return MoneyItem(
        name=name,
        service=service,
        item=item,
        kind=kind,
        pool=None if pool is None else pool.pool,
        quantity=quantity,
        unit=unit,
        unit_price=None if price is None else price.price,
        currency=DOLLARS,
        valid_on=None if price is None else price.valid_on,
        source=None if price is None else price.source,
        usd_per_hour=hourly,
        usd_per_month=month(key.replace("usd_per_hour", "usd_per_month"), hourly, pool),
    )


def item_rows(needs: ClusterNeeds) -> Iterator[Row]:
    """Yield the things beside nodes, with the price of each and their sum."""
    for index, item in enumerate(needs.money.items):
        price = "unknown" if item.unit_price is None else f"{item.unit_price:g} / {item.unit}"
        cells = {"price": price}
        if item.kind == "usage" and item.quantity is None:
            cells |= dict.fromkeys(("usd_per_hour", "usd_per_month"), "by use")
        yield Row(f"money.items.{index}", cells)
