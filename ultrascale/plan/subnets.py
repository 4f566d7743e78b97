"""Where the subnets lie.

The layout follows from the VPC's range and the order of the zones alone, never from the pools: a
subnet cannot change its range, and a node group or file system cannot change its subnet, so a pool
that grows must not move anything.
"""

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network

from ultrascale.catalog import vpc
from ultrascale.plan.model import SubnetKind, SubnetPlan


def longest_vpc_mask(zones: int) -> int:
    """Return the mask of the smallest VPC that has one subnet of each kind in every zone."""
    # The shared part is one of `zones + 1`, and each half of it is divided among the zones.
    return vpc.SMALLEST_RANGE_MASK - zones.bit_length() - 1 - _bits(zones)


def longest_pod_mask(zones: int) -> int:
    """Return the mask of the smallest first pod range that has a subnet in every zone."""
    return vpc.SMALLEST_RANGE_MASK - zones.bit_length()


def primary_subnets(
    block: IPv4Network, zones: Sequence[str], *, reservations: bool
) -> Iterator[SubnetPlan]:
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
        yield _node_subnet("private", zone, cidr, reservations=reservations)


def accelerated_subnets(
    blocks: Sequence[IPv4Network], zones: Sequence[str], *, reservations: bool
) -> Iterator[SubnetPlan]:
    """Split the first range among all zones and deal each further one to a zone, in turn.

    So one more range adds subnets and moves none. One more zone moves none either, as long as no
    further range is dealt out yet and the zones stay below the next power of two.
    """
    if not blocks:
        return
    first, *further = blocks
    length = first.prefixlen + len(zones).bit_length()
    for zone, cidr in zip(zones, first.subnets(new_prefix=length), strict=False):
        yield _node_subnet("accelerated", zone, cidr, reservations=reservations)
    for index, block in enumerate(further):
        zone = zones[index % len(zones)]
        yield _node_subnet("accelerated", zone, block, reservations=reservations)


def _bits(count: int) -> int:
    """Return how many bits number ``count`` parts."""
    return (count - 1).bit_length()


def _node_subnet(
    kind: SubnetKind, zone: str, cidr: IPv4Network, *, reservations: bool
) -> SubnetPlan:
    """Reserve all but the first quarter of a node subnet for prefixes.

    A node takes one single address and two prefixes, so single addresses never need more.
    """
    parts: tuple[IPv4Network, ...] = ()
    if reservations and cidr.prefixlen <= vpc.SMALLEST_RANGE_MASK - 2:
        _, second, *_ = cidr.subnets(prefixlen_diff=2)
        *_, upper_half = cidr.subnets()
        parts = (second, upper_half)
    return SubnetPlan(kind=kind, zone=zone, cidr=cidr, prefix_reservations=parts)
