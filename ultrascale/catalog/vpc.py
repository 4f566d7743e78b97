"""Amazon VPC: what its address ranges and subnets may be.

Sources:
    https://docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html
    https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html
    https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html
"""

# Masks of a VPC's ranges, the largest and the smallest; those of a subnet are the same.
# Source: https://docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html
LARGEST_RANGE_MASK = 16
SMALLEST_RANGE_MASK = 28

# EC2 takes the first four addresses and the last of every subnet.
# Source: https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html
RESERVED_ADDRESSES_AT_START = 4
RESERVED_ADDRESSES_AT_END = 1

# Primary and secondary ranges of a VPC together, as far as the quota can be raised; 5 by default.
# Source: https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html
MOST_IPV4_RANGES = 50
