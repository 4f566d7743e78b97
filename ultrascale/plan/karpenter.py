"""Self-managed Karpenter."""

from collections.abc import Sequence

from ultrascale import config
from ultrascale.plan.model import KarpenterPlan, PoolPlan


def plan_karpenter(cluster: config.Cluster, pools: Sequence[PoolPlan]) -> KarpenterPlan | None:
    """Return Karpenter, if the file asks for it."""
    return None
