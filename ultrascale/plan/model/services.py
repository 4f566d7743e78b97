"""Services: how replicas are reached, kept and counted."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalePlan:
    """Replicas that follow the load.

    Attributes:
        metric: Measure of load.
        target: Requests for each replica; with `cpu` percent of the CPU that its pods ask for.
        least: Fewest replicas.
        most: Most replicas.
    """

    metric: Literal["waiting", "running", "cpu"]
    target: float
    least: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPlan:
    """How replicas are reached, and kept.

    Attributes:
        replicas: Replicas; the fewest where they follow the load.
        nodes: Pods of a replica, one on each node; the first of them takes requests.
        port: TCP port that they listen on.
        health_path: Path that answers 200 once a pod serves; None: the port is open.
        startup_seconds: Time before a pod that does not serve is started anew.
        drain_seconds: Time that a pod serves on once it is to stop, while clients forget it.
        max_unavailable: Replicas that a drain may take away at the same time.
        surge: Whether an update starts a new replica before it takes an old one away: scarce
            nodes have no room for both.
        allow_from: Other namespaces whose pods may reach it.
        server: Program that answers.
        autoscale: How replicas follow the load; None where their number is fixed.
    """

    replicas: int
    nodes: int
    port: int
    health_path: str | None
    startup_seconds: int
    drain_seconds: int
    max_unavailable: int
    surge: bool
    allow_from: tuple[str, ...]
    server: Literal["vllm", "other"]
    autoscale: AutoscalePlan | None
