"""What follows from the cluster file and the catalog: every decision, made once."""

from ultrascale.plan.cluster import load, plan_cluster
from ultrascale.plan.model import ClusterPlan, PoolPlan

__all__ = ["ClusterPlan", "PoolPlan", "load", "plan_cluster"]
