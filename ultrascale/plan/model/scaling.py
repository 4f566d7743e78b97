"""The Cluster Autoscaler and the node termination handler."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAutoscalerPlan:
    """The Cluster Autoscaler.

    Attributes:
        image: Image reference, pinned, of the cluster's own minor.
        region: AWS Region of the groups.
        discovery_tags: Tags of the Auto Scaling groups that it scales, all of them.
        memory: Memory that it requests and is limited to.
        group_tags: What it must know of a node of each pool while there is none, as tags of that
            pool's Auto Scaling group, the discovery tags among them; by the pool's name.
    """

    image: str
    region: str
    discovery_tags: Mapping[str, str]
    memory: str
    group_tags: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminationHandlerPlan:
    """The AWS Node Termination Handler in queue mode.

    Attributes:
        image: Image reference, pinned.
        region: AWS Region of its queue.
        queue: Name of its SQS queue.
        queue_url: Placeholder that stands for the queue's URL in ``dist/``.
        managed_tag: Key of the tag of the groups and instances that it drains; its value is the
            cluster's name.
        drain_seconds: How long the pods of a node may take to leave.
        workers: Nodes that it drains at the same time.
    """

    image: str
    region: str
    queue: str
    queue_url: str
    managed_tag: str
    drain_seconds: int
    workers: int
