"""Controllers that make the pods of jobs, and the kinds by which a cluster runs jobs."""

from collections.abc import Iterator, Mapping

from ultrascale import config
from ultrascale.catalog import kubernetes
from ultrascale.core.engine import QueueKinds
from ultrascale.core.table import all_parts
from ultrascale.frozen import Frozen
from ultrascale.plan.jobs.command import POD_IP
from ultrascale.plan.jobs.nodes import NodeShare
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model import PartPlan, PodPlan
from ultrascale.plan.namespaces import Resource


class Division(Frozen):
    """The objects of a controller that one job is divided into, as they hold few pods."""

    parts: tuple[PartPlan, ...]  # In the order of the pods' indexes
    notes: tuple[str, ...]  # What the user should know of them


class JobController:
    """A controller of jobs, by its answers; as it stands here, Kubernetes' own Job.

    A part registers its own as `Part.job_controllers`. The objects of each, and how their state is
    read, are a row of `ultrascale.jobs.workloads` of the same name.
    """

    name: str = "indexed"

    resource: Resource | None = None
    """The kind that people send; None where it is one of Kubernetes' own."""

    waits_in_queue: bool = False
    """Whether admission policies judge the queue that its objects name."""

    framework: str | None = None
    """Kueue's name of its kind, where no engine of its own brings it."""

    word: str = ""
    """Its name where it restarts jobs itself, whatever launches their nodes."""

    container: str | None = None
    """Name that it gives the container of the program; None: the role's."""

    makes_service: bool = False
    """Whether it makes the Service by which pods find each other."""

    ends_at_mistakes: bool = True
    """Whether an exit code of a pod ends the job at once, as no restart would help."""

    replaces_pods: bool = False
    """Whether it makes single pods anew where a job goes on with fewer."""

    runs_processes: bool = False
    """Whether it starts the processes of a job itself, gives them their meeting place, and takes
    away and adds nodes.
    """

    counts_lost_nodes: bool = False
    """Whether a pod that was lost with its node counts towards the limit of restarts."""

    index: str = kubernetes.COMPLETION_INDEX
    """Variables of the shell, joined by `+`, whose sum is the index of a pod."""

    index_annotation: str = kubernetes.COMPLETION_INDEX_ANNOTATION
    """Annotation of a pod with its number in its role."""

    most_listed_pods: int | None = None
    """Most pods of a role whose names it can list in each of them; None: any number."""

    def fields(self) -> Mapping[str, str]:
        """Return the variables of a pod whose values are fields of it."""
        return {POD_IP: "status.podIP"}

    def run(self, name: str, *, attempted: bool) -> str:
        """Return the name of a meeting of the pods of a job that is one object.

        Args:
            name: Name of the job.
            attempted: Whether each restart of the job meets anew. Pods that come back one by one
                meet those that stayed.
        """
        return name

    def host(self, name: str, role: str, index: int) -> str:
        """Return the host name of a pod as the pods of its job resolve it."""
        return f"{name}-{index}.{name}"

    def divide(self, *, name: str, role: str, pods: int, min_available: int) -> Division | None:
        """Return the objects that a job is divided into; None where one holds any number of pods.

        Args:
            name: Name of the job.
            role: Name of its pods' role.
            pods: Number of its pods.
            min_available: Pods that start together or not at all.
        """
        return None

    def program(
        self, request: JobRequest, job: config.TrainingJob, pod: PodPlan, share: NodeShare
    ) -> PodPlan | None:
        """Return the pods of a job with the program by which it runs theirs; None: torchrun does.

        Args:
            request: The job.
            job: Its keys.
            pod: Its pods.
            share: What each pod may have of a node.
        """
        return None

    def own_plan(
        self, request: JobRequest, job: config.TrainingJob, share: NodeShare
    ) -> Frozen | None:
        """Return its own part of a job's plan; None without one.

        Args:
            request: The job.
            job: Its keys.
            share: What each pod may have of a node.
        """
        return None

    def deadline_note(self, hours: float) -> str | None:
        """Return why each pod ends its program by itself; None where the controller ends the job.

        Args:
            hours: The limit of the job.
        """
        return None


class _Deployment(JobController):
    name = "deployment"


class _LeaderWorkerSet(JobController):
    name = "leaderworkerset"
    resource = ("leaderworkerset.x-k8s.io", "leaderworkersets")
    waits_in_queue = True


INDEXED = JobController()
_DEPLOYMENT, _LEADER_WORKER_SET = _Deployment(), _LeaderWorkerSet()


def controller_of(request: JobRequest) -> JobController:
    """Return the controller of a job's pods."""
    job = request.job
    if isinstance(job, config.ServiceJob):
        # Queues take a Deployment pod by pod, and a LeaderWorkerSet replica by replica.
        return _DEPLOYMENT if job.nodes == 1 and job.queue is None else _LEADER_WORKER_SET
    if job.is_personal:
        return INDEXED
    if isinstance(job, config.BatchJob) and job.array is not None:
        # A gang scheduler makes all of its pods at once, and knows no limit of failed ones.
        return INDEXED
    own = None if job.has_own_controller else request.engine.controller(request)
    makers = (part.controller_of(request) for part in all_parts())
    return own or next((maker for maker in makers if maker is not None), INDEXED)


def least_pods(job: config.Job) -> int:
    """Return the fewest pods with which a job starts."""
    if not isinstance(job, config.TrainingJob):
        return 1
    return job.nodes if job.min_nodes is None else job.min_nodes


def controllers_of_jobs(cluster: config.Cluster) -> Iterator[JobController]:
    """Yield the controllers of the cluster's jobs beyond Kubernetes' own."""
    for part in all_parts():
        if part.name == cluster.scheduling.engine:
            yield from part.job_controllers
    for part in all_parts():
        yield from part.controllers_of_jobs(cluster)


def queue_kinds_of(cluster: config.Cluster) -> Iterator[QueueKinds]:
    """Yield the kinds of the queues that jobs wait in."""
    for part in all_parts():
        if (kinds := part.queue_kinds(cluster)) is not None:
            yield kinds
