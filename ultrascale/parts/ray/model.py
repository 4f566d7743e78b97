"""Plan of Ray's operator, and its part of a job's plan."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from ultrascale.frozen import Frozen
from ultrascale.parts.ray import facts
from ultrascale.plan.model import ControllerPlan, ControllerVersion, PlannedPart
from ultrascale.plan.model.jobs import TopologyPlan


class Plan(PlannedPart):
    """KubeRay's operator."""

    installs_charts: ClassVar[bool] = True

    chart: str  # Location of the chart
    version: str  # Version of the chart, without a `v`
    image: str  # Image of the operator, pinned
    operator: ControllerPlan  # Its size
    namespaces: tuple[str, ...]  # Namespaces of jobs, outside which it has no right
    batch_scheduler: str  # Scheduler that starts all pods of a job at once; empty without

    @property
    def pods(self) -> Mapping[str, int]:
        """Pods of the operator."""
        return {facts.OPERATOR: self.operator.replicas}

    @property
    def versions(self) -> Iterator[ControllerVersion]:
        """The operator, whose publisher promises no minor of Kubernetes."""
        yield ControllerVersion(
            name="KubeRay",
            version=self.version,
            latest=facts.LATEST_KUBERNETES_VERSION,
            is_limit=False,
        )


class RayJobPlan(Frozen):
    """The fields of a RayJob beside its pods."""

    version: str  # Release of Ray
    entry_point: str  # Command line of the entry point, for a shell
    starts_within_seconds: int | None  # Time for all pods to run; None: a scheduler starts them
    labels: Mapping[str, str]  # Labels by which the operator fills the group of a scheduler
    closed: bool  # Whether its own network policy lets its pods reach each other
    # Closeness of the pods of each role that asks Kueue for it.
    topologies: Mapping[str, TopologyPlan]
