"""Controllers of services: KEDA and LeaderWorkerSet."""

from dataclasses import dataclass

from ultrascale.plan.model.queueing import ControllerPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class KedaPlan:
    """KEDA, by which replicas follow the load.

    Attributes:
        chart: Location of the chart: of an OCI registry, or a Helm repository's URL and its name.
        version: Version of the chart.
        operator_image: Image that reads metrics and sets replicas, pinned.
        metrics_image: Image that hands metrics to the API server, pinned.
        webhooks_image: Image that judges its objects, pinned.
        namespaces: Namespaces of which it scales the services; empty: of all.
        operator: Size of the program that reads metrics.
        server: Size of each of the two others.
    """

    chart: str
    version: str
    operator_image: str
    metrics_image: str
    webhooks_image: str
    namespaces: tuple[str, ...]
    operator: ControllerPlan
    server: ControllerPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderWorkerSetPlan:
    """LeaderWorkerSet, by which a replica has several pods.

    Attributes:
        chart: Location of the chart.
        version: Version of the chart, without a `v`.
        image: Image of the controller, pinned.
        manager: Size of the controller.
    """

    chart: str
    version: str
    image: str
    manager: ControllerPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingControllersPlan:
    """Controllers of services.

    Attributes:
        keda: KEDA, if replicas follow the load.
        leader_worker_set: LeaderWorkerSet, if a service needs it.
    """

    keda: KedaPlan | None
    leader_worker_set: LeaderWorkerSetPlan | None
