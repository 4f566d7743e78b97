"""Words of the report: subnets, networks and lists."""

from collections.abc import Mapping, Sequence

from ultrascale.plan import amounts
from ultrascale.plan.model import PoolPart, SubnetKind, Topology

# A count has no line breaks.
_SPACE = "\N{NO-BREAK SPACE}"

SUBNETS: Mapping[SubnetKind, str] = {
    "public": "public",
    "control-plane": "control plane",
    "private": "private",
    "accelerated": "accelerated",
}


def listed(names: Sequence[str], most: int = 4) -> str:
    """Return names as a list; a long list ends with the number of further names."""
    return amounts.name_list(names, most, space=_SPACE)


def ranges(cidrs: Sequence[str]) -> str:
    """Return address ranges as a list; a long list ends with the number of further ranges."""
    return listed(cidrs, 2)


def vpc_name(parts: Topology) -> str:
    """Return a VPC's primary range, and for an existing VPC its id."""
    if parts.existing is None:
        return f"VPC {parts.vpc_cidr}"
    return f"existing VPC {parts.existing.vpc_id}, {parts.vpc_cidr}"


def owner_of(parts: Topology) -> str:
    """Return the owner of an existing VPC; empty for our own VPC."""
    if parts.existing is None:
        return ""
    if parts.existing.owner is None:
        return "not ours: nothing in it is changed"
    return f"of account {parts.existing.owner}: nothing in it is changed"


def way_out(parts: Topology) -> str:
    """Return an existing VPC's way to the internet; empty if our NAT gateways are the way."""
    ways = {
        "none": "no way out to the internet",
        "transit-gateway": "way out: a transit gateway that is there",
        "nat": "way out: NAT gateways that are there",
    }
    return ways[parts.egress]


def nodes_of(pool: PoolPart) -> str:
    """Return the fewest and most nodes of a pool, and the number of its shards."""
    nodes = f"{pool.nodes_max:,} nodes"
    if pool.nodes_min != pool.nodes_max:
        nodes = f"{pool.nodes_min:,} to {nodes}"
    return f"{nodes} in {pool.shards:,} shards" if pool.shards > 1 else nodes
