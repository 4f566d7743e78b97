"""What Karpenter and EKS Auto Mode launch nodes from."""

from collections.abc import Sequence

from ultrascale import config
from ultrascale.plan.model import NodeClassPlan, NodePoolPlan, PoolPlan


def plan_node_classes(
    cluster: config.Cluster, pools: Sequence[PoolPlan]
) -> tuple[NodeClassPlan, ...]:
    """Return the node class of each pool that Karpenter or EKS Auto Mode launches."""
    return ()


def plan_node_pools(cluster: config.Cluster, pools: Sequence[PoolPlan]) -> tuple[NodePoolPlan, ...]:
    """Return the NodePools of each pool that Karpenter or EKS Auto Mode launches."""
    return ()
