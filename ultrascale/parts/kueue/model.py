"""Plan of Kueue and JobSet, and of the queues of the cluster file."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from ultrascale.parts.kueue import facts, jobset
from ultrascale.plan.model import (
    ControllerPlan,
    ControllerVersion,
    PoolPlan,
    QueueingPlan,
    QueueNeeds,
    TopologyLevelsPlan,
    WorkloadPriorityPlan,
)

# In the words of Kueue's configuration.
LEADER_WORKER_SETS = "leaderworkerset.x-k8s.io/leaderworkerset"
RAY_JOBS = "ray.io/rayjob"


class Plan(QueueingPlan):
    """Kueue and JobSet, and the queues of the cluster file."""

    renderer: ClassVar[str] = "kueue"
    installs_charts: ClassVar[bool] = True

    chart: str  # Location of the chart `kueue`
    version: str  # Version of that chart, without a `v`
    image: str  # Image of Kueue's controller, pinned
    jobset_chart: str  # Location of the chart `jobset`
    jobset_version: str  # Version of that chart, without a `v`
    jobset_image: str  # Image of JobSet's controller, pinned
    manager: ControllerPlan  # Size of Kueue's controller
    jobset_manager: ControllerPlan  # Size of JobSet's controller
    # Kinds of jobs that Kueue manages, in the words of its configuration.
    frameworks: tuple[str, ...]
    gated_interfaces: tuple[str, ...]  # Interfaces that only nodes with accelerators have
    # Accelerated pools without nodes in any queue: pods that run there alone need no queue.
    uncounted_pools: tuple[str, ...]
    fair_sharing: bool  # Whether idle quota is shared by the queues' weights
    topologies: tuple[TopologyLevelsPlan, ...]  # Topologies that flavors name
    priorities: tuple[WorkloadPriorityPlan, ...]  # Priorities in a queue, highest first

    @property
    def queues_services(self) -> bool:
        """Whether services wait in its queues."""
        return LEADER_WORKER_SETS in self.frameworks

    @property
    def queues_ray(self) -> bool:
        """Whether jobs of Ray wait in its queues."""
        return RAY_JOBS in self.frameworks

    @property
    def pods(self) -> Mapping[str, int]:
        """Pods of the controllers of both."""
        return {"kueue": self.manager.replicas, "jobset": self.jobset_manager.replicas}

    @property
    def versions(self) -> Sequence[ControllerVersion]:
        """The releases of both."""
        return (
            ControllerVersion(
                name="Kueue", version=self.version, latest=facts.LATEST_KUBERNETES_VERSION
            ),
            ControllerVersion(
                name="JobSet", version=self.jobset_version, latest=jobset.LATEST_KUBERNETES_VERSION
            ),
        )

    def needs(self, pools: Sequence[PoolPlan]) -> QueueNeeds:
        """Return the guaranteed nodes of queues among the nodes of ``pools``."""
        from ultrascale.parts.kueue.shares import queue_needs

        return queue_needs(self, pools)
