"""Layers of AWS's network that the nodes of pools name, and the groups of nodes below them."""

from collections.abc import Sequence

from ultrascale.catalog import network_layers
from ultrascale.plan.model import PoolPlan

_LAST_TIER = 3


def smallest_tier(pods: int, among: int) -> int:
    """Return the lowest tier with a group of ``pods`` nodes among ``among``, 1 the lowest."""
    return next(tier for tier, size in groups_of(among) if pods <= size or tier == _LAST_TIER)


def topology_layers(pools: Sequence[PoolPlan]) -> int:
    """Return how many network layers every accelerated node of ``pools`` names.

    Where types with more are among others, their lowest layer is left out: a node that lacks a
    label is in no HyperNode above it.
    """
    accelerated = (pool for pool in pools if pool.accelerator is not None)
    types = {name for pool in accelerated for name in pool.instance_types}
    return min(map(network_layers.network_layers, types), default=network_layers.NETWORK_LAYERS)


def pools_with_layers(pools: Sequence[PoolPlan]) -> list[PoolPlan]:
    """Return the pools whose nodes have labels of their place in AWS's network."""
    return [pool for pool in pools if all(map(network_layers.is_placed, pool.instance_types))]


def known_nodes(pools: Sequence[PoolPlan]) -> int:
    """Return the nodes of ``pools`` that HyperNodes hold, at full size."""
    return sum(pool.max_nodes for pool in pools_with_layers(pools))


def groups_of(among: int) -> tuple[tuple[int, int], ...]:
    """Return each tier with the nodes of one of its groups, the lowest first.

    No source states the nodes of a broader layer's group: one may hold them all.
    """
    sizes = (network_layers.SMALLEST_GROUP_NODES, network_layers.NEXT_GROUP_NODES, max(among, 1))
    return tuple(enumerate(sizes, start=1))
