"""Services: how replicas are reached, kept and counted."""

from dataclasses import dataclass
from typing import Literal

from ultrascale.plan.model.front import FrontRoutePlan
from ultrascale.plan.model.models import ServedModelPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerPlan:
    """A measure of load, and what a replica is to have of it.

    Attributes:
        series: Metric of the pods, which is summed over them; None: the use of CPU.
        target: Amount for each replica; of CPU, percent of what its pods ask for.
    """

    series: str | None
    target: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalePlan:
    """Replicas that follow the load.

    Attributes:
        metric: Measure of load.
        target: Requests for each replica; with `cpu` percent of the CPU that its pods ask for.
        least: Fewest replicas.
        most: Most replicas.
        triggers: Measures, of which the one that asks for most replicas decides.
        lull_seconds: Time for which fewer replicas must be enough before one goes.
        admits_reader: Whether a policy must let KEDA reach the pods.
    """

    metric: Literal["waiting", "running", "cpu"]
    target: float
    least: int
    most: int
    triggers: tuple[TriggerPlan, ...]
    lull_seconds: int
    admits_reader: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPlan:
    """Replicas of a service: their address, and what keeps them.

    Attributes:
        replicas: Replicas; the fewest where they follow the load.
        nodes: Pods of a replica, one on each node; the first of them takes requests.
        port: TCP port that they listen on.
        health_path: Path that answers 200 once a pod serves; None: the port is open.
        startup_seconds: Time before a pod that does not serve is started anew.
        drain_seconds: Time that a pod serves on once it is to stop, while clients forget it.
        drain: Command that holds a pod that is to stop until its requests are answered; empty: it
            pauses for that time alone.
        max_unavailable: Replicas that a drain of nodes may take away at the same time.
        surge: Whether an update starts a new replica before it takes an old one away: scarce
            nodes have no room for both.
        replaced: Replicas that an update may take away before others serve: a number, or a share
            in percent, which is rounded down.
        allow_from: Other namespaces whose pods may reach it.
        measured_from: Ranges of the API server, through which its metrics are read; empty where no
            policy closes its namespace, or no metrics are known of it.
        server: Program that answers.
        autoscale: Rules by which replicas follow the load; None where their number is fixed.
        front: The way from the front; None where no request comes by it.
        model: Language model that it serves; None where the job states none.
    """

    replicas: int
    nodes: int
    port: int
    health_path: str | None
    startup_seconds: int
    drain_seconds: int
    drain: tuple[str, ...]
    max_unavailable: int
    surge: bool
    replaced: int | str
    allow_from: tuple[str, ...]
    measured_from: tuple[str, ...]
    server: Literal["vllm", "other"]
    autoscale: AutoscalePlan | None
    front: FrontRoutePlan | None = None
    model: ServedModelPlan | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePart:
    """The part of a node that a pod takes.

    Attributes:
        pool: Pool of the node.
        instance_type: Its type, in EC2's words.
        share: Part of the node, from 0 to 1: the largest of CPU, memory and accelerators.
        pods: Such pods that the node holds.
        zones: Zones that pods which wait together get nodes in, though one node may hold them
            all: the spread that they prefer is kept.
    """

    pool: str
    instance_type: str
    share: float
    pods: int
    zones: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceDemandPlan:
    """A service of the cluster file, and the nodes that its replicas take.

    Attributes:
        name: Its name.
        namespace: Namespace that it runs in.
        server: Program that answers.
        startup_seconds: Time before a pod that does not serve is started anew.
        least: Fewest replicas.
        most: Most replicas.
        nodes: Pods of a replica.
        tokens_per_second: Tokens that a fully used replica generates; None: not stated.
        parts: Nodes that a pod may run on, one for each pool and instance type.
        model: Language model that it serves; None where the job states none.
    """

    name: str
    namespace: str
    server: Literal["vllm", "other"]
    startup_seconds: int
    least: int
    most: int
    nodes: int
    tokens_per_second: float | None
    parts: tuple[NodePart, ...]
    model: ServedModelPlan | None = None
