"""Capacity Blocks for ML: what EC2 sells, and when it takes the instances back.

Sources:
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-how.html
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-terminate.html
"""

from datetime import time, timedelta

MOST_INSTANCES = 64
"""Most instances of one block."""

DAYS = frozenset({*range(1, 15), *range(21, 183, 7)})
"""Lengths that are sold, in days: up to 14 by the day, then by the week to 182."""

ENDS_AT = time(11, 30)
"""Time of day at which every block ends, in UTC."""

RECLAIMED_BEFORE_END = timedelta(minutes=30)
"""How long before the end EC2 begins to terminate the instances."""

ULTRASERVER_RECLAIMED_BEFORE_END = timedelta(minutes=60)
"""The same for blocks of UltraServers."""

# Karpenter drains nodes this much earlier, and so do we on every provisioner.
# Source: https://karpenter.sh/docs/tasks/odcrs/
DRAINED_BEFORE_RECLAIM = timedelta(minutes=10)
"""How long before that nodes are drained, so that jobs end by themselves."""


def reclaimed_before_end(*, ultraserver: bool) -> timedelta:
    """Return how long before a block's end EC2 begins to terminate its instances."""
    return ULTRASERVER_RECLAIMED_BEFORE_END if ultraserver else RECLAIMED_BEFORE_END
