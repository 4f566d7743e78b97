"""Pods of a job in the cluster: state, reason to wait, and order by index."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from ultrascale.cluster_api.objects import Kind, Object, condition, label, name, uid
from ultrascale.documents import look_up, mapping, number, objects, text
from ultrascale.frozen import Frozen
from ultrascale.jobs.workloads import workload_of, workloads

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


# Reasons of containers that wait without a fault.
_NONE: Object = {}
_ORDINARY = ("", "ContainerCreating", "PodInitializing")


class Pod(Frozen):
    """A pod of a job, for its user."""

    name: str  # Its name
    uid: str  # Id that differs from an earlier pod of the same name
    # Name of its workload; empty for pods of services.
    owner: str
    owner_uid: str  # UID of the owning job; empty for other pods
    # Its task, or number of a service's replica; empty for others.
    task: str
    index: int | None  # Its number within the task, replica or job; None where it has none
    state: PodState  # State
    container: str  # The container of its program
    node: str  # Its node; empty before it is bound
    restarts: int  # Number of restarts of its container
    reason: str  # Reason of its waiting or failure; empty where unknown
    created: str  # Time of its creation, in UTC by RFC 3339
    # Message with which its container failed, now or before its last restart: a traceback, or the
    # end of its log; empty without a failure.
    last_words: str = ""


def read_pod(manifest: Object, *, container: str = "") -> Pod:
    """Return the state of a Pod of the API server.

    Args:
        manifest: The Pod.
        container: The container that counts; the first if empty.
    """
    kinds = workloads()
    index = _first_label(manifest, (workload.index_label for workload in kinds))
    if any(kind.ends_names and label(manifest, kind.name_label) for kind in kinds):
        index = name(manifest).rpartition("-")[2]
    first = _first_container(manifest)
    status = _container(manifest, container or first)
    state = _state(manifest, status)
    return Pod(
        name=name(manifest),
        uid=uid(manifest),
        owner_uid=_owner_uid(manifest),
        owner=_first_label(manifest, (workload.name_label for workload in kinds)),
        task=_first_label(manifest, (workload.task_label for workload in kinds)),
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
    """Return the message of a container's last end, whatever its status was."""
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

    Such pods stay for their grace period, and longer where their node is gone. A pod without an
    owning job, as a Deployment's, counts by its label.
    """
    uids = {uid(manifest) for manifest in workloads}
    yield from (pod for pod in pods if not pod.owner_uid or pod.owner_uid in uids)


def by_rank(pods: Iterable[Pod], made: Iterable[tuple[Kind, Object]]) -> list[Pod]:
    """Return the pods in the order of their index in the whole job, which starts at 0.

    It runs through the tasks of a workload in their order. In a job of several workloads it runs
    through these, by the numbers at the end of their names.

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
    own = tuple(made)
    kinds = {kind: workload_of(kind) for kind, _ in own}
    for workload in kinds.values():
        if workload.index_label and not workload.task_label:
            return {workload.index_label: str(index)}
    left, tasks = index, [*_tasks(own)]
    for owner, task, pods in tasks:
        if left < pods:
            workload = next(kind for kind in kinds.values() if kind.task_label)
            # Pods with another owner have no other label of the workload's name.
            named = {} if workload.uid_label else {workload.name_label: owner}
            return {**named, workload.task_label: task, workload.index_label: str(left)}
        left -= pods
    if tasks:
        raise LookupError(index)
    return {}


def _tasks(made: Iterable[tuple[Kind, Object]]) -> Iterator[tuple[str, str, int]]:
    """Yield workload, name and size of each task, in the order of the pods' indexes."""
    for kind, manifest in sorted(
        made, key=lambda workload: (len(name(workload[1])), name(workload[1]))
    ):
        for task in workload_of(kind).tasks(manifest):
            yield name(manifest), task.name, task.pods


def _owner_uid(manifest: Object) -> str:
    if of_owner := _first_label(manifest, (workload.uid_label for workload in workloads())):
        return of_owner
    owners = objects(manifest, "metadata", "ownerReferences")
    kinds = {workload.kind.kind for workload in workloads() if workload.name_label}
    return next((text(owner, "uid") for owner in owners if text(owner, "kind") in kinds), "")


def _first_label(manifest: Object, keys: Iterable[str]) -> str:
    return next((value for key in keys if key and (value := label(manifest, key))), "")


def _first_container(manifest: Object) -> str:
    names = [text(entry, "name") for entry in objects(manifest, "spec", "containers")]
    of_programs = {workload.program_container for workload in workloads()}
    return next((name for name in names if name in of_programs), names[0] if names else "")


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
        return next((f"container {container} runs first" for container in running), "")
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
    reason = (
        text(manifest, "status", "reason") or text(disrupted, "reason"),
        text(manifest, "status", "message") or text(disrupted, "message"),
    )
    outside = ": ".join(part for part in reason if part)
    return outside or _exit(mapping(status, "state", "terminated")) or _exit_before(manifest)


def _exit_before(manifest: Object) -> str:
    """Return how a container before the program ended, so that the program never started."""
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
