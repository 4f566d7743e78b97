"""Pools of node groups, and what scales and drains them."""

from typing import Any

from tests.support.pools import SPOT, SYSTEM_POOL, make_cluster, pool_document, shards_of
from ultrascale import config
from ultrascale.plan.model import ClusterAutoscalerPlan, PoolPlan
from ultrascale.plan.pools.scaling import plan_cluster_autoscaler

FIXED = SYSTEM_POOL | {"nodes": {"static": 2}}
SELF_MANAGED = {"provisioner": "self-managed"}
GPU_SPOT = pool_document(
    instance_types=["g6.12xlarge", "g6e.12xlarge", "g5.12xlarge"], purchase=SPOT, zones=None
)


def planned(*pools: dict[str, Any], **changes: Any) -> tuple[config.Cluster, list[PoolPlan]]:
    """Return a cluster of ``pools``, and the plans of their shards."""
    cluster = make_cluster(pools=[*pools], **changes)
    return cluster, shards_of(cluster)


def autoscaler(*pools: dict[str, Any], **changes: Any) -> ClusterAutoscalerPlan | None:
    """Return the Cluster Autoscaler of a cluster of ``pools``."""
    return plan_cluster_autoscaler(*planned(*pools, **changes))
