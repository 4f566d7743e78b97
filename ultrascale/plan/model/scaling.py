"""The Cluster Autoscaler and the node termination handler."""

from collections.abc import Mapping

from ultrascale.frozen import Frozen


class ClusterAutoscalerPlan(Frozen):
    """The Cluster Autoscaler."""

    image: str  # Image reference, pinned, of the cluster's own minor
    region: str  # AWS Region of the groups
    discovery_tags: Mapping[str, str]  # Tags of the Auto Scaling groups that it scales, all of them
    memory: str  # Memory that it requests and is limited to
    # What it must know of a node of each pool while there is none, as tags of that pool's Auto
    # Scaling group, the discovery tags among them; by the pool's name.
    group_tags: Mapping[str, Mapping[str, str]]


class TerminationHandlerPlan(Frozen):
    """The AWS Node Termination Handler in queue mode."""

    image: str  # Image reference, pinned
    region: str  # AWS Region of its queue
    queue: str  # Name of its SQS queue
    queue_url: str  # Placeholder that stands for the queue's URL in ``dist/``
    # Key of the tag of the groups and instances that it drains; its value is the cluster's name.
    managed_tag: str
    drain_seconds: int  # How long the pods of a node may take to leave
    workers: int  # Nodes that it drains at the same time
