"""A planned fleet, held against other figures of what is free in its subnets."""

from collections.abc import Mapping

from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.network.assignment import Draw, Nodes, Room, assign
from ultrascale.plan.network.vpc import node_draw, subnets_of


def zones_without_room(plan: ClusterPlan, rooms: Mapping[str, Room]) -> tuple[str, ...]:
    """Return the zones in which the fleet finds too few addresses at its full size.

    Nodes stay in the subnets that the plan names.

    Args:
        plan: A cluster in a VPC that exists.
        rooms: What is free in each of its subnets, by id.
    """
    network = plan.network
    standing = {id: Draw(addresses=sum(each.values())) for id, each in network.standing.items()}
    zones = dict.fromkeys(subnet.zone for subnet in network.subnets)
    short: list[str] = []
    for zone in zones:
        ids = dict.fromkeys(each.id or "" for each in network.subnets if each.zone == zone)
        nodes = [
            Nodes(
                name=pool.name,
                subnets=subnets,
                count=-(-pool.max_nodes // len(pool.zones)),
                each=node_draw(network, pool),
                spreads=pool.is_node_pool,
            )
            for pool in plan.all_pools
            if (subnets := tuple(e.id or "" for e in subnets_of(network, pool) if e.zone == zone))
        ]
        if assign([rooms[id] for id in ids if id in rooms], nodes, standing) is None:
            short.append(zone)
    return tuple(short)
