"""Check that the file's address ranges hold its nodes, with larger ranges as the remedy."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from ipaddress import IPv4Network

from ultrascale import config
from ultrascale.catalog import vpc
from ultrascale.frozen import Frozen
from ultrascale.plan.model import SubnetPlan
from ultrascale.plan.network.demand import Demand, Nodes, demands, holds, per_zone
from ultrascale.plan.network.subnets import (
    WARM_PREFIXES,
    accelerated_subnets,
    longest_pod_mask,
    longest_vpc_mask,
    primary_subnets,
)
from ultrascale.plan.rules import rule

_LARGEST = vpc.LARGEST_RANGE_MASK
_LARGEST_RANGE = IPv4Network((0, _LARGEST))
_FEWER = "ask for fewer nodes, or spread them over more zones"


class PodRanges(Frozen):
    """Layout of the secondary ranges."""

    subnets: tuple[SubnetPlan, ...]  # In the order in which ranges were added
    prefixes_per_node: int  # /28 prefixes that each of their nodes may hold
    plain: bool  # Whether nodes of NodePools without accelerators use them too
    by_need: bool  # Whether zones get further ranges by their needs, not in turn
    short: str | None  # The zone with too little room, as a sentence; None where all have enough


class AddressCheck(Frozen):
    """The ranges of a cluster, beside its nodes' needs."""

    vpc_cidr: IPv4Network  # Primary range
    # Secondary ranges as the file states them.
    pod_cidrs: tuple[IPv4Network, ...] | config.PodBlocks
    zones: tuple[str, ...]  # Zones that get subnets

    def pod_ranges(self, demands: Sequence[Demand]) -> PodRanges:
        """Lay the secondary ranges out for ``demands``, in the first way that holds them.

        Zones get ranges in turn, with a prefix in reserve on each node; then with a single one;
        then with a single one and by the zones' needs. The first two have the same subnets.
        """
        blocks = config.blocks(self.pod_cidrs)
        _, inside, plain = self._divided(demands)
        return self._layout(blocks, inside, plain=plain)

    def enough_blocks(self, demands: Sequence[Demand]) -> int | None:
        """Return the least number of the largest pod ranges that hold ``demands``, if any does."""
        _, inside, _ = self._divided(demands)
        counts = range(1, vpc.MOST_IPV4_RANGES)
        return _first_index(counts, lambda n: self._are_enough([_LARGEST_RANGE] * n, inside))

    def mistakes(self, demands: Sequence[Demand]) -> Iterator[config.Mistake]:
        """Yield ranges of a network that are too small at full size, with sufficient ones."""
        blocks = config.blocks(self.pod_cidrs)
        private, inside, plain = self._divided(demands)
        if (wrong := self._why_vpc_is_small(self.vpc_cidr.prefixlen, private)) is not None:
            todo = self._larger_vpc(private)
            if todo is None and not blocks:
                todo = self._pod_ranges_beside(demands)
            yield config.refuse("vpc_cidr", wrong, todo or _FEWER)
        wrong = self._layout(blocks, inside, plain=plain).short if blocks else None
        if wrong is not None:
            todo = self._larger_blocks(blocks, inside) or _FEWER
            yield config.refuse("pod_cidrs", wrong, todo)

    def _divided(self, demands: Sequence[Demand]) -> tuple[Nodes, Nodes, bool]:
        """Return the nodes for the VPC's own range, and those for the pod ranges.

        Nodes without accelerators that may move to the pod ranges do so where the VPC's own range
        does not hold them; the third value says whether they do.
        """
        if not config.blocks(self.pod_cidrs):
            return per_zone(demands), {}, False
        plain = [demand for demand in demands if not demand.accelerated]
        staying = [demand for demand in plain if not demand.movable]
        length = self.vpc_cidr.prefixlen
        if len(staying) == len(plain) or self._why_vpc_is_small(length, per_zone(plain)) is None:
            return (
                per_zone(plain),
                per_zone(demand for demand in demands if demand.accelerated),
                False,
            )
        inside = (demand for demand in demands if demand.accelerated or demand.movable)
        return per_zone(staying), per_zone(inside), True

    def _why_vpc_is_small(self, mask: int, nodes: Nodes) -> str | None:
        if mask > longest_vpc_mask(len(self.zones)):
            return f"too small for {len(self.zones)} zones"
        subnets = primary_subnets(IPv4Network((0, mask)), self.zones)
        private = [subnet for subnet in subnets if subnet.kind == "private"]
        return _short_zone(private, nodes, prefixes_per_node=WARM_PREFIXES)

    def _layout(
        self, blocks: Sequence[IPv4Network], nodes: Nodes, *, plain: bool = False
    ) -> PodRanges:
        if blocks and blocks[0].prefixlen > longest_pod_mask(len(self.zones)):
            short = f"too small for {len(self.zones)} zones"
            return PodRanges(
                subnets=(), prefixes_per_node=1, plain=plain, by_need=False, short=short
            )
        counts = {zone: demand.nodes for zone, demand in nodes.items()}
        in_turn = self._dealt_layout(blocks, nodes, prefixes=WARM_PREFIXES, plain=plain)
        if in_turn.short is None:
            return in_turn
        single = self._dealt_layout(blocks, nodes, prefixes=1, plain=plain)
        if single.short is None:
            return single
        by_need = self._dealt_layout(blocks, nodes, prefixes=1, plain=plain, counts=counts)
        return by_need if by_need.short is None else in_turn

    def _dealt_layout(
        self,
        blocks: Sequence[IPv4Network],
        nodes: Nodes,
        *,
        prefixes: int,
        plain: bool,
        counts: Mapping[str, int] | None = None,
    ) -> PodRanges:
        subnets = tuple(
            accelerated_subnets(blocks, self.zones, prefixes_per_node=prefixes, nodes=counts)
        )
        short = _short_zone(subnets, nodes, prefixes_per_node=prefixes)
        return PodRanges(
            subnets=subnets,
            prefixes_per_node=prefixes,
            plain=plain,
            by_need=counts is not None,
            short=short,
        )

    def _larger_vpc(self, nodes: Nodes) -> str | None:
        masks = range(self.vpc_cidr.prefixlen - 1, _LARGEST - 1, -1)
        mask = _first_index(masks, lambda mask: self._why_vpc_is_small(mask, nodes) is None)
        return None if mask is None else _mask(mask)

    def _pod_ranges_beside(self, demands: Sequence[Demand]) -> str | None:
        """Return the remedy where nodes that may use pod ranges crowd the others out."""
        inside = per_zone(demand for demand in demands if demand.accelerated)
        others = per_zone(demand for demand in demands if not demand.accelerated)
        if not inside or self._too_many_for_any_vpc(others):
            inside = per_zone(demand for demand in demands if demand.accelerated or demand.movable)
            others = per_zone(
                demand for demand in demands if not (demand.accelerated or demand.movable)
            )
        if not inside:
            return None
        counts = range(1, vpc.MOST_IPV4_RANGES)
        count = _first_index(counts, lambda n: self._are_enough([_LARGEST_RANGE] * n, inside))
        if count is None:
            return None
        ranges = f"add network.pod_cidrs: {{count: {count}, from: RANGE}}"
        if self._why_vpc_is_small(self.vpc_cidr.prefixlen, others) is None:
            return ranges
        larger = self._larger_vpc(others)
        return None if larger is None else f"{larger}, and {ranges}"

    def _too_many_for_any_vpc(self, nodes: Nodes) -> bool:
        return self._why_vpc_is_small(_LARGEST, nodes) is not None

    def _larger_blocks(self, blocks: Sequence[IPv4Network], nodes: Nodes) -> str | None:
        if isinstance(self.pod_cidrs, config.PodBlocks):
            counts = range(self.pod_cidrs.count + 1, vpc.MOST_IPV4_RANGES)
            count = _first_index(counts, lambda n: self._are_enough([_LARGEST_RANGE] * n, nodes))
            if count is None:
                return None
            there = 2 ** (_LARGEST - self.pod_cidrs.from_.prefixlen)
            return f"write count: {count}" + (" of a larger range" if count > there else "")
        first, *rest = blocks
        masks = range(first.prefixlen - 1, _LARGEST - 1, -1)
        mask = _first_index(masks, lambda m: self._are_enough([IPv4Network((0, m)), *rest], nodes))
        more = self._more_blocks(blocks, nodes)
        if mask is not None and (more is None or not rest):
            return _mask(mask) + (" first" if rest else "")
        if more is not None:
            return f"add {more}"
        more = self._more_blocks([_LARGEST_RANGE, *rest], nodes)
        return None if more is None else f"use a /{_LARGEST} first, and add {more}"

    def _more_blocks(self, blocks: Sequence[IPv4Network], nodes: Nodes) -> str | None:
        counts = range(1, vpc.MOST_IPV4_RANGES - len(blocks))
        count = _first_index(
            counts, lambda n: self._are_enough([*blocks, *[_LARGEST_RANGE] * n], nodes)
        )
        if count is None:
            return None
        return f"a range of /{_LARGEST}" if count == 1 else f"{count} ranges of /{_LARGEST}"

    def _are_enough(self, blocks: Sequence[IPv4Network], nodes: Nodes) -> bool:
        return self._layout(blocks, nodes).short is None


def address_check(network: config.Network) -> AddressCheck | None:
    """Return the check of the ranges of a VPC of ours; None where the VPC exists, or has none."""
    if network.vpc is not None or network.vpc_cidr is None:
        return None
    return AddressCheck(vpc_cidr=network.vpc_cidr, pod_cidrs=network.pod_cidrs, zones=network.zones)


def _short_zone(
    subnets: Sequence[SubnetPlan], nodes: Nodes, *, prefixes_per_node: int
) -> str | None:
    """Return the zone that has too little room for its nodes, None if all have enough."""
    for zone, demand in nodes.items():
        own = [subnet for subnet in subnets if subnet.zone == zone]
        if own and not holds(own, demand, prefixes_per_node=prefixes_per_node):
            return f"too small for {demand.nodes} nodes in zone {zone}"
    return None


def _first_index(candidates: range, would_do: Callable[[int], bool]) -> int | None:
    return next((candidate for candidate in candidates if would_do(candidate)), None)


def _mask(mask: int) -> str:
    return f"use a /{mask}" if mask == _LARGEST else f"use a /{mask} or larger"


@rule
def ranges_hold_the_nodes(
    network: config.Network, pools: config.Readable[config.Pool]
) -> Iterator[config.Mistake]:
    """Yield ranges that are too small for the readable pools, each at its maximum."""
    check = address_check(network)
    if check is None:
        return
    if len(network.zones) < 2 or not config.ranges_are_sound(network):
        return  # a mistake of its own
    counted = [pool for pool in pools if config.count_is_sound(pool, pools)]
    yield from check.mistakes([*demands(counted, network)])
