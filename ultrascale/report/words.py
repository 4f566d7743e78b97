"""Words of the report: subnets, networks and lists."""

from collections.abc import Mapping, Sequence

from ultrascale.plan import amounts
from ultrascale.plan.model import PoolPart, SubnetKind, Topology

# No line ends within a count.
_SPACE = "\N{NO-BREAK SPACE}"

SUBNETS: Mapping[SubnetKind, str] = {
    "public": "public",
    "control-plane": "control plane",
    "private": "private",
    "accelerated": "accelerated",
}


def listed(names: Sequence[str], most: int = 4) -> str:
    """Return names as a list that ends in a count where there are many."""
    return amounts.listed(names, most, space=_SPACE)


def ranges(cidrs: Sequence[str]) -> str:
    """Return ranges as a list that ends in a count where there are many."""
    return listed(cidrs, 2)


def vpc_name(parts: Topology) -> str:
    """Return a VPC by its primary range; one that exists by its id as well."""
    if parts.existing is None:
        return f"VPC {parts.vpc_cidr}"
    return f"existing VPC {parts.existing.vpc_id}, {parts.vpc_cidr}"


def owner_of(parts: Topology) -> str:
    """Return whose a VPC is that exists; empty for one of ours."""
    if parts.existing is None:
        return ""
    if parts.existing.owner is None:
        return "not ours: nothing in it is changed"
    return f"of account {parts.existing.owner}: nothing in it is changed"


def way_out(parts: Topology) -> str:
    """Return the way out of a VPC to the internet, where no NAT gateway of ours is it."""
    ways = {
        "none": "no way out to the internet",
        "transit-gateway": "way out: a transit gateway that is there",
        "nat": "way out: NAT gateways that are there",
    }
    return ways[parts.egress]


def nodes_of(pool: PoolPart) -> str:
    """Return the fewest and most nodes of a pool, and its shards."""
    nodes = f"{pool.nodes_max:,} nodes"
    if pool.nodes_min != pool.nodes_max:
        nodes = f"{pool.nodes_min:,} to {nodes}"
    return f"{nodes} in {pool.shards:,} shards" if pool.shards > 1 else nodes
