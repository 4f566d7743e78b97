"""The kinds of nodes that jobs may run on, the paid ones first."""

from collections.abc import Sequence

from ultrascale.frozen import Frozen
from ultrascale.plan import names
from ultrascale.plan.model import PoolPlan
from ultrascale.plan.model.pool import CapacityType

_ORDER: tuple[CapacityType, ...] = ("reserved", "on-demand", "spot")


class NodeTierPlan(Frozen):
    """Nodes of one value of the label `node-type`."""

    node_type: str  # The value
    pools: tuple[PoolPlan, ...]  # Their pools, or shards of them


def node_tiers(all_pools: Sequence[PoolPlan]) -> tuple[NodeTierPlan, ...]:
    """Return the tiers of a cluster: reserved nodes first, then On-Demand, then Spot.

    Pools of controllers and add-ons are no tier. Tiers of equal rank are in the order of the file.
    """
    pools: dict[str, list[PoolPlan]] = {}
    for pool in all_pools:
        if pool.role != names.SYSTEM_ROLE:
            pools.setdefault(pool.labels[names.NODE_TYPE_LABEL], []).append(pool)
    tiers = (NodeTierPlan(node_type=name, pools=tuple(members)) for name, members in pools.items())
    return tuple(sorted(tiers, key=_rank))


def _rank(tier: NodeTierPlan) -> int:
    return min(_ORDER.index(pool.capacity_type) for pool in tier.pools)
