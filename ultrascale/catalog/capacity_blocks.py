"""Capacity Blocks for ML: lengths and sizes for sale, and the time when EC2 takes nodes back.

Sources:
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-blocks.html
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-how.html
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-purchase.html
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-terminate.html
"""

from datetime import time, timedelta

MOST_INSTANCES = 64
"""Most instances of a block."""

MOST_TOGETHER = 256
"""Most instances of all blocks of an account on the same date."""

LONGEST_AHEAD = timedelta(weeks=8)
"""Longest time from the purchase of a block or a training plan to its start."""

LONGEST_BY_THE_DAY = 14
"""Most days of a block that is sold by the day; longer blocks are sold by the week."""

DAYS = frozenset({*range(1, LONGEST_BY_THE_DAY + 1), *range(21, 183, 7)})
"""Lengths of blocks for sale, in days: by the day up to 14, then by the week up to 182."""

LONGEST_DAYS = max(DAYS)
"""Most days of a block with all of its extensions.

An extension may have any length for sale, so an extended block may last any number of days: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-extend.html
"""

ENDS_AT = time(11, 30)
"""Time of day at which every block ends, in UTC."""

RECLAIMED_BEFORE_END = timedelta(minutes=30)
"""Time before the end of a block at which EC2 begins to terminate its instances."""

ULTRASERVER_RECLAIMED_BEFORE_END = timedelta(minutes=60)
"""Time before the end of an UltraServer block at which EC2 begins to terminate its instances."""

# Karpenter drains nodes this long before the reclaim, and so does this product for every
# provisioner.
# Source: https://karpenter.sh/docs/tasks/odcrs/
DRAINED_BEFORE_RECLAIM = timedelta(minutes=10)
"""Time from the begin of the drain to the reclaim, in which jobs can end by themselves."""


def reclaimed_before_end(*, ultraserver: bool) -> timedelta:
    """Return the time before a block's end at which EC2 begins to terminate its instances."""
    return ULTRASERVER_RECLAIMED_BEFORE_END if ultraserver else RECLAIMED_BEFORE_END


# Token bucket of DescribeCapacityBlockOfferings in a Region: requests at once, then requests a
# second.
# Source: https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html
OFFERING_REQUESTS_AT_ONCE = 10
OFFERING_REQUESTS_PER_SECOND = 0.15
