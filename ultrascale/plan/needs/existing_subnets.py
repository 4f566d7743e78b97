"""Free addresses of subnets that exist, and addresses that nodes and others take there."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

from ultrascale.catalog import eks
from ultrascale.plan.model import (
    Figure,
    NetworkPlan,
    PoolPlan,
    SubnetKind,
    SubnetNeeds,
    SubnetPlan,
)
from ultrascale.plan.network.assignment import Draw, Nodes, Room, assign
from ultrascale.plan.network.existing_addresses import room_of
from ultrascale.plan.network.occupancy import nodes_in
from ultrascale.plan.network.vpc import node_subnet_kind, pods_on_host_network

_SIZING = "https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html"
_PREFIXES = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-prefix-eni.html"


def plan_existing_subnet_needs(
    network: NetworkPlan, pools: Sequence[PoolPlan], kinds: Sequence[SubnetKind]
) -> Iterator[SubnetNeeds]:
    """Yield what the subnets of each kind and zone have free, and what is asked of them.

    A subnet of several uses is told with each, and with all that lies in it.

    Args:
        network: The network, in a VPC that exists.
        pools: All pools.
        kinds: Kinds of subnets, in the order in which they are told.
    """
    zones = dict.fromkeys(subnet.zone for subnet in network.subnets)
    for kind in kinds:
        for zone in zones:
            subnets = [each for each in network.of_kind(kind) if each.zone == zone]
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
        # Those of the kind are told, of the others the addresses.
        self._own = {
            pool.name
            for pool in pools
            if node_subnet_kind(network, pool) == kind and zone in pool.zones
        }

    def needs(self) -> SubnetNeeds:
        """Return what the subnets have free, and what is asked of them."""
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
            figures={each.id.removeprefix(f"{self._at}."): each for each in figures},
            holds_skew=holds_all_at_once(self._network, self._pools, self._zone) if nodes else None,
        )

    def _figure(
        self, key: str, value: float | None, unit: str, formula: str, *sources: str
    ) -> Figure:
        return Figure(
            id=f"{self._at}.{key}", value=value, unit=unit, formula=formula, sources=sources
        )

    def _free(self) -> Figure:
        words = " + ".join(
            f"{self._rooms[each.id or ''].addresses:,} in {each.id}"
            + ("" if each.free_addresses is not None else " if it is empty")
            for each in self._subnets
        )
        value = sum(room.addresses for room in self._rooms.values())
        return self._figure("addresses", value, "addresses", words, _SIZING)

    def _needed(self) -> Figure:
        terms = [each.words for each in self._nodes]
        beside: Counter[str] = Counter()
        for id in self._rooms:
            beside.update(self._network.standing.get(id, {}))
        terms += [f"{count} for {purpose}" for purpose, count in beside.items()]
        value = sum(each.all.total for each in self._nodes) + beside.total()
        return self._figure(
            "addresses_needed", value, "addresses", " + ".join(terms) or "none", _PREFIXES
        )

    def _of_nodes(self) -> Iterator[Figure]:
        network, own = self._network, [each for each in self._nodes if each.name in self._own]
        count = sum(each.count for each in own)
        words = " + ".join(f"{each.count:,} of {each.name}" for each in own) or "0 nodes"
        yield self._figure("nodes", count, "nodes", words)
        blocks = sum(room.prefixes for room in self._rooms.values())
        if network.pod_addresses is None:
            words = "free blocks of 16 addresses"
            yield self._figure("prefixes", blocks, "/28 prefixes", words, _PREFIXES)
            taken = sum(each.all.prefixes for each in self._nodes)
            terms = [f"{each.count + each.surge:,} x {each.each.prefixes}" for each in self._nodes]
            words = " + ".join(terms) or "none"
            yield self._figure("prefixes_needed", taken, "/28 prefixes", words)
        yield from self._share(own, count)
        pools = {pool.name: pool for pool in self._pools}
        counts = [
            (each.name, each.count, pool.max_pods, pods_on_host_network(pool))
            for each in own
            for pool in [pools[each.name]]
        ]
        yield pods_figure(self._at, counts, blocks if network.pod_addresses is None else None)
        words = (
            " + ".join(f"{pools[each.name].max_nodes:,} of {each.name}" for each in own)
            or "0 nodes"
        )
        whole = sum(pools[each.name].max_nodes for each in own)
        yield self._figure("nodes_of_skew", whole, "nodes", words)

    def _share(self, own: Sequence[Nodes], count: int) -> Iterator[Figure]:
        """Yield the nodes that would fit, each like the largest, and the share that is planned."""
        each = max(
            (nodes.each for nodes in own), key=lambda draw: draw.total, default=Draw(addresses=1)
        )
        more = sum(self._more(room, each) for room in self._rooms.values())
        most = count + more
        words = f"{count:,} and {more:,} more of {each.total} addresses each, beside all others"
        yield self._figure("nodes_most", most, "nodes", words)
        full = 100 * count / most if most else None
        yield self._figure("full", full, "%", f"100 x {count:,} nodes / {self._at}.nodes_most")

    def _more(self, room: Room, each: Draw) -> int:
        """Return the nodes that a subnet holds beside all that is assigned to it."""
        taken = self._taken(room)
        counts = range(1, room.addresses + 1)
        return bisect_left(counts, True, key=lambda count: not room.holds(taken + each * count))

    def _taken(self, room: Room) -> Draw:
        """Return what a subnet is to hold; of nodes in several, its part by size."""
        standing = sum(self._network.standing.get(room.id, {}).values())
        taken = Draw(addresses=standing)
        for nodes in self._nodes:
            if room.id in nodes.subnets:
                parts = len(nodes.subnets)
                taken += nodes.each * (-(-nodes.count // parts) + nodes.surge)
        return taken


def pods_figure(
    at: str, nodes: Sequence[tuple[str, int, int, int]], prefixes: int | None
) -> Figure:
    """Return the pods that fit: by what kubelets take, and by the addresses that there are.

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


def holds_all_at_once(network: NetworkPlan, pools: Sequence[PoolPlan], zone: str) -> bool:
    """Return whether a zone holds all nodes of every pool that may launch there."""
    rooms = {each.id: room_of(each) for each in network.subnets if each.zone == zone}
    standing = {id: Draw(addresses=sum(parts.values())) for id, parts in network.standing.items()}
    nodes = [*nodes_in(network, pools, zone, whole=True)]
    return assign([*rooms.values()], nodes, standing) is not None
