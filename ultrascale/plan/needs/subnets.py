"""Addresses in the subnets of each zone, and the nodes' use of them."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ultrascale.catalog import eks, vpc
from ultrascale.frozen import Frozen
from ultrascale.plan.model import (
    ClusterNeeds,
    Figure,
    NetworkPlan,
    PoolPlan,
    SubnetKind,
    SubnetNeeds,
    SubnetPlan,
)
from ultrascale.plan.needs.pools import shards_of
from ultrascale.plan.needs.tables import Row
from ultrascale.plan.network.assignment import Draw, Nodes, Room, assign
from ultrascale.plan.network.demand import (
    ADDRESSES_BESIDE_NODES,
    ZoneDemand,
    holds,
    single_addresses,
)
from ultrascale.plan.network.existing_addresses import room_of
from ultrascale.plan.network.subnets import WARM_PREFIXES
from ultrascale.plan.network.vpc import (
    node_prefixes,
    node_subnet_kind,
    nodes_in,
    pods_on_host_network,
)

_KINDS: tuple[SubnetKind, ...] = ("private", "accelerated", "public", "control-plane")
_NODE_KINDS = frozenset[SubnetKind]({"private", "accelerated"})
# A NAT gateway takes one, EKS's own interfaces as many as this. Load balancers come on top.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html
_BESIDE: Mapping[SubnetKind, tuple[int, str]] = {
    "public": (1, "its NAT gateway"),
    "control-plane": (6, "EKS's own interfaces"),
}
_SIZING = "https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html"
_PREFIXES = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-prefix-eni.html"
_NETWORK = "https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html"


class _Demand(Frozen):
    """Load of one pool on each of its zones."""

    pool: str  # Its name
    zones: tuple[str, ...]  # Zones of its launches
    nodes: int  # All of its nodes
    addresses: int  # Single addresses of a node
    prefixes: int  # /28 prefixes of a node
    max_pods: int  # Pods of a node
    host_pods: int  # Pods that share its address

    @property
    def share(self) -> int:
        """Nodes in each zone, when they are spread evenly."""
        return -(-self.nodes // len(self.zones))


def plan_subnet_needs(network: NetworkPlan, pools: Sequence[PoolPlan]) -> tuple[SubnetNeeds, ...]:
    """Return the size and the use of the subnets of each kind and zone."""
    if network.existing is not None:
        return tuple(_existing_subnet_needs(network, pools, _KINDS))
    demands = _demands(network, pools)
    return tuple(
        _subnet_needs(kind, zone, subnets, demands.get((kind, zone), []))
        for kind in _KINDS
        for zone in network.zones
        if (subnets := [subnet for subnet in network.of_kind(kind) if subnet.zone == zone])
    )


def _demands(
    network: NetworkPlan, pools: Sequence[PoolPlan]
) -> Mapping[tuple[SubnetKind, str], list[_Demand]]:
    found: dict[tuple[SubnetKind, str], list[_Demand]] = {}
    for name, shards in shards_of(pools).items():
        first = shards[0]
        demand = _Demand(
            pool=name,
            zones=first.zones,
            nodes=sum(shard.max_nodes for shard in shards),
            addresses=single_addresses(first),
            prefixes=node_prefixes(network, first),
            max_pods=first.max_pods,
            host_pods=pods_on_host_network(first),
        )
        for zone in first.zones:
            found.setdefault((node_subnet_kind(network, first), zone), []).append(demand)
    return found


def _subnet_needs(
    kind: SubnetKind,
    zone: str,
    subnets: Sequence[SubnetPlan],
    demands: Sequence[_Demand],
) -> SubnetNeeds:
    at = f"subnet.{kind}.{zone}"
    masks = Counter(f"/{subnet.cidr.prefixlen}" for subnet in subnets)
    figures = {"addresses": _addresses(at, subnets)}
    skewed: bool | None = None
    if kind in _NODE_KINDS:
        # All nodes of a kind of subnet hold equally many.
        prefixes = demands[0].prefixes if demands else WARM_PREFIXES
        own = _node_figures(at, subnets, demands, prefixes)
        figures |= {figure.id.removeprefix(f"{at}."): figure for figure in own}
        skewed = holds(subnets, _all_at_once(demands), prefixes_per_node=prefixes)
    else:
        count, what = _BESIDE[kind]
        figures["addresses_needed"] = Figure(
            id=f"{at}.addresses_needed",
            value=count,
            unit="addresses",
            formula=f"{count} of {what}",
            sources=(_NETWORK,),
        )
    free = (figures["addresses"].value or 0) - (figures["addresses_needed"].value or 0)
    figures["addresses_free"] = Figure(
        id=f"{at}.addresses_free",
        value=free,
        unit="addresses",
        formula=f"{at}.addresses - {at}.addresses_needed",
    )
    return SubnetNeeds(
        kind=kind,
        zone=zone,
        ranges=dict(masks),
        cidrs=tuple(str(subnet.cidr) for subnet in subnets),
        figures=figures,
        holds_skew=skewed,
    )


def _addresses(at: str, subnets: Sequence[SubnetPlan]) -> Figure:
    kept = vpc.RESERVED_ADDRESSES_AT_START + vpc.RESERVED_ADDRESSES_AT_END
    whole = sum(subnet.cidr.num_addresses for subnet in subnets)
    return Figure(
        id=f"{at}.addresses",
        value=whole - kept * len(subnets),
        unit="addresses",
        formula=f"{whole:,} in all - {kept} x {len(subnets)} that EC2 keeps of each subnet",
        sources=(_SIZING,),
    )


def _node_figures(
    at: str, subnets: Sequence[SubnetPlan], demands: Sequence[_Demand], prefixes: int
) -> Iterator[Figure]:
    nodes = sum(demand.share for demand in demands)
    singles = sum(demand.share * demand.addresses for demand in demands)
    held, words = _prefixes(subnets)
    spread = " + ".join(f"{demand.share:,} of {demand.pool}" for demand in demands) or "0 nodes"
    yield Figure(id=f"{at}.nodes", value=nodes, unit="nodes", formula=spread)
    yield Figure(
        id=f"{at}.prefixes", value=held, unit="/28 prefixes", formula=words, sources=(_PREFIXES,)
    )
    yield from _used_addresses(at, nodes, prefixes, singles)
    most = _most_nodes(at, subnets, prefixes, singles, nodes)
    yield most
    yield Figure(
        id=f"{at}.full",
        value=100 * nodes / most.value if most.value else None,
        unit="%",
        formula=f"100 x {nodes:,} nodes / {most.id}",
    )
    counts = [(demand.pool, demand.share, demand.max_pods, demand.host_pods) for demand in demands]
    yield _pods_figure(at, counts, held)
    skew = sum(demand.nodes for demand in demands)
    everything = " + ".join(f"{demand.nodes:,} of {demand.pool}" for demand in demands) or "0 nodes"
    yield Figure(id=f"{at}.nodes_of_skew", value=skew, unit="nodes", formula=everything)


def _used_addresses(at: str, nodes: int, prefixes: int, singles: int) -> Iterator[Figure]:
    """Yield the prefixes and the addresses of ``nodes`` and of everything beside them."""
    taken = nodes * prefixes
    beside = singles + ADDRESSES_BESIDE_NODES
    yield Figure(
        id=f"{at}.prefixes_needed",
        value=taken,
        unit="/28 prefixes",
        formula=f"{nodes:,} nodes x {prefixes}",
    )
    yield Figure(
        id=f"{at}.addresses_needed",
        value=taken * eks.ADDRESSES_PER_PREFIX + beside,
        unit="addresses",
        formula=f"{taken:,} prefixes x {eks.ADDRESSES_PER_PREFIX} + {beside:,} single ones, of "
        f"which {ADDRESSES_BESIDE_NODES} beside nodes",
    )


def _prefixes(subnets: Sequence[SubnetPlan]) -> tuple[int, str]:
    parts = [part for subnet in subnets for part in subnet.prefix_reservations]
    kept = sum(part.num_addresses for part in parts)
    open_subnets = [subnet for subnet in subnets if not subnet.prefix_reservations]
    # The first block and the last lose addresses to EC2.
    blocks = sum(
        max(subnet.cidr.num_addresses // eks.ADDRESSES_PER_PREFIX - 2, 0) for subnet in open_subnets
    )
    terms = [f"{kept:,} addresses kept for them / {eks.ADDRESSES_PER_PREFIX}"] if kept else []
    terms += [f"{blocks:,} that single addresses may spoil"] if blocks else []
    return kept // eks.ADDRESSES_PER_PREFIX + blocks, " + ".join(terms) or "0 prefixes"


def _most_nodes(
    at: str, subnets: Sequence[SubnetPlan], prefixes: int, singles: int, nodes: int
) -> Figure:
    """Return the most nodes of the same kind that ``subnets`` hold.

    Args:
        at: Prefix of the figure's id.
        subnets: The subnets of a zone.
        prefixes: /28 prefixes of a node.
        singles: Single addresses of all of ``nodes``.
        nodes: Planned nodes; 0 counts one single address for each.
    """

    def is_too_many(count: int) -> bool:
        addresses = -(-count * singles // nodes) if nodes else count
        return not holds(subnets, ZoneDemand(count, addresses), prefixes_per_node=prefixes)

    whole = sum(subnet.cidr.num_addresses for subnet in subnets)
    own = singles / nodes if nodes else 1
    return Figure(
        id=f"{at}.nodes_most",
        value=bisect_left(range(1, whole + 1), True, key=is_too_many),
        unit="nodes",
        formula=f"as many as have {prefixes} prefixes and {own:g} single addresses each, beside "
        f"{ADDRESSES_BESIDE_NODES} other addresses",
    )


def _all_at_once(demands: Sequence[_Demand]) -> ZoneDemand:
    """Return the demand of a zone in which all pools that may launch there do so, wholly."""
    return ZoneDemand(
        sum(demand.nodes for demand in demands),
        sum(demand.nodes * demand.addresses for demand in demands),
    )


def subnet_rows(needs: ClusterNeeds) -> Iterator[Row]:
    """Yield the subnets, with their free addresses."""
    skew = {None: "", True: "held", False: "too many"}
    for index, subnets in enumerate(needs.subnets):
        ranges = ", ".join(f"{count} x {mask}" for mask, count in subnets.ranges.items())
        cells = {"ranges": ranges, "holds_skew": skew[subnets.holds_skew]}
        yield Row(f"subnets.{index}", cells)


def _existing_subnet_needs(
    network: NetworkPlan, pools: Sequence[PoolPlan], kinds: Sequence[SubnetKind]
) -> Iterator[SubnetNeeds]:
    """Yield the free addresses and the demand of the subnets of each kind and zone.

    A subnet of several uses is told with each, and with all that lies in it.

    Args:
        network: The network, in a VPC that exists.
        pools: All pools.
        kinds: Kinds of subnets, in the order in which they are told.
    """
    zones = dict.fromkeys(subnet.zone for subnet in network.subnets)
    for kind in kinds:
        for zone in zones:
            subnets = [subnet for subnet in network.of_kind(kind) if subnet.zone == zone]
            if subnets:
                yield _Zone(network, pools, kind, zone, subnets).needs()


class _Zone:
    """The subnets of one kind in one zone."""

    def __init__(
        self,
        network: NetworkPlan,
        pools: Sequence[PoolPlan],
        kind: SubnetKind,
        zone: str,
        subnets: Sequence[SubnetPlan],
    ) -> None:
        self._network = network
        self._pools = pools
        self._kind: SubnetKind = kind
        self._zone = zone
        self._at = f"subnet.{kind}.{zone}"
        self._subnets = subnets
        self._rooms = {room.id: room for room in map(room_of, subnets)}
        own = [*nodes_in(network, pools, zone)]
        self._nodes = [each for each in own if self._rooms.keys() & {*each.subnets}]
        # Nodes of this kind have figures, all other users only addresses.
        self._own = {
            pool.name
            for pool in pools
            if node_subnet_kind(network, pool) == kind and zone in pool.zones
        }

    def needs(self) -> SubnetNeeds:
        """Return the free addresses and the demand of the subnets."""
        nodes = self._kind in ("private", "accelerated")
        figures = [self._free(), *(self._of_nodes() if nodes else ()), self._needed()]
        free = (figures[0].value or 0) - (figures[-1].value or 0)
        words = f"{figures[0].id} - {figures[-1].id}"
        figures.append(self._figure("addresses_free", free, "addresses", words))
        masks = Counter(f"/{subnet.cidr.prefixlen}" for subnet in self._subnets)
        return SubnetNeeds(
            kind=self._kind,
            zone=self._zone,
            ranges=dict(masks),
            cidrs=tuple(str(subnet.cidr) for subnet in self._subnets),
            figures={figure.id.removeprefix(f"{self._at}."): figure for figure in figures},
            holds_skew=_holds_all_at_once(self._network, self._pools, self._zone)
            if nodes
            else None,
        )

    def _figure(
        self, key: str, value: float | None, unit: str, formula: str, *sources: str
    ) -> Figure:
        return Figure(
            id=f"{self._at}.{key}", value=value, unit=unit, formula=formula, sources=sources
        )

    def _free(self) -> Figure:
        words = " + ".join(
            f"{self._rooms[subnet.id or ''].addresses:,} in {subnet.id}"
            + ("" if subnet.free_addresses is not None else " if it is empty")
            for subnet in self._subnets
        )
        value = sum(room.addresses for room in self._rooms.values())
        return self._figure("addresses", value, "addresses", words, _SIZING)

    def _needed(self) -> Figure:
        terms = [node.words for node in self._nodes]
        beside: Counter[str] = Counter()
        for id in self._rooms:
            beside.update(self._network.standing.get(id, {}))
        terms += [f"{count} for {purpose}" for purpose, count in beside.items()]
        value = sum(node.all.total for node in self._nodes) + beside.total()
        return self._figure(
            "addresses_needed", value, "addresses", " + ".join(terms) or "none", _PREFIXES
        )

    def _of_nodes(self) -> Iterator[Figure]:
        network, own = self._network, [node for node in self._nodes if node.name in self._own]
        count = sum(each.count for each in own)
        words = " + ".join(f"{each.count:,} of {each.name}" for each in own) or "0 nodes"
        yield self._figure("nodes", count, "nodes", words)
        blocks = sum(room.prefixes for room in self._rooms.values())
        if network.pod_addresses is None:
            words = "free blocks of 16 addresses"
            yield self._figure("prefixes", blocks, "/28 prefixes", words, _PREFIXES)
            taken = sum(node.all.prefixes for node in self._nodes)
            terms = [f"{node.count + node.surge:,} x {node.each.prefixes}" for node in self._nodes]
            words = " + ".join(terms) or "none"
            yield self._figure("prefixes_needed", taken, "/28 prefixes", words)
        yield from self._share(own, count)
        pools = {pool.name: pool for pool in self._pools}
        counts = [
            (nodes.name, nodes.count, pool.max_pods, pods_on_host_network(pool))
            for nodes in own
            for pool in [pools[nodes.name]]
        ]
        yield _pods_figure(self._at, counts, blocks if network.pod_addresses is None else None)
        words = (
            " + ".join(f"{pools[nodes.name].max_nodes:,} of {nodes.name}" for nodes in own)
            or "0 nodes"
        )
        whole = sum(pools[nodes.name].max_nodes for nodes in own)
        yield self._figure("nodes_of_skew", whole, "nodes", words)

    def _share(self, own: Sequence[Nodes], count: int) -> Iterator[Figure]:
        """Yield the nodes that would fit, each like the largest, and the share that is planned."""
        per_node = max(
            (nodes.each for nodes in own), key=lambda draw: draw.total, default=Draw(addresses=1)
        )
        more = sum(self._more(room, per_node) for room in self._rooms.values())
        most = count + more
        words = f"{count:,} and {more:,} more of {per_node.total} addresses each, beside all others"
        yield self._figure("nodes_most", most, "nodes", words)
        full = 100 * count / most if most else None
        yield self._figure("full", full, "%", f"100 x {count:,} nodes / {self._at}.nodes_most")

    def _more(self, room: Room, per_node: Draw) -> int:
        """Return the nodes that a subnet holds beside all that is assigned to it."""
        taken = self._taken(room)
        counts = range(1, room.addresses + 1)
        return bisect_left(counts, True, key=lambda count: not room.holds(taken + per_node * count))

    def _taken(self, room: Room) -> Draw:
        """Return the planned load of a subnet; nodes in several count by their sizes."""
        standing = sum(self._network.standing.get(room.id, {}).values())
        taken = Draw(addresses=standing)
        for nodes in self._nodes:
            if room.id in nodes.subnets:
                parts = len(nodes.subnets)
                taken += nodes.each * (-(-nodes.count // parts) + nodes.surge)
        return taken


def _pods_figure(
    at: str, nodes: Sequence[tuple[str, int, int, int]], prefixes: int | None
) -> Figure:
    """Return the pods that fit: by the kubelets' limits, and by the addresses.

    Args:
        at: Where the figure belongs.
        nodes: Of each pool its name, its nodes, pods of a node, and those that share its address.
        prefixes: /28 prefixes for pods; None where pods have addresses of other ranges.
    """
    value = sum(count * most for _, count, most, _ in nodes)
    words = " + ".join(f"{count:,} x {most} of {name}" for name, count, most, _ in nodes)
    words = f"{words or '0 nodes'}, as kubelets take them"
    if prefixes is not None:
        sharing = sum(count * shared for _, count, _, shared in nodes)
        value = min(value, prefixes * eks.ADDRESSES_PER_PREFIX + sharing)
        words = (
            f"the less of {words}, and {prefixes:,} prefixes x {eks.ADDRESSES_PER_PREFIX} "
            f"addresses + {sharing:,} that share their node's"
        )
    return Figure(id=f"{at}.pods", value=value, unit="pods", formula=words, sources=(_PREFIXES,))


def _holds_all_at_once(network: NetworkPlan, pools: Sequence[PoolPlan], zone: str) -> bool:
    """Return whether a zone holds all nodes of every pool that may launch there."""
    rooms = {subnet.id: room_of(subnet) for subnet in network.subnets if subnet.zone == zone}
    standing = {id: Draw(addresses=sum(parts.values())) for id, parts in network.standing.items()}
    nodes = [*nodes_in(network, pools, zone, whole=True)]
    return assign([*rooms.values()], nodes, standing) is not None
