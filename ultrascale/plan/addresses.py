"""Whether the ranges of the cluster file hold its nodes, and which ranges would."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network

from ultrascale import catalog, config
from ultrascale.catalog import eks, hyperpod, vpc
from ultrascale.plan import capacity
from ultrascale.plan.model import SubnetPlan
from ultrascale.plan.subnets import (
    accelerated_subnets,
    longest_pod_mask,
    longest_vpc_mask,
    primary_subnets,
)

# Single addresses of a zone beside its nodes: interface endpoints, file-system and Lambda
# interfaces, internal load balancers.
ADDRESSES_BESIDE_NODES = 40
# With WARM_PREFIX_TARGET=1 the CNI holds one /28 in use and one in reserve.
PREFIXES_PER_NODE = 2

_LARGEST = vpc.LARGEST_RANGE_MASK
_LARGEST_RANGE = IPv4Network((0, _LARGEST))
_FEWER = "ask for fewer nodes, or spread them over more zones"


@dataclass(frozen=True, slots=True)
class ZoneDemand:
    """What the nodes of one zone need: prefixes for each, and so many single addresses."""

    nodes: int
    addresses: int


Nodes = Mapping[str, ZoneDemand]


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Nodes that need addresses.

    Attributes:
        zones: Zones that they are spread over, evenly.
        nodes: Most of them at a time.
        accelerated: Whether they draw from the pod ranges, where there are any.
        addresses_per_node: Single addresses that each of them takes beside its prefixes.
    """

    zones: tuple[str, ...]
    nodes: int
    accelerated: bool
    addresses_per_node: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressCheck:
    """The ranges of a cluster, held against what its nodes need.

    Attributes:
        vpc_cidr: Primary range.
        pod_cidrs: Secondary ranges as the file states them.
        zones: Zones that get subnets.
        reservations: Whether parts of the subnets can be kept for prefixes.
    """

    vpc_cidr: IPv4Network
    pod_cidrs: tuple[IPv4Network, ...] | config.PodBlocks
    zones: tuple[str, ...]
    reservations: bool

    def mistakes(self, demands: Sequence[Demand]) -> Iterator[config.Mistake]:
        """Yield what the ranges cannot hold at full size, with ranges that would."""
        blocks = config.blocks(self.pod_cidrs)
        accelerated = _per_zone([each for each in demands if each.accelerated])
        others = _per_zone([each for each in demands if not each.accelerated])
        private = others if blocks else _per_zone(demands)
        if (wrong := self._wrong_with_vpc(self.vpc_cidr.prefixlen, private)) is not None:
            todo = self._larger_vpc(private) or (
                self._pod_ranges_beside(others, accelerated) if not blocks and accelerated else None
            )
            yield config.refuse("network.vpc_cidr", wrong, todo or _FEWER)
        wrong = self._wrong_with_blocks(blocks, accelerated) if blocks else None
        if wrong is not None:
            todo = self._larger_blocks(blocks, accelerated) or _FEWER
            yield config.refuse("network.pod_cidrs", wrong, todo)

    def _wrong_with_vpc(self, mask: int, nodes: Nodes) -> str | None:
        if mask > longest_vpc_mask(len(self.zones)):
            return f"too small for {len(self.zones)} zones"
        block = IPv4Network((0, mask))
        subnets = primary_subnets(block, self.zones, reservations=self.reservations)
        return _short([subnet for subnet in subnets if subnet.kind == "private"], nodes)

    def _wrong_with_blocks(self, blocks: Sequence[IPv4Network], nodes: Nodes) -> str | None:
        if blocks[0].prefixlen > longest_pod_mask(len(self.zones)):
            return f"too small for {len(self.zones)} zones"
        subnets = accelerated_subnets(blocks, self.zones, reservations=self.reservations)
        return _short([*subnets], nodes)

    def _larger_vpc(self, nodes: Nodes) -> str | None:
        masks = range(self.vpc_cidr.prefixlen - 1, _LARGEST - 1, -1)
        mask = _first(masks, lambda mask: self._wrong_with_vpc(mask, nodes) is None)
        return None if mask is None else _mask(mask)

    def _pod_ranges_beside(self, others: Nodes, accelerated: Nodes) -> str | None:
        """Return what to do where accelerated nodes crowd the others out of the VPC's range."""
        counts = range(1, vpc.MOST_IPV4_RANGES)
        count = _first(counts, lambda n: self._are_enough([_LARGEST_RANGE] * n, accelerated))
        if count is None:
            return None
        ranges = f"add network.pod_cidrs: {{count: {count}, from: RANGE}}"
        if self._wrong_with_vpc(self.vpc_cidr.prefixlen, others) is None:
            return ranges
        larger = self._larger_vpc(others)
        return None if larger is None else f"{larger}, and {ranges}"

    def _larger_blocks(self, blocks: Sequence[IPv4Network], nodes: Nodes) -> str | None:
        if isinstance(self.pod_cidrs, config.PodBlocks):
            counts = range(self.pod_cidrs.count + 1, vpc.MOST_IPV4_RANGES)
            count = _first(counts, lambda n: self._are_enough([_LARGEST_RANGE] * n, nodes))
            if count is None:
                return None
            there = 2 ** (_LARGEST - self.pod_cidrs.from_.prefixlen)
            return f"write count: {count}" + (" of a larger range" if count > there else "")
        first, *rest = blocks
        masks = range(first.prefixlen - 1, _LARGEST - 1, -1)
        mask = _first(masks, lambda m: self._are_enough([IPv4Network((0, m)), *rest], nodes))
        more = self._more_blocks(blocks, nodes)
        if mask is not None and (more is None or not rest):
            return _mask(mask) + (" first" if rest else "")
        if more is not None:
            return f"add {more}"
        more = self._more_blocks([_LARGEST_RANGE, *rest], nodes)
        return None if more is None else f"use a /{_LARGEST} first, and add {more}"

    def _more_blocks(self, blocks: Sequence[IPv4Network], nodes: Nodes) -> str | None:
        counts = range(1, vpc.MOST_IPV4_RANGES - len(blocks))
        count = _first(counts, lambda n: self._are_enough([*blocks, *[_LARGEST_RANGE] * n], nodes))
        if count is None:
            return None
        return f"a range of /{_LARGEST}" if count == 1 else f"{count} ranges of /{_LARGEST}"

    def _are_enough(self, blocks: Sequence[IPv4Network], nodes: Nodes) -> bool:
        return self._wrong_with_blocks(blocks, nodes) is None


def _per_zone(demands: Sequence[Demand]) -> Nodes:
    nodes: Counter[str] = Counter()
    addresses: Counter[str] = Counter()
    for demand in demands:
        for zone in demand.zones:
            share = -(-demand.nodes // len(demand.zones))
            nodes[zone] += share
            addresses[zone] += share * demand.addresses_per_node
    return {zone: ZoneDemand(count, addresses[zone]) for zone, count in nodes.items()}


def _short(subnets: Sequence[SubnetPlan], nodes: Nodes) -> str | None:
    """Return which zone has too little room for its nodes, None if all have enough."""
    for zone, demand in nodes.items():
        own = [subnet for subnet in subnets if subnet.zone == zone]
        if own and not holds(own, demand):
            return f"too small for {demand.nodes} nodes in zone {zone}"
    return None


def is_enough(subnets: Sequence[SubnetPlan], nodes: int) -> bool:
    """Return whether ``subnets`` hold the prefixes and the single addresses of ``nodes``.

    Single addresses of a zone beside its nodes are counted as well.
    """
    return holds(subnets, ZoneDemand(nodes, nodes))


def single_addresses(provisioner: object, instance_types: Sequence[str]) -> int:
    """Return the single addresses of a node, the most among its types.

    HyperPod counts on one for each pod. Whether its instances take prefixes as well, as the VPC
    CNI is told to, its pages do not say: they are counted too.

    Args:
        provisioner: What launches the node; anything else than HyperPod's name where it is unknown.
        instance_types: Types of the catalog.
    """
    specs = [catalog.lookup(name) for name in instance_types]
    known = all(spec.knows(fact) for spec in specs for fact in ("ipv4_per_eni", "efa_cards"))
    if provisioner != capacity.HYPERPOD or not known:
        return 1  # what is not known is a mistake of its own
    return max((hyperpod.node_addresses(spec) for spec in specs), default=1)


def holds(subnets: Sequence[SubnetPlan], demand: ZoneDemand) -> bool:
    """Return whether ``subnets`` hold a zone's nodes, and what is there beside them.

    Where no part is kept for prefixes, each single address may spoil a /28 of its own.
    """
    prefixes = singles = blocks = 0
    for subnet in subnets:
        reserved = sum(part.num_addresses for part in subnet.prefix_reservations)
        if reserved:
            kept_by_ec2 = vpc.RESERVED_ADDRESSES_AT_START + vpc.RESERVED_ADDRESSES_AT_END
            prefixes += reserved // eks.ADDRESSES_PER_PREFIX
            singles += subnet.cidr.num_addresses - reserved - kept_by_ec2
        else:
            # The first block and the last lose addresses to EC2.
            blocks += max(subnet.cidr.num_addresses // eks.ADDRESSES_PER_PREFIX - 2, 0)
    missing_prefixes = max(demand.nodes * PREFIXES_PER_NODE - prefixes, 0)
    missing_singles = max(demand.addresses + ADDRESSES_BESIDE_NODES - singles, 0)
    return missing_prefixes + missing_singles <= blocks


def _first(candidates: range, would_do: Callable[[int], bool]) -> int | None:
    return next((candidate for candidate in candidates if would_do(candidate)), None)


def _mask(mask: int) -> str:
    return f"use a /{mask}" if mask == _LARGEST else f"use a /{mask} or larger"
