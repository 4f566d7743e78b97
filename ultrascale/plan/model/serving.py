"""Controllers of services: KEDA and LeaderWorkerSet."""

from ultrascale.frozen import Frozen
from ultrascale.plan.model.queueing import ControllerPlan


class KedaPlan(Frozen):
    """KEDA, by which replicas follow the load."""

    chart: str  # Location of the chart: of an OCI registry, or a Helm repository's URL and its name
    version: str  # Version of the chart
    operator_image: str  # Image that reads metrics and sets replicas, pinned
    metrics_image: str  # Image that hands metrics to the API server, pinned
    webhooks_image: str  # Image that judges its objects, pinned
    namespaces: tuple[str, ...]  # Namespaces of which it scales the services; empty: of all
    operator: ControllerPlan  # Size of the program that reads metrics
    server: ControllerPlan  # Size of each of the two others


class LeaderWorkerSetPlan(Frozen):
    """LeaderWorkerSet, by which a replica has several pods."""

    chart: str  # Location of the chart
    version: str  # Version of the chart, without a `v`
    image: str  # Image of the controller, pinned
    manager: ControllerPlan  # Size of the controller


class ServingControllersPlan(Frozen):
    """Controllers of services."""

    keda: KedaPlan | None  # KEDA, if replicas follow the load
    leader_worker_set: LeaderWorkerSetPlan | None  # LeaderWorkerSet, if a service needs it
