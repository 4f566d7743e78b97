"""Node groups: EKS managed ones, and Auto Scaling groups of ours."""

from collections.abc import Mapping

from ultrascale.frozen import Frozen
from ultrascale.plan.model.network import SubnetPlan
from ultrascale.plan.model.pool import PoolPlan


class SparedVerdict(Frozen):
    """A verdict of the node monitoring agent for which EKS does not end a node."""

    condition: str  # The node's condition
    reason: str  # Its reason
    minutes: int  # Age of the verdict, which EKS wants stated


class NodeGroupPlan(Frozen):
    """The node group of a pool, or of one shard of it."""

    pool: PoolPlan  # The pool
    # Subnets that its nodes are launched in; a single one for a Capacity Block.
    subnets: tuple[SubnetPlan, ...]
    guarded: bool  # Whether a deploy must leave its running nodes alone
    repaired: bool  # Whether EKS may replace broken nodes
    # Verdict that may be wrong; with it EKS repairs a node at a time. None: EKS heeds all verdicts.
    spared: SparedVerdict | None
    kept_in_zones: bool  # Whether EC2 Auto Scaling must not move nodes from one zone to another
    # Longest drain of an ending self-managed instance, in seconds; 0 without a drain.
    drain_seconds: int
    # Whether the VPC CNI has its rights from the role of the nodes, and not from an association of
    # its own.
    carries_cni_rights: bool
    # Tags from which the Cluster Autoscaler reads a node's properties; empty where it does not
    # scale the pool.
    autoscaler_tags: Mapping[str, str]


# --- The Cluster Autoscaler and the node termination handler --------------------------------------


class ClusterAutoscalerPlan(Frozen):
    """The Cluster Autoscaler."""

    image: str  # Image reference, pinned, of the cluster's own minor
    region: str  # AWS Region of the groups
    discovery_tags: Mapping[str, str]  # Tags of the Auto Scaling groups that it scales, all of them
    memory: str  # Request and limit of its memory
    # Properties of a node of each pool without nodes, as tags of its Auto Scaling group, with the
    # discovery tags; by the pool's name.
    group_tags: Mapping[str, Mapping[str, str]]


class TerminationHandlerPlan(Frozen):
    """The AWS Node Termination Handler in queue mode."""

    image: str  # Image reference, pinned
    region: str  # AWS Region of its queue
    queue: str  # Name of its SQS queue
    queue_url: str  # Placeholder for the queue's URL in ``dist/``
    # Key of the tag of the groups and instances that it drains; its value is the cluster's name.
    managed_tag: str
    drain_seconds: int  # Longest time for the pods of a node to leave
    workers: int  # Nodes that it drains at the same time
