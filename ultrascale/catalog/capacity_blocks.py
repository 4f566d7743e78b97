"""Capacity Blocks for ML: lengths and sizes that EC2 sells, and the time of the reclaim.

Sources:
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-blocks.html
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-how.html
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-purchase.html
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-terminate.html
"""

from datetime import time, timedelta

MOST_INSTANCES = 64
"""Most instances of one block."""

MOST_TOGETHER = 256
"""Most instances of all blocks of an account on one date."""

LONGEST_AHEAD = timedelta(weeks=8)
"""Longest time before its start at which a block or a training plan is sold."""

LONGEST_BY_THE_DAY = 14
"""Days up to which blocks are sold by the day."""

DAYS = frozenset({*range(1, LONGEST_BY_THE_DAY + 1), *range(21, 183, 7)})
"""Lengths that are sold, in days: beyond 14 by the week, to 182."""

LONGEST_DAYS = max(DAYS)
"""Most days of a block, its extensions included, of which there may be any number.

An extension is of any length that is sold, so a block that was extended may last any number of
days: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-extend.html
"""

ENDS_AT = time(11, 30)
"""Time of day at which every block ends, in UTC."""

RECLAIMED_BEFORE_END = timedelta(minutes=30)
"""Time before the end of a block at which EC2 begins to terminate its instances."""

ULTRASERVER_RECLAIMED_BEFORE_END = timedelta(minutes=60)
"""The same for blocks of UltraServers."""

# Karpenter drains nodes this much earlier, and so do we on every provisioner.
# Source: https://karpenter.sh/docs/tasks/odcrs/
DRAINED_BEFORE_RECLAIM = timedelta(minutes=10)
"""Time before that at which nodes are drained, so that jobs end by themselves."""


def reclaimed_before_end(*, ultraserver: bool) -> timedelta:
    """Return how long before a block's end EC2 begins to terminate its instances."""
    return ULTRASERVER_RECLAIMED_BEFORE_END if ultraserver else RECLAIMED_BEFORE_END


# Tokens of DescribeCapacityBlockOfferings in one Region: so many requests at once, then so many
# each second.
# Source: https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html
OFFERING_REQUESTS_AT_ONCE = 10
OFFERING_REQUESTS_PER_SECOND = 0.15
