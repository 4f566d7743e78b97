"""Pools of the cluster file: all shards of a pool share a line of a report."""

from collections.abc import Sequence

from ultrascale.frozen import Frozen
from ultrascale.plan.model import PoolPlan


class WholePool(Frozen):
    """A pool with all of its shards."""

    name: str  # Its name in the cluster file
    plan: PoolPlan  # The pool, or its first shard
    nodes: int  # The most nodes of all shards together
    at_once: int  # Nodes that a deployment launches and waits for

    @property
    def in_account(self) -> bool:
        """Whether the instances belong to the account; else they are SageMaker's."""
        return self.plan.facts.in_account


def whole_pools(all_pools: Sequence[PoolPlan]) -> tuple[WholePool, ...]:
    """Return the pools of the file in its order."""
    shards: dict[str, list[PoolPlan]] = {}
    for pool in all_pools:
        shards.setdefault(pool.pool, []).append(pool)
    return tuple(
        WholePool(
            name=name,
            plan=pools[0],
            nodes=sum(pool.max_nodes for pool in pools),
            at_once=sum(pool.initial_nodes for pool in pools),
        )
        for name, pools in shards.items()
    )
