"""The kinds of nodes that jobs may run on, those that are paid for already first."""

from dataclasses import dataclass

from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan, PoolPlan
from ultrascale.plan.model.pool import CapacityType

_ORDER: tuple[CapacityType, ...] = ("reserved", "on-demand", "spot")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTierPlan:
    """Nodes of one value of the label `node-type`.

    Attributes:
        node_type: The value.
        pools: Their pools, or shards of them.
    """

    node_type: str
    pools: tuple[PoolPlan, ...]


def node_tiers(plan: ClusterPlan) -> tuple[NodeTierPlan, ...]:
    """Return the tiers of a cluster: reserved nodes first, then On-Demand, then Spot.

    Those of controllers and add-ons are none. Tiers of equal rank are in the order of the file.
    """
    pools: dict[str, list[PoolPlan]] = {}
    for pool in plan.all_pools:
        if pool.role != names.SYSTEM_ROLE:
            pools.setdefault(pool.labels[names.NODE_TYPE_LABEL], []).append(pool)
    found = (NodeTierPlan(node_type=name, pools=tuple(each)) for name, each in pools.items())
    return tuple(sorted(found, key=_rank))


def _rank(tier: NodeTierPlan) -> int:
    return min(_ORDER.index(pool.capacity_type) for pool in tier.pools)
