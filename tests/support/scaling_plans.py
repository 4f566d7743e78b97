"""Pools of node groups, and what scales and drains them."""

from typing import Any

from tests.support.pools import SPOT, SYSTEM_POOL, make_cluster, pool_document
from ultrascale import config
from ultrascale.plan.model import ClusterAutoscalerPlan, PoolPlan
from ultrascale.plan.pools.pool import plan_pools
from ultrascale.plan.pools.scaling import plan_cluster_autoscaler

FIXED = SYSTEM_POOL | {"nodes": {"static": 2}}
SELF_MANAGED = {"provisioner": "self-managed"}
GPU_SPOT = pool_document(
    instance_types=["g6.12xlarge", "g6e.12xlarge", "g5.12xlarge"], purchase=SPOT, zones=None
)


def planned(*pools: dict[str, Any], **changes: Any) -> tuple[config.Cluster, list[PoolPlan]]:
    """Return a cluster of ``pools``, and the plans of their shards."""
    cluster = make_cluster(pools=[*pools], **changes)
    version = cluster.kubernetes.version
    return cluster, [
        plan for pool in cluster.pools for plan in plan_pools(pool, kubernetes_version=version)
    ]


def autoscaler(*pools: dict[str, Any], **changes: Any) -> ClusterAutoscalerPlan | None:
    """Return the Cluster Autoscaler of a cluster of ``pools``."""
    return plan_cluster_autoscaler(*planned(*pools, **changes))
