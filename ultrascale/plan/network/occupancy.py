"""A planned fleet beside other figures of free addresses in its subnets."""

from collections.abc import Iterator, Mapping, Sequence

from ultrascale.plan.model import NetworkPlan, PoolPlan
from ultrascale.plan.network.assignment import Draw, Nodes, Room, assign
from ultrascale.plan.network.existing_addresses import surge
from ultrascale.plan.network.vpc import node_draw


def nodes_in(
    network: NetworkPlan, pools: Sequence[PoolPlan], zone: str, *, whole: bool = False
) -> Iterator[Nodes]:
    """Yield the nodes of each shard in a zone, in the subnets that the plan names.

    Args:
        network: Network of the cluster.
        pools: Pools of the cluster, those of the system first.
        zone: Zone name or zone id.
        whole: Whether all nodes of a shard count, not its share of an even spread.
    """
    there = {subnet.id for subnet in network.subnets if subnet.zone == zone}
    for pool in pools:
        if zone not in pool.zones:
            continue
        assigned = network.assigned.get(pool.name, ())
        yield Nodes(
            name=pool.name,
            subnets=tuple(id for id in assigned if id in there),
            count=pool.max_nodes if whole else -(-pool.max_nodes // len(pool.zones)),
            surge=surge(pool),
            each=node_draw(network, pool),
            spreads=pool.is_node_pool,
        )


def zones_without_room(
    network: NetworkPlan, pools: Sequence[PoolPlan], rooms: Mapping[str, Room]
) -> tuple[str, ...]:
    """Return the zones with too few addresses for the fleet at its full size.

    Nodes stay in the subnets that the plan names.

    Args:
        network: Network of the cluster.
        pools: Pools of the cluster, those of the system first.
        rooms: Free addresses in each of its subnets, by id.
    """
    standing = {id: Draw(addresses=sum(each.values())) for id, each in network.standing.items()}
    zones = dict.fromkeys(subnet.zone for subnet in network.subnets)
    short: list[str] = []
    for zone in zones:
        ids = dict.fromkeys(subnet.id or "" for subnet in network.subnets if subnet.zone == zone)
        there = [rooms[id] for id in ids if id in rooms]
        if assign(there, [*nodes_in(network, pools, zone)], standing) is None:
            short.append(zone)
    return tuple(short)
