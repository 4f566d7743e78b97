"""Node groups: EKS managed ones, and Auto Scaling groups of ours."""

from collections.abc import Mapping
from dataclasses import dataclass

from ultrascale.plan.model.network import SubnetPlan
from ultrascale.plan.model.pool import PoolPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroupPlan:
    """The node group of a pool, or of one shard of it.

    Attributes:
        pool: The pool.
        subnets: Subnets that its nodes are launched in; a single one for a Capacity Block.
        guarded: Whether a deploy must leave its nodes alone while they run.
        repaired: Whether EKS may replace nodes that it finds broken.
        kept_in_zones: Whether EC2 Auto Scaling must not move nodes from one zone to another.
        drain_seconds: How long a self-managed instance that goes may wait to be drained, in
            seconds; 0 where nothing drains it.
        carries_cni_rights: Whether the VPC CNI has its rights from the role of the nodes, and not
            from an association of its own.
        autoscaler_tags: Tags from which the Cluster Autoscaler reads what a node is like; empty
            where it does not scale the pool.
    """

    pool: PoolPlan
    subnets: tuple[SubnetPlan, ...]
    guarded: bool
    repaired: bool
    kept_in_zones: bool
    drain_seconds: int
    carries_cni_rights: bool
    autoscaler_tags: Mapping[str, str]
