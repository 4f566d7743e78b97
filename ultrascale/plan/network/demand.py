"""Addresses that nodes need, compared with the subnets."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ultrascale import config
from ultrascale.catalog import eks, vpc
from ultrascale.frozen import Frozen
from ultrascale.plan.model import PoolPlan, SubnetPlan
from ultrascale.plan.network.subnets import WARM_PREFIXES, with_warm_prefixes
from ultrascale.plan.pools.pool import node_addresses

# Single addresses of a zone beside its nodes: interface endpoints, file-system and Lambda
# interfaces, internal load balancers.
ADDRESSES_BESIDE_NODES = 40


class ZoneDemand(Frozen, kw_only=False):
    """Addresses that the nodes of one zone need: prefixes for each node, and single addresses."""

    nodes: int
    addresses: int


Nodes = Mapping[str, ZoneDemand]


class Demand(Frozen):
    """Nodes that need addresses."""

    zones: tuple[str, ...]  # Zones that they are spread over, evenly
    nodes: int  # Most nodes at a time
    accelerated: bool  # Whether they use the pod ranges, where there are any
    # Whether they may use them as well, although they have no accelerators.
    movable: bool = False
    addresses_per_node: int = 1  # Single addresses of each node beside its prefixes


def demands(pools: Iterable[config.Pool], network: config.Network) -> Iterator[Demand]:
    """Yield the demand of ``pools`` at their maximum."""
    for pool in pools:
        yield Demand(
            zones=config.zones_of(pool, network),
            nodes=pool.nodes.highest * pool.shards,
            accelerated=any(spec.accelerator for spec in pool.specs),
            movable=may_move(pool),
            addresses_per_node=single_addresses(pool),
        )


def per_zone(demands: Iterable[Demand]) -> Nodes:
    """Return the demand of each zone, halves of a node counted as whole ones."""
    nodes: Counter[str] = Counter()
    addresses: Counter[str] = Counter()
    for demand in demands:
        for zone in demand.zones:
            share = -(-demand.nodes // len(demand.zones))
            nodes[zone] += share
            addresses[zone] += share * demand.addresses_per_node
    return {zone: ZoneDemand(count, addresses[zone]) for zone, count in nodes.items()}


def may_move(pool: config.Pool | PoolPlan) -> bool:
    """Return whether nodes without accelerators may use the pod ranges.

    NodePools' may: they get their subnets at launch. A node group's subnets change with the group
    alone.
    """
    return pool.is_node_pool and pool.role != "system"


def single_addresses(pool: config.Pool | PoolPlan) -> int:
    """Return the single addresses of a node, the most among its types.

    HyperPod needs one for each pod. Its pages do not say whether its instances take prefixes as
    well, as the VPC CNI is configured to: they count too.
    """
    specs = pool.specs
    known = all(spec.knows(fact) for spec in specs for fact in ("ipv4_per_eni", "efa_cards"))
    if not pool.facts.has_single_addresses or not known:
        return 1  # an unknown fact is a mistake of its own
    return max(map(node_addresses, specs), default=1)


def is_enough(subnets: Sequence[SubnetPlan], demand: ZoneDemand) -> bool:
    """Return whether ``subnets`` hold ``demand`` with a prefix in reserve on each node.

    Single addresses of a zone beside its nodes count as well.
    """
    return holds([with_warm_prefixes(subnet) for subnet in subnets], demand)


def first_that_hold(subnets: Sequence[SubnetPlan], demands: Nodes) -> list[SubnetPlan]:
    """Return the first subnets of each zone that hold its demand; all of them where none do.

    For users that cannot change their subnets: one more pod range adds some behind the others, and
    must not move a pool that has room.

    Args:
        subnets: In the order in which ranges were added.
        demands: Largest demand of each zone.
    """
    chosen: list[SubnetPlan] = []
    for zone, demand in demands.items():
        own = [subnet for subnet in subnets if subnet.zone == zone]
        beginnings = (own[:count] for count in range(1, len(own)))
        chosen += next((beginning for beginning in beginnings if is_enough(beginning, demand)), own)
    return chosen


def holds(
    subnets: Sequence[SubnetPlan], demand: ZoneDemand, *, prefixes_per_node: int = WARM_PREFIXES
) -> bool:
    """Return whether ``subnets`` hold a zone's nodes, and the addresses beside them.

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
    missing_prefixes = max(demand.nodes * prefixes_per_node - prefixes, 0)
    missing_singles = max(demand.addresses + ADDRESSES_BESIDE_NODES - singles, 0)
    return missing_prefixes + missing_singles <= blocks
