"""Drawing of a cluster: its VPC, zones, subnets, pools, file systems and control plane."""

from collections.abc import Iterator, Sequence

from ultrascale.plan.model import ClusterNeeds, PoolPart, SubnetKind, Topology
from ultrascale.plan.needs.pools import PURCHASES, purchase_of
from ultrascale.plan.needs.tables import Content, Line, figures_at, number_at
from ultrascale.report.drawing import GAP, LINE, PAD, WIDTH, Box, Card, Drawing, box_of, legend_of
from ultrascale.report.words import (
    SUBNETS,
    listed,
    owner_of,
    ranges,
    vpc_name,
    way_out,
)

_KINDS: Sequence[SubnetKind] = ("public", "control-plane", "private", "accelerated")
_GUTTER = 120
_LEAST_ZONE = 290
_MOST_TYPES = 3
_LEGEND = 280


def topology_drawing(needs: ClusterNeeds) -> Drawing:
    """Return the drawing of a cluster: columns for zones, bands for kinds of subnets."""
    parts = needs.topology
    column = max((WIDTH - _GUTTER - 3 * PAD) // len(parts.zones), _LEAST_ZONE)
    width = len(parts.zones) * column + _GUTTER + 3 * PAD
    title = Card((("h b", f"{needs.name} in {needs.region}"),), "region")
    head = box_of(title, 2, 2, width - 4)
    half = (width - 2 * PAD - GAP) // 2
    panels = [
        box_of(card, PAD + place * (half + GAP), head.end - GAP, half)
        for place, card in enumerate((_control_plane(needs), _storage(parts)))
    ]
    height = max(panel.height for panel in panels)
    vpc = box_of(_vpc_card(parts), PAD, panels[0].y + height + GAP, width - 2 * PAD)
    boxes, bottom = _zone_boxes(needs, vpc.end - GAP, column)
    fills = [*dict.fromkeys(pool.purchase for pool in parts.pools)]
    names = {fill: (fill, (PURCHASES.get(fill, fill),)) for fill in fills}
    legend = legend_of(bottom + PAD + GAP, _LEGEND, names)
    end = legend[-1].end
    frames = (
        head._replace(height=end - 2),
        *(panel._replace(height=height) for panel in panels),
        vpc._replace(height=bottom + GAP - vpc.y),
    )
    return Drawing(width, end + 2, (*frames, *boxes, *legend))


def _control_plane(needs: ClusterNeeds) -> Card:
    parts, figures = needs.topology, needs.control_plane.figures
    public = f", and public from {ranges(parts.public_cidrs)}" if parts.public_cidrs else ""
    stored, most = (figures[key].value or 0 for key in ("database", "tier_database"))
    at = "control_plane.figures"
    words = (
        number_at(f"{at}.database.value", stored, places=2),
        " of ",
        number_at(f"{at}.tier_database.value", most),
        " GB of objects stored",
    )
    rows = (
        ("h b", "EKS control plane" + (" with Auto Mode" if parts.auto_mode else "")),
        ("t", f"Kubernetes {parts.kubernetes}, tier: {parts.tier}"),
        ("t m", f"endpoint: private{public}"),
        ("t m", words),
    )
    return Card(rows, "panel", share=stored / (most or 1))


def _storage(parts: Topology) -> Card:
    names = {
        "S3 buckets": parts.buckets,
        "ECR": parts.repositories,
        "database": (parts.database,) if parts.database is not None else (),
    }
    rows = tuple(("t", f"{kind}: {', '.join(own)}") for kind, own in names.items() if own)
    return Card(
        (("h b", "Buckets, images, database"), *(rows or (("t m", "none in the file"),))), "panel"
    )


def _vpc_card(parts: Topology) -> Card:
    rows: list[tuple[str, Content | Line]] = [("h b", vpc_name(parts))]
    if parts.secondary_cidrs:
        rows.append(("t m", f"secondary: {ranges(parts.secondary_cidrs)}"))
    logs = f", flow logs: {parts.flow_logs}" if parts.existing is None else ""
    if parts.nat_gateways:
        gateways = number_at("topology.nat_gateways", parts.nat_gateways)
        rows.append(("t", (gateways, f" NAT gateways{logs}")))
    else:
        ways = "; ".join(filter(None, (owner_of(parts), way_out(parts))))
        rows.append(("t", f"{ways}{logs}"))
    made = (*(f"{name} (gateway)" for name in parts.gateway_endpoints), *parts.interface_endpoints)
    interfaces = number_at("topology.endpoint_interfaces", parts.endpoint_interfaces)
    if made or not parts.present_endpoints:
        rows.append(("t", ("endpoints, with ", interfaces, " interfaces:")))
        rows.append(("s m", ", ".join(made)))
    if parts.present_endpoints:
        rows.append(("t", "endpoints that are there:"))
        rows.append(("s m", ", ".join(parts.present_endpoints)))
    return Card(tuple(rows), "vpc")


def _zone_boxes(needs: ClusterNeeds, top: int, column: int) -> tuple[list[Box], int]:
    """Return the boxes of the zones from ``top`` down, and their lower edge."""
    zones, left = needs.topology.zones, 2 * PAD + _GUTTER
    boxes: list[Box] = []
    # Lower edge of each column's contents.
    ends = [top + 2 * LINE] * len(zones)
    for kind in _KINDS:
        cards = [*_subnets(needs, kind)]
        if not cards:
            continue
        start = max(ends)
        ends = [start] * len(zones)
        label = Card((("t b", SUBNETS[kind]), ("t b", "subnets")))
        boxes.append(box_of(label, left - _GUTTER, start, _GUTTER - GAP))
        for names, card in (*cards, *_pools(needs, kind), *_disks(needs, kind)):
            places = sorted(zones.index(name) for name in names)
            span = slice(places[0], places[-1] + 1)
            width = len(ends[span]) * column - 2 * GAP - PAD
            box = box_of(card, left + span.start * column + GAP, max(ends[span]), width)
            boxes.append(box)
            ends[span] = [box.end] * len(ends[span])
    bottom = max(ends)
    columns = [
        box_of(Card((("n b", zone),), "zone"), left + i * column, top, column - PAD, bottom - top)
        for i, zone in enumerate(zones)
    ]
    return [*columns, *boxes], bottom


_Placed = Iterator[tuple[Sequence[str], Card]]
"""Cards with the zones in which they are drawn."""


def _subnets(needs: ClusterNeeds, kind: SubnetKind) -> _Placed:
    for index, subnets in enumerate(needs.subnets):
        if subnets.kind == kind:
            keys = ("addresses_needed", "addresses", "addresses_free")
            figures = subnets.figures
            needed, whole, free = figures_at(f"subnets.{index}.figures", figures, *keys)
            rows: tuple[tuple[str, Content | Line], ...] = (
                ("t", ranges(subnets.cidrs)),
                ("s m", (needed, " of ", whole, " addresses")),
                ("s m", (free, " free")),
            )
            used, most = (figures[key].value or 0 for key in keys[:2])
            yield (subnets.zone,), Card(rows, share=used / (most or 1))


def _pools(needs: ClusterNeeds, kind: SubnetKind) -> _Placed:
    zones = needs.topology.zones
    for index, pool in enumerate(needs.topology.pools):
        if pool.subnets == kind:
            rows: list[tuple[str, Content | Line]] = [
                ("n b", pool.pool),
                ("n b", _counts(f"topology.pools.{index}", pool)),
                ("t", ", ".join(filter(None, (purchase_of(pool), pool.reservation)))),
                ("t m", listed(pool.instance_types, _MOST_TYPES)),
                ("t m", _equipment(pool)),
            ]
            places = [zones.index(zone) for zone in pool.zones]
            if len(places) <= max(places) - min(places):
                rows.append(("t m", f"not in all of these zones: in {', '.join(pool.zones)}"))
            yield pool.zones, Card(tuple(rows), "card", fill=pool.purchase)


def _counts(at: str, pool: PoolPart) -> Line:
    most = number_at(f"{at}.nodes_max", pool.nodes_max)
    if pool.shards > 1:
        shards = number_at(f"{at}.shards", pool.shards)
        nodes = number_at(f"{at}.nodes_of_shard", pool.nodes_of_shard)
        if pool.shards * pool.nodes_of_shard == pool.nodes_max == pool.nodes_min:
            return (shards, " x ", nodes, " = ", most, " nodes")
    if pool.nodes_min == pool.nodes_max:
        return (most, " nodes")
    return (number_at(f"{at}.nodes_min", pool.nodes_min), " to ", most, " nodes")


def _equipment(pool: PoolPart) -> str:
    words = [pool.provisioner]
    if pool.accelerator is not None:
        words.append(f"{pool.accelerators_per_node} x {pool.accelerator} a node")
    if pool.efa_interfaces:
        words.append(f"{pool.efa_interfaces} EFA")
    if pool.placement_group:
        words.append("placement group")
    return ", ".join(words)


def _disks(needs: ClusterNeeds, kind: SubnetKind) -> _Placed:
    # FSx's interfaces lie in the first private subnet of the zone.
    for index, disk in enumerate(needs.topology.file_systems if kind == "private" else ()):
        at = f"topology.file_systems.{index}"
        line: Line = (f"existing, {disk.existing}",)
        if disk.capacity_gib is not None and disk.throughput_mbps_per_tib is not None:
            size = number_at(f"{at}.capacity_gib", disk.capacity_gib)
            speed = number_at(f"{at}.throughput_mbps_per_tib", disk.throughput_mbps_per_tib)
            line = (size, " GiB, ", speed, " MB/s per TiB")
        bucket = () if disk.bucket is None else (("t m", f"shows {disk.bucket}"),)
        name = f"FSx for Lustre: {disk.name}"
        yield (disk.zone,), Card((("n b", name), ("t m", line), *bucket), "card")
