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
from ultrascale.plan.needs.existing_subnets import plan_existing_subnet_needs, pods_figure
from ultrascale.plan.needs.pools import shards_of
from ultrascale.plan.needs.tables import Row
from ultrascale.plan.network.demand import (
    ADDRESSES_BESIDE_NODES,
    ZoneDemand,
    holds,
    single_addresses,
)
from ultrascale.plan.network.subnets import WARM_PREFIXES
from ultrascale.plan.network.vpc import node_prefixes, node_subnet_kind, pods_on_host_network

_KINDS: tuple[SubnetKind, ...] = ("private", "accelerated", "public", "control-plane")
_NODE_KINDS = frozenset[SubnetKind]({"private", "accelerated"})
# A NAT gateway takes one, EKS's own interfaces as many as this. Load balancers come on top. Source:
# https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html
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
    """Return what the subnets of each kind and zone hold, and what is asked of them."""
    if network.existing is not None:
        return tuple(plan_existing_subnet_needs(network, pools, _KINDS))
    demands = _demands(network, pools)
    return tuple(
        _subnet_needs(kind, zone, subnets, demands.get((kind, zone), []))
        for kind in _KINDS
        for zone in network.zones
        if (subnets := [each for each in network.of_kind(kind) if each.zone == zone])
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
    yield pods_figure(at, counts, held)
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
    """Return the /28 prefixes that ``subnets`` hold, and the formula."""
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
    """Return the demand of a zone in which all its pools launch all their nodes."""
    return ZoneDemand(
        sum(demand.nodes for demand in demands),
        sum(demand.nodes * demand.addresses for demand in demands),
    )


def subnet_rows(needs: ClusterNeeds) -> Iterator[Row]:
    """Yield the subnets, with what is free in them."""
    skew = {None: "", True: "held", False: "too many"}
    for index, subnets in enumerate(needs.subnets):
        ranges = ", ".join(f"{count} x {mask}" for mask, count in subnets.ranges.items())
        cells = {"ranges": ranges, "holds_skew": skew[subnets.holds_skew]}
        yield Row(f"subnets.{index}", cells)
