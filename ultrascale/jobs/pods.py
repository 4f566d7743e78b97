"""Pods of a job in the cluster: state, reason to wait, and order by index."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from ultrascale.catalog import jobset, kubeflow, leaderworkerset, training_operator
from ultrascale.cluster_api.kinds import (
    HYPERPOD_JOB,
    INDEXED_JOB,
    JOBSET,
    PYTORCH_JOB,
    VOLCANO_JOB,
    Kind,
)
from ultrascale.cluster_api.objects import Object, condition, label, name, uid
from ultrascale.documents import look_up, mapping, number, objects, text
from ultrascale.frozen import Frozen

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

_JOB_KINDS = frozenset(kind.kind for kind in (VOLCANO_JOB, PYTORCH_JOB, HYPERPOD_JOB, INDEXED_JOB))

# Reasons of containers that wait without a fault.
_NONE: Object = {}
_ORDINARY = ("", "ContainerCreating", "PodInitializing")


class Pod(Frozen):
    """A pod of a job, for its user."""

    name: str  # Its name
    uid: str  # Id that differs from an earlier pod of the same name
    # The Volcano, PyTorch or Indexed Job, or the JobSet, that it is of; empty for other pods.
    owner: str
    owner_uid: str  # UID of that job; empty for other pods
    # Task of a Volcano job, role of a JobSet, or number of a service's replica; empty for others.
    task: str
    index: int | None  # Its number within the task, replica or job; None where it has none
    state: PodState  # State
    container: str  # Its first container
    node: str  # Node that it runs on; empty before it is bound
    restarts: int  # Number of restarts of its container
    reason: str  # Why it waits or failed; empty where nothing is known
    created: str  # Time of its creation, in UTC by RFC 3339
    # Message with which its container failed, now or before its last restart: a traceback, or the
    # end of its log; empty where it has not.
    last_words: str = ""


def read_pod(manifest: Object, *, container: str = "") -> Pod:
    """Return the state of a Pod of the API server.

    Args:
        manifest: The Pod.
        container: The container that counts; the first if empty.
    """
    index = _first_label(
        manifest,
        (_TASK_INDEX, kubeflow.REPLICA_INDEX, _COMPLETION_INDEX, leaderworkerset.WORKER_LABEL),
    )
    if label(manifest, training_operator.JOB_NAME):
        # It labels no index: it is the end of the name.
        index = name(manifest).rpartition("-")[2]
    first = _first_container(manifest)
    status = _container(manifest, container or first)
    state = _state(manifest, status)
    return Pod(
        name=name(manifest),
        uid=uid(manifest),
        owner_uid=_owner_uid(manifest),
        owner=_first_label(
            manifest,
            (
                _VOLCANO_JOB,
                kubeflow.JOB_NAME,
                jobset.NAME_LABEL,
                training_operator.JOB_NAME,
                _INDEXED_JOB,
            ),
        ),
        task=_first_label(manifest, (_TASK, jobset.ROLE_LABEL, leaderworkerset.GROUP_LABEL)),
        index=int(index) if index.isdecimal() else None,
        state=state,
        container=first,
        node=text(manifest, "spec", "nodeName"),
        restarts=number(status, "restartCount"),
        reason=_reason(manifest, status, state),
        created=text(manifest, "metadata", "creationTimestamp"),
        last_words=_last_words(status),
    )


def last_message(manifest: Object, *, container: str) -> str:
    """Return the message that a container of a Pod left when it ended, whatever its status was."""
    return text(_container(manifest, container), "state", "terminated", "message")


def slim(manifest: Object) -> Object:
    """Return the fields of a Pod that `read_pod` reads."""
    metadata = mapping(manifest, "metadata")
    kept = (
        "name",
        "uid",
        "labels",
        "ownerReferences",
        "creationTimestamp",
        "deletionTimestamp",
    )
    containers = [
        {"name": text(entry, "name")} for entry in objects(manifest, "spec", "containers")
    ]
    return {
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {"nodeName": text(manifest, "spec", "nodeName"), "containers": containers},
        "status": mapping(manifest, "status"),
    }


def made_by(pods: Iterable[Pod], workloads: Iterable[Object]) -> Iterator[Pod]:
    """Yield the pods of ``workloads``, without those of a deleted job of the same name.

    Such pods stay for their grace period, and longer where their node is gone. A pod that no job
    owns, as a Deployment's, is taken by its label.
    """
    uids = {uid(manifest) for manifest in workloads}
    yield from (pod for pod in pods if not pod.owner_uid or pod.owner_uid in uids)


def by_rank(pods: Iterable[Pod], made: Iterable[tuple[Kind, Object]]) -> list[Pod]:
    """Return the pods in the order of their index in the whole job, which starts at 0.

    In a Volcano Job the index runs through the tasks in their order, and in a JobSet through the
    roles. In a job of several Volcano Jobs it runs through these, by the numbers at the end of
    their names.

    Args:
        pods: All pods of the job.
        made: The workloads that create them.
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
    """Return the labels that select the pod with ``index`` in its job, and its replacements.

    They are empty where pods have no index, such as those of a Deployment.

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
            if JOBSET in kinds:
                return {jobset.ROLE_LABEL: task, _COMPLETION_INDEX: str(left)}
            return {_VOLCANO_JOB: owner, _TASK: task, _TASK_INDEX: str(left)}
        left -= replicas
    if kinds & {VOLCANO_JOB, JOBSET}:
        raise LookupError(index)
    return {}


def _tasks(made: Iterable[tuple[Kind, Object]]) -> Iterator[tuple[str, str, int]]:
    """Yield job, name and size of each task or role, in the order of the pods' indexes."""
    workloads = tuple(made)
    for manifest in (manifest for kind, manifest in workloads if kind == JOBSET):
        for role in objects(manifest, "spec", "replicatedJobs"):
            pods = number(role, "template", "spec", "parallelism", default=1)
            yield name(manifest), text(role, "name"), pods
    jobs = [manifest for kind, manifest in workloads if kind == VOLCANO_JOB]
    for manifest in sorted(jobs, key=lambda job: (len(name(job)), name(job))):
        for task in objects(manifest, "spec", "tasks"):
            yield name(manifest), text(task, "name"), number(task, "replicas", default=1)


def _owner_uid(manifest: Object) -> str:
    if jobset_uid := label(manifest, jobset.UID_LABEL):
        return jobset_uid
    owners = objects(manifest, "metadata", "ownerReferences")
    return next((text(owner, "uid") for owner in owners if text(owner, "kind") in _JOB_KINDS), "")


def _first_label(manifest: Object, keys: Iterable[str]) -> str:
    return next((value for key in keys if (value := label(manifest, key))), "")


def _first_container(manifest: Object) -> str:
    return next((text(entry, "name") for entry in objects(manifest, "spec", "containers")), "")


def _container(manifest: Object, wanted: str) -> Object:
    statuses = objects(manifest, "status", "containerStatuses")
    named = [entry for entry in statuses if text(entry, "name") == wanted]
    return next(iter(named or statuses), _NONE)


def _state(manifest: Object, status: Object) -> PodState:
    phase = text(manifest, "status", "phase")
    if phase == "Succeeded":
        return "succeeded"
    if phase == "Failed":
        return "failed"
    if text(manifest, "metadata", "deletionTimestamp"):
        return "terminating"
    if "running" in mapping(status, "state"):
        return "running"
    # The sandbox and the network are there: images come next.
    # Source: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-has-network
    if condition(manifest, "PodReadyToStartContainers"):
        return "pulling"
    return "scheduled" if text(manifest, "spec", "nodeName") else "pending"


def _reason(manifest: Object, status: Object, state: PodState) -> str:
    if state == "failed":
        return _failure(manifest, status)
    if state == "pending":
        return _unscheduled(manifest)
    for container in (status, *objects(manifest, "status", "initContainerStatuses")):
        waiting = mapping(container, "state", "waiting")
        reason = text(waiting, "reason")
        if reason not in _ORDINARY:
            before = _exit(mapping(container, "lastState", "terminated"))
            return ": ".join(part for part in (reason, text(waiting, "message"), before) if part)
    if state in ("scheduled", "pulling"):
        running = (
            text(container, "name")
            for container in objects(manifest, "status", "initContainerStatuses")
            if "running" in mapping(container, "state")
        )
        return next((f"container {each} runs first" for each in running), "")
    return ""


def _unscheduled(manifest: Object) -> str:
    for entry in objects(manifest, "status", "conditions"):
        if text(entry, "type") == "PodScheduled" and text(entry, "status") == "False":
            return ": ".join(
                part for part in (text(entry, "reason"), text(entry, "message")) if part
            )
    return ""


def _failure(manifest: Object, status: Object) -> str:
    """Return why a pod failed: the cause from outside, else the exit of its container."""
    disrupted = condition(manifest, "DisruptionTarget")
    told = (
        text(manifest, "status", "reason") or text(disrupted, "reason"),
        text(manifest, "status", "message") or text(disrupted, "message"),
    )
    outside = ": ".join(part for part in told if part)
    return outside or _exit(mapping(status, "state", "terminated")) or _exit_before(manifest)


def _exit_before(manifest: Object) -> str:
    """Return how a container ended that runs before the program, which never started then."""
    for container in objects(manifest, "status", "initContainerStatuses"):
        terminated = mapping(container, "state", "terminated")
        if number(terminated, "exitCode"):
            return f"container {text(container, 'name')}: {_exit(terminated)}"
    return ""


def _last_words(status: Object) -> str:
    for when in ("state", "lastState"):
        terminated = mapping(status, when, "terminated")
        if number(terminated, "exitCode") and (message := text(terminated, "message").strip()):
            return message
    return ""


def _exit(terminated: Object) -> str:
    code = look_up(terminated, "exitCode")
    if not isinstance(code, int):
        return ""
    message = text(terminated, "message").strip().splitlines()
    last = f": {message[-1]}" if message else ""
    return f"{text(terminated, 'reason') or 'Error'}, exit code {code}{last}"
