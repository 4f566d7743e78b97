"""Drawing of a cluster: its VPC, zones, subnets, pools, file systems and control plane."""

from collections.abc import Iterator, Sequence

from ultrascale.plan.model import (
    ClusterNeeds,
    FileSystemPart,
    PoolPart,
    SubnetKind,
    SubnetNeeds,
)
from ultrascale.report.markup import Content, Markup, shown
from ultrascale.report.svg import Canvas, cut, text_width, width_of, wrapped
from ultrascale.report.words import (
    PURCHASES,
    SUBNETS,
    owner_of,
    purchase_of,
    ranges,
    vpc_name,
    way_out,
)

WIDTHS = {"wide": 1160.0, "medium": 740.0, "narrow": 360.0}
"""Widths of the drawing, in pixels, for the widths of screens."""

_KINDS: Sequence[SubnetKind] = ("public", "control-plane", "private", "accelerated")
_LEAST_COLUMN, _LEAST_CARD, _LEAST_CELL = 230.0, 330.0, 215.0
_PAD, _GAP = 14.0, 10.0
_GUTTER = 100.0
_LINE = 16.0
_STRIPE = 10.0
_BOX = 116.0
_SQUARE = 9.0
_MOST_TYPES = 3
_DISK = 52.0
_REGION, _VPC, _ZONE = range(3)


def draw_topology(
    needs: ClusterNeeds, id: str, width: float, *, class_: str | None = None, style: str = ""
) -> Markup:
    """Return the drawing of a cluster.

    Args:
        needs: The cluster.
        id: Prefix of the ids in the drawing.
        width: Its width, in pixels; a zone is a column where there is room for it.
        class_: Class of the element.
        style: Style sheet of a drawing that stands alone, with a background of its own.
    """
    drawing = _Drawing(needs, id, width)
    height = drawing.draw()
    return drawing.canvas.document(
        height,
        title=f"Topology of {needs.name} in {needs.region}",
        description=described(needs),
        class_=class_,
        style=style,
        background=bool(style),
    )


def described(needs: ClusterNeeds) -> str:
    """Return what the drawing shows, in words."""
    parts = needs.topology
    pools = "; ".join(
        f"{pool.pool}: {pool.nodes_min:,} to {pool.nodes_max:,} nodes, {purchase_of(pool)}, in "
        f"{', '.join(pool.zones)}"
        for pool in parts.pools
    )
    return (
        f"{vpc_name(parts)} in the zones {', '.join(parts.zones)}, with an EKS control plane of "
        f"tier {parts.tier}. Pools: {pools}."
    )


class _Drawing:
    """A drawing of one width, from its top to its bottom.

    Attributes:
        canvas: Where it is drawn.
    """

    def __init__(self, needs: ClusterNeeds, id: str, width: float) -> None:
        self.canvas = Canvas(id, width)
        self._needs = needs
        self._parts = needs.topology
        self._is_wide = width > WIDTHS["narrow"]
        self._y = 2.0

    def draw(self) -> float:
        """Draw all of it; returns the height."""
        top, (left, right) = self._y, (2.0, self.canvas.width - 2.0)
        self._y += 26
        name = f"{self._needs.name} in {self._needs.region}"
        width = right - left - 2 * _PAD
        self._y = self.canvas.paragraph(left + _PAD, self._y, name, width, 15, "h b") + 14
        self._beside_the_vpc(left + _PAD, right - _PAD)
        self._vpc(left + _PAD, right - _PAD)
        self._legend(left + _PAD, right - _PAD)
        self.canvas.rect(left, top, right - left, self._y - top, "region", radius=12, layer=_REGION)
        return self._y + 2

    # --- Beside the VPC -----------------------------------------------------------------------

    def _beside_the_vpc(self, left: float, right: float) -> None:
        top = self._y
        if self._is_wide:
            middle = left + (right - left) * 0.5
            heights = (
                self._control_plane(left, middle - _GAP / 2, top),
                self._services(middle + _GAP / 2, right, top),
            )
            height = max(heights)
            self._panel(left, top, middle - _GAP / 2 - left, height)
            self._panel(middle + _GAP / 2, top, right - middle - _GAP / 2, height)
        else:
            first = self._control_plane(left, right, top)
            self._panel(left, top, right - left, first)
            second = self._services(left, right, top + first + _GAP)
            self._panel(left, top + first + _GAP, right - left, second)
            height = first + _GAP + second
        self._y = top + height + _GAP + 4

    def _panel(self, x: float, y: float, width: float, height: float) -> None:
        self.canvas.rect(x, y, width, height, "panel", radius=8, layer=_VPC)

    def _control_plane(self, left: float, right: float, top: float) -> float:
        """Draw what the box of the control plane holds; returns its height."""
        parts, figures = self._parts, self._needs.control_plane.figures
        at, width = "control_plane.figures", right - left - 2 * _PAD
        x, y = left + _PAD, top + 24
        title = "EKS control plane"
        self.canvas.write(
            x, y, title + (" with Auto Mode" if parts.auto_mode else ""), class_="h b"
        )
        y += 21
        line = f"Kubernetes {parts.kubernetes}, tier: {parts.tier}"
        y = self.canvas.paragraph(x, y, line, width, 12) + _LINE
        public = f", and public from {ranges(parts.public_cidrs)}" if parts.public_cidrs else ""
        y = self.canvas.paragraph(x, y, f"endpoint: private{public}", width, 12, "t m") + _LINE
        stored, most = figures["database"], figures["tier_database"]
        self.canvas.write(
            x,
            y,
            shown(f"{at}.database.value", stored.value, places=2),
            " of ",
            shown(f"{at}.tier_database.value", most.value),
            " GB of objects stored",
            class_="t m",
        )
        y += 8
        self._bar(x, y, width, stored.value or 0, most.value or 1)
        return max(y + 7 + _PAD - top, _BOX)

    def _services(self, left: float, right: float, top: float) -> float:
        """Draw what the box of storage and images holds; returns its height."""
        parts, width = self._parts, right - left - 2 * _PAD
        rows = {
            "S3 buckets": parts.buckets,
            "ECR": parts.repositories,
            "database": (parts.database,) if parts.database is not None else (),
        }
        x, y, indent = left + _PAD, top + 24, 92.0
        self.canvas.write(x, y, "Storage and images", class_="h b")
        y += 5
        for title, names in rows.items():
            for index, line in enumerate(wrapped(names, width - indent, 12)):
                y += _LINE
                if not index:
                    self.canvas.write(x, y, title, class_="t m")
                self.canvas.write(x + indent, y, line)
        if not any(rows.values()):
            y += _LINE
            self.canvas.write(x, y, "none in the file", class_="t m")
        return max(y + _PAD - top, _BOX if self._is_wide else 0)

    # --- The VPC ------------------------------------------------------------------------------

    def _vpc(self, left: float, right: float) -> None:
        parts, top = self._parts, self._y
        x, width = left + _PAD, right - left - 2 * _PAD
        self._y += 24
        self.canvas.write_cut(x, self._y, vpc_name(parts), width, 15, "h b")
        if parts.secondary_cidrs:
            line = f"secondary: {ranges(parts.secondary_cidrs)}"
            self._y = self.canvas.paragraph(x, self._y + 18, line, width, 12, "t m")
        self._y += 18
        if not parts.nat_gateways:
            words = "; ".join(filter(None, (owner_of(parts), way_out(parts))))
            logs = f", flow logs: {parts.flow_logs}" if parts.existing is None else ""
            self._y = self.canvas.paragraph(x, self._y, f"{words}{logs}", width, 12)
        else:
            self.canvas.write(
                x,
                self._y,
                shown("topology.nat_gateways", parts.nat_gateways),
                f" NAT gateways, flow logs: {parts.flow_logs}",
            )
        self._endpoints(x, width)
        self._y += 14
        if (right - left - _GUTTER) / len(parts.zones) >= _LEAST_COLUMN:
            self._zones(left + _GAP, right - _GAP)
        else:
            self._stacked(left + _GAP, right - _GAP)
        self._y += _GAP
        self.canvas.rect(left, top, right - left, self._y - top, "vpc", radius=10, layer=_VPC)

    def _endpoints(self, x: float, width: float) -> None:
        parts = self._parts
        self._y += 19
        interfaces = shown("topology.endpoint_interfaces", parts.endpoint_interfaces)
        gateways = [f"{name} (gateway)" for name in parts.gateway_endpoints]
        made = [*gateways, *parts.interface_endpoints]
        if made or not parts.present_endpoints:
            self.canvas.write(x, self._y, "endpoints, with ", interfaces, " interfaces:")
            self._listed(x, made, width)
        if parts.present_endpoints:
            self._y += 19 if made else 0
            self.canvas.write(x, self._y, "endpoints that are there:")
            self._listed(x, parts.present_endpoints, width)

    def _listed(self, x: float, names: Sequence[str], width: float) -> None:
        for line in wrapped(names, width, 11):
            self._y += 15
            self.canvas.write(x, self._y, line, class_="s m")

    def _zones(self, left: float, right: float) -> None:
        """Draw a column a zone, crossed by a band a kind of subnets."""
        zones, top = self._parts.zones, self._y
        first = left + _GUTTER
        width = (right - first - _GAP * (len(zones) - 1)) / len(zones)
        starts = [first + index * (width + _GAP) for index in range(len(zones))]
        for zone, start in zip(zones, starts, strict=True):
            self.canvas.write_cut(start + _GAP, top + 22, zone, width - 2 * _GAP, 13, "t b")
        self._y += 32
        for kind in _KINDS:
            self._band(kind, left, starts, width)
        self._y += 2
        for start in starts:
            self.canvas.rect(start, top, width, self._y - top, "zone", radius=8, layer=_ZONE)

    def _band(self, kind: SubnetKind, left: float, starts: Sequence[float], width: float) -> None:
        cells = [*self._cells(kind)]
        if not cells:
            return
        zones, inner = self._parts.zones, width - 2 * _GAP
        self.canvas.line(left, self._y, starts[-1] + width, self._y, "grid")
        for line, words in enumerate((SUBNETS[kind], "subnets")):
            self.canvas.write(left + 2, self._y + 22 + _LINE * line, words, class_="t b")
        # How far each column is filled.
        ends = [self._y + 8] * len(zones)
        for index, subnets in cells:
            column = zones.index(subnets.zone)
            ends[column] += self._cell(index, subnets, starts[column] + _GAP, ends[column], inner)
        for index, pool in self._pools(kind):
            columns = sorted(zones.index(zone) for zone in pool.zones)
            low, high = columns[0], columns[-1]
            whole = (high - low + 1) * (width + _GAP) - _GAP - 2 * _GAP
            top = max(ends[low : high + 1])
            apart = len(columns) <= high - low
            height = self._pool(index, pool, starts[low] + _GAP, top, whole, zones=apart)
            ends[low : high + 1] = [top + height] * (high - low + 1)
        for index, disk in self._disks(kind):
            column = zones.index(disk.zone)
            ends[column] += self._disk(index, disk, starts[column] + _GAP, ends[column], inner)
        self._y = max(ends) + 2

    def _stacked(self, left: float, right: float) -> None:
        """Draw a band a kind of subnets, with all parts below each other, or side by side."""
        count = max(int((right - left) // _LEAST_CARD), 1)
        width = (right - left - _GAP * (count - 1)) / count
        for kind in _KINDS:
            cells = [*self._cells(kind)]
            if not cells:
                continue
            top = self._y
            self.canvas.write(left + _GAP, top + 22, f"{SUBNETS[kind]} subnets", class_="t b")
            ends = [self._stacked_cells(cells, left + _GAP, right, top + 32)] * count
            for index, pool in self._pools(kind):
                x, column = self._shortest(ends, left + _GAP, width)
                inner = width - 2 * _GAP
                ends[column] += self._pool(index, pool, x, ends[column], inner, zones=True)
            for index, disk in self._disks(kind):
                x, column = self._shortest(ends, left + _GAP, width)
                ends[column] += self._disk(index, disk, x, ends[column], width - 2 * _GAP)
            self._y = max(ends) + 2
            self.canvas.rect(left, top, right - left, self._y - top, "zone", radius=8, layer=_ZONE)
            self._y += _GAP

    def _stacked_cells(
        self, cells: Sequence[tuple[int, SubnetNeeds]], left: float, right: float, top: float
    ) -> float:
        """Draw the ranges of each zone, side by side where there is room; returns the end."""
        count = min(max(int((right - left) // _LEAST_CELL), 1), len(cells))
        width = (right - left - _GAP * (count - 1)) / count
        ends = [top] * count
        for index, subnets in cells:
            x, column = self._shortest(ends, left, width)
            inner = width - _GAP
            ends[column] += self._cell(index, subnets, x, ends[column], inner, zone=True)
        return max(ends)

    def _shortest(self, ends: Sequence[float], left: float, width: float) -> tuple[float, int]:
        column = ends.index(min(ends))
        return left + column * (width + _GAP), column

    def _cells(self, kind: SubnetKind) -> Iterator[tuple[int, SubnetNeeds]]:
        for index, subnets in enumerate(self._needs.subnets):
            if subnets.kind == kind:
                yield index, subnets

    def _pools(self, kind: SubnetKind) -> Iterator[tuple[int, PoolPart]]:
        for index, pool in enumerate(self._parts.pools):
            if pool.subnets == kind:
                yield index, pool

    def _disks(self, kind: SubnetKind) -> Iterator[tuple[int, FileSystemPart]]:
        # FSx's interfaces lie in the first private subnet of the zone.
        yield from enumerate(self._parts.file_systems) if kind == "private" else ()

    # --- What lies in a zone ------------------------------------------------------------------

    def _cell(
        self,
        index: int,
        subnets: SubnetNeeds,
        x: float,
        y: float,
        width: float,
        *,
        zone: bool = False,
    ) -> float:
        """Draw the ranges of a kind of subnets in a zone; returns the height."""
        at, figures, top = f"subnets.{index}.figures", subnets.figures, y
        y += 14
        if zone:
            self.canvas.write_cut(x, y, subnets.zone, width, 12, "t b")
            y += _LINE
        y = self.canvas.paragraph(x, y, ranges(subnets.cidrs), width, 12) + 7
        used, whole = figures["addresses_needed"].value or 0, figures["addresses"].value or 1
        self._bar(x, y, width, used, whole)
        y += 20
        taken = shown(f"{at}.addresses_needed.value", used)
        total = shown(f"{at}.addresses.value", whole)
        free = shown(f"{at}.addresses_free.value", figures["addresses_free"].value)
        first: list[Content] = [taken, " of ", total, " addresses"]
        second: list[Content] = [free, " free"]
        self.canvas.write(x, y, *first, class_="s m")
        if text_width(first, 11) + text_width(second, 11) + 8 > width:
            y += _LINE
            self.canvas.write(x, y, *second, class_="s m")
        else:
            self.canvas.write(x + width, y, *second, class_="s m", anchor="end")
        return y + 14 - top

    def _bar(self, x: float, y: float, width: float, used: float, whole: float) -> None:
        share = used / whole
        self.canvas.rect(x, y, width, 7, "track", radius=3)
        filled = max(width * min(share, 1), 2.0 if used else 0.0)
        self.canvas.rect(x, y, filled, 7, "over" if share > 1 else "used", radius=3)

    def _pool(
        self, index: int, pool: PoolPart, x: float, y: float, width: float, *, zones: bool
    ) -> float:
        """Draw the card of a pool; returns its height and the gap below it."""
        at, top = f"topology.pools.{index}", y
        inner, room = x + _STRIPE + 10, width - _STRIPE - 20
        counts = _counts(at, pool)
        count_width = text_width(counts, 13, bold=True)
        y += 20
        if width_of(pool.pool, 13, bold=True) + count_width + 12 <= room:
            self.canvas.write(x + width - 10, y, *counts, class_="n b", anchor="end")
            self.canvas.write(inner, y, pool.pool, class_="n b")
        else:
            y = self.canvas.paragraph(inner, y, pool.pool, room, 13, "n b") + 18
            self.canvas.write(inner, y, *counts, class_="n b")
        for words, class_ in _lines(pool, room, zones=zones):
            y += _LINE
            self.canvas.write(inner, y, words, class_=class_)
        most = int(room // (_SQUARE + 3))
        if 1 < pool.shards <= most:
            y += 8
            for shard in range(pool.shards):
                place = inner + shard * (_SQUARE + 3)
                self.canvas.swatch(place, y, _SQUARE, _SQUARE, pool.purchase)
            y += _SQUARE - 3
        height = y + 11 - top
        self.canvas.rect(x, top, width, height, "card", radius=6, layer=_ZONE + 1)
        self.canvas.swatch(x, top, _STRIPE, height, pool.purchase)
        return height + _GAP

    def _disk(self, index: int, disk: FileSystemPart, x: float, y: float, width: float) -> float:
        """Draw the card of a file system; returns its height and the gap below it."""
        at = f"topology.file_systems.{index}"
        self.canvas.rect(x, y, width, _DISK, "card", radius=6, layer=_ZONE + 1)
        left, top = x + 10, y + 14
        self.canvas.path(_cylinder(left, top, 18, 25), "disk")
        self.canvas.path(f"M{left:g} {top + 3:g}a9 3 0 0 0 18 0", "disk")
        name = f"FSx for Lustre: {disk.name}"
        self.canvas.write_cut(x + 38, y + 21, name, width - 48, 13, "n b")
        if disk.capacity_gib is None or disk.throughput_mbps_per_tib is None:
            line: list[Content] = [f"existing, {disk.existing}"]
        else:
            size = shown(f"{at}.capacity_gib", disk.capacity_gib)
            speed = shown(f"{at}.throughput_mbps_per_tib", disk.throughput_mbps_per_tib)
            line = [size, " GiB, ", speed, " MB/s per TiB"]
        bucket = f", shows {disk.bucket}" if disk.bucket is not None else ""
        room = width - 48 - text_width(line, 12)
        if bucket and room > width_of(", shows …", 12):
            line.append(cut(bucket, room, 12))
        self.canvas.write(x + 38, y + 39, *line, class_="t m")
        return _DISK + _GAP

    def _legend(self, left: float, right: float) -> None:
        kinds = [*dict.fromkeys(pool.purchase for pool in self._parts.pools)]
        self._y += 14
        x = left
        for kind in kinds:
            words = PURCHASES.get(kind, kind)
            width = 28 + width_of(words, 12) + 16
            if x > left and x + width > right:
                x, self._y = left, self._y + 20
            self.canvas.swatch(x, self._y, 20, 13, kind)
            self.canvas.write(x + 28, self._y + 11, words)
            x += width
        self._y += 13 + _PAD


def _counts(at: str, pool: PoolPart) -> list[Content]:
    most = shown(f"{at}.nodes_max", pool.nodes_max)
    if pool.shards > 1:
        shards = shown(f"{at}.shards", pool.shards)
        each = shown(f"{at}.nodes_of_shard", pool.nodes_of_shard)
        if pool.shards * pool.nodes_of_shard == pool.nodes_max == pool.nodes_min:
            return [shards, " x ", each, " = ", most, " nodes"]
    if pool.nodes_min == pool.nodes_max:
        return [most, " nodes"]
    return [shown(f"{at}.nodes_min", pool.nodes_min), " to ", most, " nodes"]


def _lines(pool: PoolPart, room: float, *, zones: bool) -> list[tuple[str, str]]:
    """Return what a card says below its name, each line with its class: in one where they fit."""
    bought = [purchase_of(pool), *([pool.reservation] if pool.reservation else [])]
    where = [pool.zones] if zones else []
    types = [*pool.instance_types[:_MOST_TYPES]]
    if more := len(pool.instance_types) - len(types):
        types.append(f"and {more} more")
    parts = [bought, types, _equipment(pool)]
    all_words = "; ".join(", ".join(part) for part in parts)
    if not where and width_of(all_words, 12) <= room:
        return [(all_words, "t m")]
    return [
        (line, "t m" if index else "t")
        for index, part in enumerate([*parts, *where])
        for line in wrapped([*part], room, 12)
    ]


def _equipment(pool: PoolPart) -> list[str]:
    words = [pool.provisioner]
    if pool.accelerator is not None:
        words.append(f"{pool.accelerators_per_node} x {pool.accelerator} a node")
    if pool.efa_interfaces:
        words.append(f"{pool.efa_interfaces} EFA")
    if pool.placement_group:
        words.append("placement group")
    return words


def _cylinder(x: float, y: float, width: float, height: float) -> str:
    half = width / 2
    return (
        f"M{x:g} {y + 3:g}a{half:g} 3 0 0 1 {width:g} 0v{height - 6:g}"
        f"a{half:g} 3 0 0 1 -{width:g} 0z"
    )
