"""State of the jobs in a namespace."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from msgspec.structs import replace

from ultrascale.cluster_api.objects import DEPLOYMENT, LEADER_WORKER_SET, POD, Kind, Object, label
from ultrascale.cluster_api.server import Cluster, Query
from ultrascale.core.table import all_parts
from ultrascale.documents import mapping, text
from ultrascale.errors import ClusterError
from ultrascale.frozen import Frozen
from ultrascale.jobs.idle import IdleState, idle_state
from ultrascale.jobs.listing import visible_objects
from ultrascale.jobs.pods import STATES, Pod, PodState, by_rank, made_by, read_pod
from ultrascale.jobs.queues import held_back
from ultrascale.jobs.workloads import (
    WorkloadState,
    joint_state,
    read_workload,
    workload_kinds,
    workload_of,
)
from ultrascale.plan.names import JOB_LABEL, QUEUE_LABEL

# Pods of an ended job stay until the job is deleted: a list of all jobs leaves them out.
_ALIVE = "status.phase!=Succeeded,status.phase!=Failed"
_SERVICES = frozenset({DEPLOYMENT.kind, LEADER_WORKER_SET.kind})

Made = list[tuple[Kind, Object]]


class JobStatus(Frozen):
    """State of a job."""

    name: str  # Its name
    namespace: str  # Its namespace
    kind: str  # Kind of its controller, such as `Job.batch.volcano.sh`
    queue: str  # Queue of the engine or of task governance; empty without
    state: WorkloadState  # State of its controller
    created: datetime  # Time of its submission
    # Its pods, in the order of their index; ended ones are missing where all jobs are listed.
    pods: tuple[Pod, ...]
    idle: IdleState | None = None  # Accelerators that it does not use; None where it uses them

    @property
    def is_service(self) -> bool:
        """Whether it is a service."""
        return self.kind.partition(".")[0] in _SERVICES

    @property
    def counts(self) -> Mapping[PodState, int]:
        """Pods in each state."""
        counts = Counter(pod.state for pod in self.pods)
        return {state: counts[state] for state in STATES}

    @property
    def indexes(self) -> tuple[int, ...]:
        """Indexes of its pods in the job; an array may have none or several of one."""
        if self.state.array is None:
            return tuple(range(len(self.pods)))
        return tuple(sorted({pod.index for pod in self.pods if pod.index is not None}))

    @property
    def nodes(self) -> tuple[str, ...]:
        """Nodes that its pods run on."""
        alive = (pod for pod in self.pods if pod.state not in ("succeeded", "failed"))
        return tuple(sorted({pod.node for pod in alive if pod.node}))


def jobs_in(cluster: Cluster, namespace: str) -> tuple[JobStatus, ...]:
    """Return the jobs of a namespace, the newest first.

    Raises:
        ClusterError: The API server refuses or cannot be reached.
    """
    by_job: dict[str, Made] = defaultdict(list)
    for kind, manifest in _workloads(cluster, namespace, {"labelSelector": JOB_LABEL}):
        by_job[label(manifest, JOB_LABEL)].append((kind, manifest))
    pods: dict[str, list[Pod]] = defaultdict(list)
    if by_job:
        query = {"labelSelector": JOB_LABEL, "fieldSelector": _ALIVE}
        for manifest in cluster.items(POD.path(namespace), query):
            pods[label(manifest, JOB_LABEL)].append(read_pod(manifest))
    every = (_status(namespace, job, made, pods[job]) for job, made in by_job.items())
    return tuple(sorted(every, key=lambda job: (job.created, job.name), reverse=True))


def job_status(cluster: Cluster, namespace: str, job: str) -> JobStatus:
    """Return the state of a job, with all its pods.

    Raises:
        ClusterError: There is no such job, or the API server refuses or cannot be reached.
    """
    return _with_pods(cluster, namespace, job, workloads_of(cluster, namespace, job))


def find_job(cluster: Cluster, namespace: str, job: str) -> JobStatus | None:
    """Return the state of a job, with all its pods; None where there is no such job.

    Raises:
        ClusterError: The API server refuses or cannot be reached.
    """
    made = [*_workloads(cluster, namespace, {"labelSelector": f"{JOB_LABEL}={job}"})]
    return _with_pods(cluster, namespace, job, made) if made else None


def workloads_of(cluster: Cluster, namespace: str, job: str) -> Made:
    """Return the workloads of a job.

    Raises:
        ClusterError: There is no such job, or the API server refuses or cannot be reached.
    """
    made = [*_workloads(cluster, namespace, {"labelSelector": f"{JOB_LABEL}={job}"})]
    if not made:
        raise ClusterError(
            f"no job {job} in namespace {namespace}; `ultrascale status -n {namespace}` lists them"
        )
    return made


def _workloads(cluster: Cluster, namespace: str, query: Query) -> Iterator[tuple[Kind, Object]]:
    for kind in workload_kinds():
        yield from (
            (kind, manifest) for manifest in visible_objects(cluster, kind, namespace, query)
        )


def _with_pods(cluster: Cluster, namespace: str, job: str, made: Made) -> JobStatus:
    query = {"labelSelector": f"{JOB_LABEL}={job}"}
    pods = [read_pod(manifest) for manifest in cluster.items(POD.path(namespace), query)]
    status = _status(namespace, job, made, pods)
    if status.state.up or status.state.result is not None:
        return status
    if reason := held_back(cluster, namespace, (manifest for _, manifest in made)).reason:
        return replace(status, state=replace(status.state, reason=reason))
    return status


def _status(namespace: str, job: str, made: Made, pods: list[Pod]) -> JobStatus:
    kind, first = made[0]
    own = tuple(by_rank(made_by(pods, (manifest for _, manifest in made)), made))
    state = joint_state(read_workload(workload, manifest) for workload, manifest in made)
    running = sum(pod.state == "running" for pod in own)
    enough = state.least <= running < state.wanted
    if workload_of(kind).starts_with_all and state.phase == "Pending" and enough:
        # The controller has no other word for a job that goes on with fewer pods than for a start.
        state = replace(state, phase="Running")
    idle = idle_state(namespace, made)
    stopped = state.phase.startswith(("Suspend", "Abort"))
    # A note may outlive its job's end by itself, and a later resumption.
    if idle is not None and (not stopped if idle.ended else stopped or state.result):
        idle = None
    return JobStatus(
        name=job,
        namespace=namespace,
        kind=f"{kind.kind}.{kind.api_version.partition('/')[0]}",
        queue=_queue(first),
        state=state,
        created=_utc(text(first, "metadata", "creationTimestamp")),
        pods=own,
        idle=idle,
    )


def _queue(workload: Object) -> str:
    annotations = mapping(workload, "spec", "template", "metadata", "annotations")
    own = text(workload, "spec", "queue") or label(workload, QUEUE_LABEL)
    keys = (part.queue_annotation for part in all_parts())
    return own or next((text(annotations, key) for key in keys if key is not None), "")


def _utc(stamp: str) -> datetime:
    return datetime.fromisoformat(stamp) if stamp else datetime.now(UTC)
