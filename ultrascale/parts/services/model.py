"""Controllers of services: KEDA and LeaderWorkerSet."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from ultrascale.catalog import leaderworkerset
from ultrascale.frozen import Frozen
from ultrascale.parts.services import keda as keda_facts
from ultrascale.plan.model import ControllerPlan, ControllerVersion, PlannedPart


class KedaPlan(Frozen):
    """KEDA, by which replicas follow the load."""

    chart: str  # Location of the chart: of an OCI registry, or a Helm repository's URL and its name
    version: str  # Version of the chart
    operator_image: str  # Image that reads metrics and sets replicas, pinned
    metrics_image: str  # Image that hands metrics to the API server, pinned
    webhooks_image: str  # Image that judges its objects, pinned
    namespaces: tuple[str, ...]  # Namespaces of the services that it scales; empty: all
    operator: ControllerPlan  # Size of the program that reads metrics
    server: ControllerPlan  # Size of each of the two others


class LeaderWorkerSetPlan(Frozen):
    """LeaderWorkerSet, by which a replica has several pods."""

    chart: str  # Location of the chart
    version: str  # Version of the chart, without a `v`
    image: str  # Image of the controller, pinned
    manager: ControllerPlan  # Size of the controller


class Plan(PlannedPart):
    """Controllers of services."""

    renderer: ClassVar[str] = "services"
    installs_charts: ClassVar[bool] = True

    keda: KedaPlan | None  # KEDA, if replicas follow the load
    leader_worker_set: LeaderWorkerSetPlan | None  # LeaderWorkerSet, if a service needs it

    @property
    def pods(self) -> Mapping[str, int]:
        """Pods of both controllers; webhooks of KEDA are as many as its servers of metrics."""
        pods: dict[str, int] = {}
        if self.keda is not None:
            pods["keda"] = self.keda.operator.replicas + 2 * self.keda.server.replicas
        if self.leader_worker_set is not None:
            pods["leader-worker-set"] = self.leader_worker_set.manager.replicas
        return pods

    @property
    def versions(self) -> Iterator[ControllerVersion]:
        """Both controllers."""
        if self.leader_worker_set is not None:
            yield ControllerVersion(
                name="LeaderWorkerSet",
                version=self.leader_worker_set.version,
                latest=leaderworkerset.LATEST_KUBERNETES_VERSION,
            )
        if self.keda is not None:
            # Its chart is tested on the three minors before it came out: no promise ends there.
            yield ControllerVersion(
                name="KEDA",
                version=self.keda.version,
                latest=keda_facts.LATEST_KUBERNETES_VERSION,
                is_limit=False,
            )
