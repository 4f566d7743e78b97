"""Address ranges of the subnets.

The layout follows from the VPC's range and the order of the zones, not from the pools: a subnet
cannot change its range, and a node group or file system cannot change its subnet, so a pool that
grows must not move anything. Zones get further pod ranges by their needs only where no other way
holds the nodes.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from ipaddress import IPv4Network

from ultrascale.catalog import vpc
from ultrascale.plan.model import SubnetKind, SubnetPlan

# With WARM_PREFIX_TARGET=1 the VPC CNI holds one /28 in use and one in reserve.
# Source: https://github.com/aws/amazon-vpc-cni-k8s/blob/master/docs/prefix-and-ip-target.md
WARM_PREFIXES = 2


def longest_vpc_mask(zones: int) -> int:
    """Return the mask of the smallest VPC that has one subnet of each kind in every zone."""
    # The shared part is one of `zones + 1`, and each half of it is divided among the zones.
    return vpc.SMALLEST_RANGE_MASK - zones.bit_length() - 1 - _bits(zones)


def longest_pod_mask(zones: int) -> int:
    """Return the mask of the smallest first pod range that has a subnet in every zone."""
    return vpc.SMALLEST_RANGE_MASK - zones.bit_length()


def primary_subnets(block: IPv4Network, zones: Sequence[str]) -> Iterator[SubnetPlan]:
    """Divide the VPC in equal parts: one shared by all zones, then one for each zone's nodes."""
    shared_length = block.prefixlen + len(zones).bit_length()
    # The shared part: its lower half holds the public subnets, its upper half the control plane's.
    half_length = shared_length + 1
    shared, *node_parts = block.subnets(new_prefix=shared_length)
    public_half, control_half = shared.subnets(new_prefix=half_length)
    public_length = max(
        min(block.prefixlen + 8, vpc.SMALLEST_RANGE_MASK), half_length + _bits(len(zones))
    )
    for zone, cidr in zip(zones, public_half.subnets(new_prefix=public_length), strict=False):
        yield SubnetPlan(kind="public", zone=zone, cidr=cidr, prefix_reservations=())
    # EKS asks for six addresses for its own interfaces.
    control = control_half.subnets(new_prefix=vpc.SMALLEST_RANGE_MASK)
    for zone, cidr in zip(zones, control, strict=False):
        yield SubnetPlan(kind="control-plane", zone=zone, cidr=cidr, prefix_reservations=())
    for zone, cidr in zip(zones, node_parts, strict=False):
        yield _node_subnet("private", zone, cidr, prefixes_per_node=WARM_PREFIXES)


def accelerated_subnets(
    blocks: Sequence[IPv4Network],
    zones: Sequence[str],
    *,
    prefixes_per_node: int,
    nodes: Mapping[str, int] | None = None,
) -> Iterator[SubnetPlan]:
    """Split the first range among all zones and give each further one to a zone.

    In turn, so one more range adds subnets and moves none. One more zone moves none either, as long
    as no zone has a further range yet and the zones stay below the next power of two. With
    ``nodes`` each goes to the zone that has the most of them for its addresses: one more range
    moves none, but other counts of nodes may.

    Args:
        blocks: Ranges, in the order in which they were added.
        zones: Zones, in file order.
        prefixes_per_node: /28 prefixes of a node, `WARM_PREFIXES` or 1.
        nodes: Nodes of each zone; None to deal in turn.
    """
    if not blocks:
        return
    first, *further = blocks
    length = first.prefixlen + len(zones).bit_length()
    addresses: dict[str, int] = {}
    for zone, cidr in zip(zones, first.subnets(new_prefix=length), strict=False):
        addresses[zone] = cidr.num_addresses
        yield _node_subnet("accelerated", zone, cidr, prefixes_per_node=prefixes_per_node)
    for index, block in enumerate(further):
        zone = zones[index % len(zones)] if nodes is None else _fullest(addresses, nodes)
        addresses[zone] += block.num_addresses
        yield _node_subnet("accelerated", zone, block, prefixes_per_node=prefixes_per_node)


def _fullest(addresses: Mapping[str, int], nodes: Mapping[str, int]) -> str:
    """Return the zone with the most nodes for its addresses, of equal ones the first."""
    return max(addresses, key=lambda zone: Fraction(nodes.get(zone, 0), addresses[zone]))


def with_warm_prefixes(subnet: SubnetPlan) -> SubnetPlan:
    """Return a node subnet as it is where each node holds a prefix in reserve.

    A choice of subnets for good looks at this one: the number of a node's prefixes may change with
    another pool.
    """
    if subnet.id is not None:
        return subnet
    return _node_subnet(subnet.kind, subnet.zone, subnet.cidr, prefixes_per_node=WARM_PREFIXES)


def _bits(count: int) -> int:
    return (count - 1).bit_length()


def _node_subnet(
    kind: SubnetKind, zone: str, cidr: IPv4Network, *, prefixes_per_node: int
) -> SubnetPlan:
    """Reserve all but the beginning of a node subnet for prefixes: a quarter, or a sixteenth.

    A node takes one single address beside its prefixes of 16, so single addresses never need more.
    The larger reservation is the smaller one and more parts, so that one can become the other.
    """
    halvings = 2 if prefixes_per_node == WARM_PREFIXES else 4
    parts: list[IPv4Network] = []
    if cidr.prefixlen <= vpc.SMALLEST_RANGE_MASK - halvings:
        rest = cidr
        for _ in range(halvings):
            rest, upper = rest.subnets()
            parts.append(upper)
    # The second quarter first, as it always was: the order names the resources.
    parts[:2] = reversed(parts[:2])
    return SubnetPlan(kind=kind, zone=zone, cidr=cidr, prefix_reservations=tuple(parts))
