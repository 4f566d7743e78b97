"""What changes the size of node groups, and what empties their nodes before they go."""

from collections.abc import Sequence

from ultrascale import config
from ultrascale.plan.model import ClusterAutoscalerPlan, PoolPlan, TerminationHandlerPlan


def plan_cluster_autoscaler(
    cluster: config.Cluster, pools: Sequence[PoolPlan]
) -> ClusterAutoscalerPlan | None:
    """Return the Cluster Autoscaler, if a node group scales with its pods."""
    return None


def plan_termination_handler(
    cluster: config.Cluster, pools: Sequence[PoolPlan]
) -> TerminationHandlerPlan | None:
    """Return the Node Termination Handler, if a self-managed group loses instances."""
    return None
