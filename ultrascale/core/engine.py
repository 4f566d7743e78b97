"""The face of a queueing engine: the core's questions to the part whose queues jobs wait in."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ultrascale.core.table import all_parts
from ultrascale.frozen import Frozen

if TYPE_CHECKING:
    from ultrascale import config
    from ultrascale.plan.jobs.controllers import JobController
    from ultrascale.plan.jobs.request import JobRequest
    from ultrascale.plan.model import GangPlacement, PodPlan, PoolPlan, QueuedObjects
    from ultrascale.plan.model.jobs import TopologyPlan


class QueueKinds(Frozen):
    """Kinds of an engine's own objects, by which people and programs see why jobs wait."""

    group: str  # Their API group
    version: str  # Its version
    queues: str  # Plural of its queues, which belong to no namespace
    entries: str  # Plural of a job's entry in a queue, in the job's namespace
    local: str | None = None  # Plural of queues of a namespace; None where it has none

    def entries_in(self, queues: Sequence[str]) -> "QueuedObjects":
        """Return the entries of jobs in ``queues``, whether they run or have no pods yet."""
        from ultrascale.plan.model import QueuedObjects

        return QueuedObjects(
            group=self.group, version=self.version, kind=self.entries, queues=tuple(queues)
        )


class QueueingEngine:
    """An engine, by its answers; unchanged they mean none: jobs start as they are sent."""

    word: str = ""
    """Its name in messages."""

    queues_jobs: bool = False
    """Whether jobs wait in queues, and all pods of a job start together."""

    gangs: bool = False
    """Whether it is a scheduler, which starts all pods of a job at once or none."""

    quotas: bool = False
    """Whether it admits jobs to nodes by the quotas of its queues; Kubernetes starts their pods."""

    queue_keys: frozenset[str] = frozenset()
    """Keys of the file's queues that only it has."""

    latest_kubernetes: str | None = None
    """Latest Kubernetes minor that it runs on; None: every one of ours."""

    most_pods: int | None = None
    """Most pods of one object of a job, which is divided beyond it; None: any number."""

    def known_queues(self, stated: Sequence[str]) -> Sequence[str]:
        """Return the queues that a job may name.

        Args:
            stated: Queues of the file.
        """
        return stated

    def controller(self, request: "JobRequest") -> "JobController | None":
        """Return the controller of a job's pods; None for the controller without an engine."""
        return None

    def name_mistakes(self, request: "JobRequest") -> "Iterator[config.Mistake]":
        """Yield a name that makes those of a job's pods, or of its labels, too long."""
        return iter(())

    def queue_of_gang(self, request: "JobRequest") -> str | None:
        """Return the queue from which the scheduler takes a job's pods; None without one."""
        return None

    def in_queue(self, pod: "PodPlan", queue: str, role: str) -> "PodPlan":
        """Return pods of a queue that it places one by one, as its own objects make none.

        Args:
            pod: The pods.
            queue: The queue.
            role: Their role.
        """
        return pod

    def placement_of(
        self, request: "JobRequest", pools: "Sequence[PoolPlan]"
    ) -> "GangPlacement | None":
        """Return a job's demand on the scheduler for placement by topology; None without one.

        Args:
            request: The job.
            pools: Its possible pools.
        """
        return None

    def topology_of(
        self, request: "JobRequest", pools: "Sequence[PoolPlan]"
    ) -> "TopologyPlan | None":
        """Return the topology asked for the nodes of a large training job; None without one."""
        return None

    def closeness_mistakes(
        self, request: "JobRequest", pools: "Sequence[PoolPlan]"
    ) -> "Iterator[config.Mistake]":
        """Yield a topology that it cannot give a job whose nodes have labels of that layer."""
        return iter(())

    def placement_notes(self, request: "JobRequest", pools: "Sequence[PoolPlan]") -> Iterator[str]:
        """Yield the times of placing a job by topology, each a sentence."""
        return iter(())


_NONE = QueueingEngine()


def engine_of(scheduling: "config.Scheduling") -> QueueingEngine:
    """Return the engine that the file names, which is the part of that name."""
    named = (part for part in all_parts() if part.is_engine and part.name == scheduling.engine)
    return next((part.engine or _NONE for part in named), _NONE)
