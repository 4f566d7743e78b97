"""Pools of the cluster file: all shards of a pool are one line of a report."""

from dataclasses import dataclass

from ultrascale.plan.model import ClusterPlan, PoolPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class WholePool:
    """A pool with all of its shards.

    Attributes:
        name: Its name in the cluster file.
        plan: The pool, or its first shard.
        nodes: The most nodes of all shards together.
        at_once: Nodes that a deployment launches and waits for.
    """

    name: str
    plan: PoolPlan
    nodes: int
    at_once: int

    @property
    def on_hyperpod(self) -> bool:
        """Whether SageMaker launches its instances, which EC2 does not see."""
        return self.plan.is_hyperpod


def whole_pools(plan: ClusterPlan) -> tuple[WholePool, ...]:
    """Return the pools of ``plan``, in its order."""
    shards: dict[str, list[PoolPlan]] = {}
    for pool in plan.all_pools:
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
