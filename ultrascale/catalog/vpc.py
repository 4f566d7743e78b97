"""Amazon VPC: bounds of its address ranges and subnets, and ranges with a special purpose.

Sources:
    https://docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html
    https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html
    https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html
"""

from collections.abc import Sequence
from ipaddress import IPv4Network, collapse_addresses

from ultrascale.frozen import Frozen

# Masks of a VPC's largest and smallest range, and of subnets.
# Source: https://docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html
LARGEST_RANGE_MASK = 16
SMALLEST_RANGE_MASK = 28

# EC2 reserves the first four addresses and the last of every subnet.
# Source: https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html
RESERVED_ADDRESSES_AT_START = 4
RESERVED_ADDRESSES_AT_END = 1

# Primary and secondary ranges of a VPC together, as far as the quota can be raised; 5 by default.
# Source: https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html
MOST_IPV4_RANGES = 50

_ADDRESSES_PER_PREFIX = 16


def free_addresses(block: IPv4Network) -> int:
    """Return the number of usable addresses in an empty subnet of the range ``block``."""
    kept = RESERVED_ADDRESSES_AT_START + RESERVED_ADDRESSES_AT_END
    return max(block.num_addresses - kept, 0)


def free_prefixes(block: IPv4Network) -> int:
    """Return the number of usable /28 prefixes in an empty subnet of the range ``block``.

    The first and the last block of 16 addresses lose addresses to EC2.
    """
    return max(block.num_addresses // _ADDRESSES_PER_PREFIX - 2, 0)


# Tags of network interfaces of the VPC CNI.
# Source: https://github.com/aws/amazon-vpc-cni-k8s/blob/master/pkg/awsutils/awsutils.go
CLUSTER_TAG = "cluster.k8s.amazonaws.com/name"
"""Tag of the VPC CNI's interfaces with the name of the cluster."""
MADE_TAG = "node.k8s.amazonaws.com/createdAt"
"""Tag of the VPC CNI's interfaces with the time of creation, in the form of RFC 3339."""


# --- IPv4 ranges with a special purpose, and their use in a VPC and at the API server's endpoint
# Sources:
#     https://www.iana.org/assignments/iana-ipv4-special-registry/iana-ipv4-special-registry.xhtml
#     https://docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html


class SpecialRange(Frozen):
    """A range that is set aside."""

    block: IPv4Network  # The range
    use: str  # Its addresses, in words that follow "a range of"
    source: str  # Page that sets it aside


def _special(block: str, use: str, source: str) -> SpecialRange:
    return SpecialRange(block=IPv4Network(block), use=use, source=source)


_RFC = "https://www.rfc-editor.org/rfc/rfc"

# Source: https://www.rfc-editor.org/rfc/rfc1918
PRIVATE = (
    IPv4Network("10.0.0.0/8"),
    IPv4Network("172.16.0.0/12"),
    IPv4Network("192.168.0.0/16"),
)

# No host has such an address, in any network.
UNUSABLE: Sequence[SpecialRange] = (
    _special("0.0.0.0/8", "addresses of this network itself", f"{_RFC}791#section-3.2"),
    _special("127.0.0.0/8", "loopback addresses", f"{_RFC}1122#section-3.2.1.3"),
    _special("169.254.0.0/16", "link-local addresses", f"{_RFC}3927"),
    _special("224.0.0.0/4", "multicast addresses", f"{_RFC}5771"),
    _special("240.0.0.0/4", "addresses that are reserved for future use", f"{_RFC}1112#section-4"),
)

# Nothing on the internet has such an address for its source.
NOT_ON_THE_INTERNET: Sequence[SpecialRange] = (
    *UNUSABLE,
    *(_special(str(block), "private addresses", f"{_RFC}1918") for block in PRIVATE),
    _special("100.64.0.0/10", "addresses that networks of providers share", f"{_RFC}6598"),
    _special("192.0.0.0/24", "addresses of protocols", f"{_RFC}6890#section-2.1"),
    _special("198.18.0.0/15", "addresses of benchmarks", f"{_RFC}2544"),
)

# Source: https://www.rfc-editor.org/rfc/rfc5737
DOCUMENTATION = (
    IPv4Network("192.0.2.0/24"),
    IPv4Network("198.51.100.0/24"),
    IPv4Network("203.0.113.0/24"),
)

# Mask of the largest allocations of the internet: no organization was given more at a time. A
# larger range is a part of the internet, not one network.
# Source: https://www.iana.org/assignments/ipv4-address-space/ipv4-address-space.xhtml
LARGEST_ALLOCATION_MASK = 8

# Ranges that a VPC cannot add, by the range around its first range. AWS itself uses 198.19.0.0/16
# and parts of the other ranges, across VPCs.
# Source: https://docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html#add-cidr-block-restrictions
_OF_AWS = IPv4Network("198.19.0.0/16")
_PUBLIC = "public"
_KEPT_OUT = (
    (IPv4Network("10.0.0.0/15"), IPv4Network("10.0.0.0/16")),
    (IPv4Network("172.16.0.0/12"), IPv4Network("172.31.0.0/16")),
)


def unusable(block: IPv4Network) -> SpecialRange | None:
    """Return the part of ``block`` that a VPC refuses; None if a VPC takes all of it."""
    return next((special for special in UNUSABLE if block.overlaps(special.block)), None)


def not_on_the_internet(block: IPv4Network) -> SpecialRange | None:
    """Return the special range around ``block`` that the internet does not route, or None."""
    found = (special for special in NOT_ON_THE_INTERNET if block.subnet_of(special.block))
    return next(found, None)


def is_associated(
    added: IPv4Network, *, primary: IPv4Network, others: Sequence[IPv4Network]
) -> bool:
    """Return whether EC2 lets a range be added to a VPC.

    Args:
        added: Range to add.
        primary: Range that the VPC was made with.
        others: Ranges that were added before.
    """
    if any(
        existing.overlaps(there) and added.overlaps(kept_out)
        for existing in (primary, *others)
        for there, kept_out in _KEPT_OUT
    ):
        return False
    return _range_kind(added) in (_range_kind(primary), _PUBLIC)


def whole_networks(blocks: Sequence[IPv4Network]) -> Sequence[IPv4Network]:
    """Return ``blocks`` with neighbors joined, and without blocks inside of other blocks."""
    return tuple(collapse_addresses(blocks))


def _range_kind(block: IPv4Network) -> str:
    """Return the kind of a range that `is_associated` compares."""
    for private in PRIVATE:
        if block.overlaps(private):
            return str(private)
    return str(_OF_AWS) if block.overlaps(_OF_AWS) else _PUBLIC
