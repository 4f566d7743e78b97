"""Amazon VPC: bounds of its address ranges and subnets.

Sources:
    https://docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html
    https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html
    https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html
"""

from ipaddress import IPv4Network

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
