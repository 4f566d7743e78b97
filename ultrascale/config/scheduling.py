"""`scheduling`: gang scheduler, queues, priorities and rendezvous."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from ultrascale.catalog import kubernetes
from ultrascale.config._base import Model, Quantity, SubdomainName, WrongValueError

DEFAULT_PRIORITY_CLASSES: Mapping[str, int] = MappingProxyType(
    {
        "critical": 1_000_000,
        "high": 800_000,
        "medium": 600_000,
        "low": 400_000,
        "preemptible": 200_000,
    }
)


def _not_kubernetes_own(name: str) -> str:
    if name.startswith(kubernetes.RESERVED_PRIORITY_CLASS_PREFIX):
        wrong = f"{name!r}: names that start with system- are Kubernetes' own"
        raise WrongValueError(wrong, "choose another", complete=True)
    return name


def _users_may_set(value: int) -> int:
    least, greatest = kubernetes.LEAST_PRIORITY, kubernetes.GREATEST_PRIORITY
    if not least <= value <= greatest:
        todo = f"write {least} to {greatest}"
        raise WrongValueError("not a priority that users may set", todo)
    return value


PriorityName = Annotated[SubdomainName, AfterValidator(_not_kubernetes_own)]
Priority = Annotated[int, AfterValidator(_users_may_set)]


class Queue(Model):
    """A Volcano queue.

    Attributes:
        name: Unique in the cluster.
        weight: Share of the cluster relative to the other queues.
        reclaimable: Whether other queues may take back what it uses beyond its share.
        capability: Most that its jobs may use, by resource name.
    """

    name: SubdomainName
    weight: int = 1
    reclaimable: bool = True
    capability: Mapping[str, Quantity] = Field(default_factory=dict[str, str])


class Rendezvous(Model):
    """Where the workers of an elastic job meet.

    Attributes:
        backend: ``c10d`` meets in the job itself, ``etcd`` at a server through its v3 API, which
            our training images speak, ``etcd-v2`` through the older API of torch's own backends.
        replicas: Members of the etcd cluster; nothing to choose for ``c10d``.
    """

    backend: Literal["c10d", "etcd", "etcd-v2"] = "c10d"
    replicas: int = 1


class Scheduling(Model):
    """How jobs get nodes.

    Attributes:
        gang_scheduler: What starts all pods of a job together.
        queues: Volcano queues.
        priority_classes: Values of PriorityClasses, by name.
        topology_aware: Whether jobs are placed by AWS's network topology.
        rendezvous: Where elastic workers meet.
        neuron_scheduler_extension: Whether jobs can ask for neighbouring Neuron devices of a node.
    """

    gang_scheduler: Literal["volcano", "none"] = "none"
    queues: tuple[Queue, ...] = ()
    priority_classes: Mapping[PriorityName, Priority] = Field(
        default_factory=lambda: dict(DEFAULT_PRIORITY_CLASSES)
    )
    topology_aware: bool = False
    rendezvous: Rendezvous = Rendezvous()
    neuron_scheduler_extension: bool = False
