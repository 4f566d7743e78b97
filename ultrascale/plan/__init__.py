"""Plans of clusters: every decision that follows from a cluster file, made once."""

from ultrascale.plan.cluster import (
    assemble,
    draft,
    load,
    load_app,
    load_to_destroy,
    plan_cluster,
)
from ultrascale.plan.mistakes import all_mistakes, mistakes_of_plan, remarks
from ultrascale.plan.model import ClusterPlan, PoolPlan

__all__ = [
    "ClusterPlan",
    "PoolPlan",
    "all_mistakes",
    "assemble",
    "draft",
    "load",
    "load_app",
    "load_to_destroy",
    "mistakes_of_plan",
    "plan_cluster",
    "remarks",
]
