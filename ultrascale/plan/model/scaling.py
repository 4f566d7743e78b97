"""The Cluster Autoscaler and the node termination handler."""

from collections.abc import Mapping

from ultrascale.frozen import Frozen


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
