"""Services: address, life and number of their replicas."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from ultrascale.frozen import Frozen

if TYPE_CHECKING:
    from ultrascale.plan.model.needs import Figure


class TriggerPlan(Frozen):
    """A measure of load, and its amount for each replica."""

    series: str | None  # Metric of the pods, summed over them; None: the use of CPU
    target: float  # Amount for each replica; for CPU, percent of its pods' request


class PodsPlan(Frozen):
    """Pods, by their namespace and labels."""

    namespace: str  # Their namespace
    labels: Mapping[str, str]  # Their labels


class AutoscalePlan(Frozen):
    """Replicas that follow the load."""

    metric: Literal["waiting", "running", "cpu"]  # Measure of load
    target: float  # Requests for each replica; with `cpu` percent of the CPU that its pods ask for
    least: int  # Fewest replicas
    most: int  # Most replicas
    # Measures; the one that asks for most replicas decides.
    triggers: tuple[TriggerPlan, ...]
    lull_seconds: int  # Time for which fewer replicas must be enough before one goes
    # Pods of other namespaces that a policy must let read the metrics of its pods.
    readers: tuple[PodsPlan, ...]


class RoutePlan(Frozen):
    """The way by which requests reach a service by the names of its models."""

    models: tuple[str, ...]  # Names of models whose requests it gets
    gateway: str  # Name of the Gateway
    namespace: str  # Namespace of the Gateway and its proxies
    proxies: Mapping[str, str]  # Labels of the proxies
    closed: bool  # Whether network policies keep other pods of its namespace away


class ModelPlan(Frozen):
    """A model that a service loads before it answers; a part's plan derives from it."""

    weights_bytes: int  # Size of its weight files
    # Time in which a replica reads them, at best where nobody has measured it; None: not known
    load_seconds: float | None
    slow_load_seconds: float  # Time after which a replica that still reads them is taken for hung
    notes: tuple[str, ...]  # What its user reads before nodes are paid for, each a sentence

    def figures(self, at: str) -> "Iterable[Figure]":
        """Return its figures, with ids that begin with ``at``."""
        return ()


class ServingPlan(Frozen):
    """Replicas of a service: their address, and their rules of life."""

    replicas: int  # Replicas; the fewest where they follow the load
    nodes: int  # Pods of a replica, one on each node; the first of them takes requests
    port: int  # TCP port that they listen on
    health_path: str | None  # Path that answers 200 once a pod serves; None: the port is open
    startup_seconds: int  # Time before a pod that does not serve is started anew
    drain_seconds: int  # Time for which a stopping pod serves on, while clients forget it
    # Command that holds a stopping pod until its requests are answered; empty: it only pauses.
    drain: tuple[str, ...]
    # Command that fails while requests are there and nothing moves; empty: the health path says it.
    liveness: tuple[str, ...]
    max_unavailable: int  # Most replicas that a drain of nodes takes away at the same time
    # Whether an update starts a new replica before it takes an old one away: scarce nodes have no
    # room for both.
    surge: bool
    # Most replicas that an update takes away before others serve: a number, or a share in percent,
    # which is rounded down.
    replaced: int | str
    allow_from: tuple[str, ...]  # Other namespaces whose pods may reach it
    # Ranges of the API server, which reads its metrics; empty where no policy closes its namespace,
    # or no metrics are known of it.
    measured_from: tuple[str, ...]
    server: Literal["vllm", "other"]  # Program that answers
    # Scaling by the load; None for a fixed number of replicas.
    autoscale: AutoscalePlan | None
    route: RoutePlan | None = None  # The way by names of models; None where no request comes by it


class NodePart(Frozen):
    """The part of a node that a pod takes."""

    pool: str  # Pool of the node
    instance_type: str  # Its type, by EC2's name
    share: float  # Part of the node, from 0 to 1: the largest of CPU, memory and accelerators
    pods: int  # Such pods that the node holds
    # Zones of the nodes for pods that wait together, though one node may hold them all: the spread
    # that they prefer is kept.
    zones: int


class ServiceDemandPlan(Frozen):
    """A service of the cluster file, and its replicas' nodes."""

    name: str  # Its name
    namespace: str  # Its namespace
    server: Literal["vllm", "other"]  # Program that answers
    startup_seconds: int  # Time before a pod that does not serve is started anew
    least: int  # Fewest replicas
    most: int  # Most replicas
    nodes: int  # Pods of a replica
    tokens_per_second: float | None  # Tokens that a fully used replica generates; None: not stated
    parts: tuple[NodePart, ...]  # Possible nodes of a pod, one for each pool and instance type
    # Language model that it serves; None where the job states none.
    model: ModelPlan | None = None
