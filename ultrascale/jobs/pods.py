"""Pods of a job in the cluster: state, reason to wait, and order by index."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from ultrascale.catalog import kubeflow
from ultrascale.cluster_api.kinds import INDEXED_JOB, PYTORCH_JOB, VOLCANO_JOB, Kind
from ultrascale.cluster_api.objects import Object, condition, label, name
from ultrascale.documents import look_up, mapping, number, objects, text

PodState = Literal[
    "pending", "scheduled", "pulling", "running", "terminating", "succeeded", "failed"
]
# In the order in which a pod passes through them.
STATES: tuple[PodState, ...] = (
    "pending",
    "scheduled",
    "pulling",
    "running",
    "terminating",
    "succeeded",
    "failed",
)

# Source: https://github.com/volcano-sh/apis/blob/master/pkg/apis/batch/v1alpha1/labels.go
_TASK = "volcano.sh/task-spec"
_TASK_INDEX = "volcano.sh/task-index"
_VOLCANO_JOB = "volcano.sh/job-name"
# Source: https://kubernetes.io/docs/reference/labels-annotations-taints/#batchkubernetesio-job-completion-index
_INDEXED_JOB = "batch.kubernetes.io/job-name"
_COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"

# A container waits for these without anything being wrong.
_NONE: Object = {}
_ORDINARY = ("", "ContainerCreating", "PodInitializing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """What of a pod its job's user wants to know.

    Attributes:
        name: Its name.
        uid: Tells it from an earlier pod of the same name.
        owner: The Volcano, PyTorch or Indexed Job that made it; empty for other pods.
        task: Task of a Volcano job; empty without Volcano.
        index: Its number within the task or the job; None where it has none.
        state: How far it is.
        container: Its first container.
        node: Where it runs; empty before it is bound.
        restarts: How often its container was started again.
        reason: Why it waits or failed; empty where there is nothing to say.
        created: When, in UTC by RFC 3339.
    """

    name: str
    uid: str
    owner: str
    task: str
    index: int | None
    state: PodState
    container: str
    node: str
    restarts: int
    reason: str
    created: str


def read_pod(found: Object, *, container: str = "") -> Pod:
    """Return what ``found``, a Pod of the API server, says.

    Args:
        found: The pod.
        container: The container that counts; the first if empty.
    """
    index = _first_label(found, (_TASK_INDEX, kubeflow.REPLICA_INDEX, _COMPLETION_INDEX))
    first = _first_container(found)
    status = _container(found, container or first)
    state = _state(found, status)
    return Pod(
        name=name(found),
        uid=text(found, "metadata", "uid"),
        owner=_first_label(found, (_VOLCANO_JOB, kubeflow.JOB_NAME, _INDEXED_JOB)),
        task=label(found, _TASK),
        index=int(index) if index.isdecimal() else None,
        state=state,
        container=first,
        node=text(found, "spec", "nodeName"),
        restarts=number(status, "restartCount"),
        reason=_reason(found, status, state),
        created=text(found, "metadata", "creationTimestamp"),
    )


def slim(found: Object) -> Object:
    """Return of a Pod of the API server what `read_pod` reads."""
    metadata = mapping(found, "metadata")
    kept = ("name", "uid", "labels", "creationTimestamp", "deletionTimestamp")
    containers = [{"name": text(each, "name")} for each in objects(found, "spec", "containers")]
    return {
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {"nodeName": text(found, "spec", "nodeName"), "containers": containers},
        "status": mapping(found, "status"),
    }


def by_rank(pods: Iterable[Pod], made: Iterable[tuple[Kind, Object]]) -> list[Pod]:
    """Return the pods in the order of their index in the whole job: the first has index 0.

    A Volcano job counts through its tasks in their order, and a job that is several Volcano jobs
    through these, by the numbers that end their names.

    Args:
        pods: All pods of the job.
        made: What makes them.
    """
    order = {(owner, task): place for place, (owner, task, _) in enumerate(_tasks(made))}
    return sorted(
        pods,
        key=lambda pod: (
            order.get((pod.owner, pod.task), len(order)),
            pod.index if pod.index is not None else -1,
            pod.created,
            pod.name,
        ),
    )


def place_of(index: int, made: Iterable[tuple[Kind, Object]]) -> Mapping[str, str]:
    """Return the labels that the pod of ``index`` alone has in its job, and any that follows it.

    They are empty where pods have no index, as those of a Deployment.

    Raises:
        LookupError: The job has no pod of that index.
    """
    workloads = tuple(made)
    kinds = {kind for kind, _ in workloads}
    if PYTORCH_JOB in kinds:
        return {kubeflow.REPLICA_INDEX: str(index)}
    if INDEXED_JOB in kinds:
        return {_COMPLETION_INDEX: str(index)}
    left = index
    for owner, task, replicas in _tasks(workloads):
        if left < replicas:
            return {_VOLCANO_JOB: owner, _TASK: task, _TASK_INDEX: str(left)}
        left -= replicas
    if VOLCANO_JOB in kinds:
        raise LookupError(index)
    return {}


def _tasks(made: Iterable[tuple[Kind, Object]]) -> Iterator[tuple[str, str, int]]:
    """Yield job, name and size of each Volcano task, in the order of the pods' indexes."""
    jobs = [found for kind, found in made if kind == VOLCANO_JOB]
    for found in sorted(jobs, key=lambda each: (len(name(each)), name(each))):
        for task in objects(found, "spec", "tasks"):
            yield name(found), text(task, "name"), number(task, "replicas", default=1)


def _first_label(found: Object, keys: Iterable[str]) -> str:
    return next((value for key in keys if (value := label(found, key))), "")


def _first_container(found: Object) -> str:
    return next((text(each, "name") for each in objects(found, "spec", "containers")), "")


def _container(found: Object, wanted: str) -> Object:
    statuses = objects(found, "status", "containerStatuses")
    named = [each for each in statuses if text(each, "name") == wanted]
    return next(iter(named or statuses), _NONE)


def _state(found: Object, status: Object) -> PodState:
    phase = text(found, "status", "phase")
    if phase == "Succeeded":
        return "succeeded"
    if phase == "Failed":
        return "failed"
    if text(found, "metadata", "deletionTimestamp"):
        return "terminating"
    if "running" in mapping(status, "state"):
        return "running"
    # The sandbox and the network are there: images come next.
    # Source: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-has-network
    if condition(found, "PodReadyToStartContainers"):
        return "pulling"
    return "scheduled" if text(found, "spec", "nodeName") else "pending"


def _reason(found: Object, status: Object, state: PodState) -> str:
    if state == "failed":
        return _failure(found, status)
    if state == "pending":
        return _unscheduled(found)
    for each in (status, *objects(found, "status", "initContainerStatuses")):
        waiting = mapping(each, "state", "waiting")
        reason = text(waiting, "reason")
        if reason not in _ORDINARY:
            before = _exit(mapping(each, "lastState", "terminated"))
            return ": ".join(part for part in (reason, text(waiting, "message"), before) if part)
    return ""


def _unscheduled(found: Object) -> str:
    for each in objects(found, "status", "conditions"):
        if text(each, "type") == "PodScheduled" and text(each, "status") == "False":
            return ": ".join(part for part in (text(each, "reason"), text(each, "message")) if part)
    return ""


def _failure(found: Object, status: Object) -> str:
    """Return why a pod failed: what ended it from outside, else how its container ended."""
    disrupted = condition(found, "DisruptionTarget")
    told = (
        text(found, "status", "reason") or text(disrupted, "reason"),
        text(found, "status", "message") or text(disrupted, "message"),
    )
    outside = ": ".join(part for part in told if part)
    return outside or _exit(mapping(status, "state", "terminated"))


def _exit(terminated: Object) -> str:
    code = look_up(terminated, "exitCode")
    if not isinstance(code, int):
        return ""
    message = text(terminated, "message").strip().splitlines()
    last = f": {message[-1]}" if message else ""
    return f"{text(terminated, 'reason') or 'Error'}, exit code {code}{last}"
