"""Node groups: EKS managed ones, and Auto Scaling groups of ours."""

from collections.abc import Mapping

from ultrascale.frozen import Frozen
from ultrascale.plan.model.network import SubnetPlan
from ultrascale.plan.model.pool import PoolPlan


class NodeGroupPlan(Frozen):
    """The node group of a pool, or of one shard of it."""

    pool: PoolPlan  # The pool
    # Subnets that its nodes are launched in; a single one for a Capacity Block.
    subnets: tuple[SubnetPlan, ...]
    guarded: bool  # Whether a deploy must leave its running nodes alone
    repaired: bool  # Whether EKS may replace broken nodes
    kept_in_zones: bool  # Whether EC2 Auto Scaling must not move nodes from one zone to another
    # Longest drain of an ending self-managed instance, in seconds; 0 without a drain.
    drain_seconds: int
    # Whether the VPC CNI has its rights from the role of the nodes, and not from an association of
    # its own.
    carries_cni_rights: bool
    # Tags from which the Cluster Autoscaler reads a node's properties; empty where it does not
    # scale the pool.
    autoscaler_tags: Mapping[str, str]
