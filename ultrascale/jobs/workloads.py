"""State of workloads: the jobs of each engine, Deployments and LeaderWorkerSets."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Literal

from ultrascale.catalog import leaderworkerset
from ultrascale.cluster_api.objects import (
    DEPLOYMENT,
    INDEXED_JOB,
    LEADER_WORKER_SET,
    Kind,
    Object,
    condition,
    label,
)
from ultrascale.core.table import all_parts
from ultrascale.documents import number, objects, text
from ultrascale.frozen import Frozen
from ultrascale.jobs.arrays import WITHIN_LIMIT, ArrayState, read_array
from ultrascale.plan.names import QUEUE_LABEL

# Source: https://kubernetes.io/docs/reference/labels-annotations-taints/#batchkubernetesio-job-completion-index
INDEXED_NAME = "batch.kubernetes.io/job-name"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"

Result = Literal["succeeded", "failed"]


class WorkloadState(Frozen):
    """State of a workload."""

    phase: str  # Phase, in the words of its kind
    result: Result | None  # Result; None while it has not ended
    up: bool  # Whether all pods that must run at once have run, or serve
    wanted: int  # Number of its pods
    least: int  # Number of pods that must run at once
    retries: int  # Restarts of all its pods (Volcano), or of failed pods (others)
    most_retries: int | None  # Limit of restarts; None without a limit
    reason: str  # Reason of the phase; empty where none is known
    array: ArrayState | None = None  # Progress of an array; None where it is none


class Task(Frozen):
    """Pods of a workload that are numbered from 0, such as those of a role."""

    name: str
    pods: int  # Number of its pods
    template: Object  # Specification of its pods
    role: str = ""  # Its name in the job, where pods have another


class Workload(Frozen):
    """A kind that makes pods of jobs: its state, and labels of its pods."""

    kind: Kind
    read: Callable[[Object], WorkloadState]  # Returns the state of an object
    missing: str = ""  # Why the cluster does not serve it, with a remedy; empty for Kubernetes' own
    name_label: str = ""  # Label of its pods with its name; empty without
    task_label: str = ""  # Label of a pod's task
    index_label: str = ""  # Label with the number of a pod
    ends_names: bool = False  # Whether names of its pods, which have no such label, end with it
    program_container: str = ""  # Container whose log is the program's; empty: the pod's first
    uid_label: str = ""  # Label with its UID, where it does not own the pods itself
    # Command that lets an object that was ended go on, whose names it takes.
    resume: str = (
        "kubectl patch {kind} {name} -n {namespace} --type=merge -p "
        '\'{{"spec":{{"suspend":false}}}}\''
    )
    # Returns its tasks in the order of the pods' indexes; none where it has one kind of pods.
    tasks: Callable[[Object], Iterator[Task]] = lambda _: iter(())
    # Returns whether an object makes a Service of its own name.
    makes_service: Callable[[Object], bool] = lambda _: False
    # Returns the tasks of an object whose pods a scheduler starts at once or not at all.
    gang: Callable[[Object], Iterator[Task]] = lambda _: iter(())
    # Whether its state stays "starting" until all pods run, where a job goes on with fewer.
    starts_with_all: bool = False
    is_scheduled: bool = (
        False  # Whether a scheduler of its own takes pods of its queues, and others
    )


@cache
def workloads() -> Sequence[Workload]:
    """Return the kinds that create pods, and so have a state of their own."""
    own = (part.module("workloads").WORKLOADS for part in all_parts() if part.has_workloads)
    return (*(kind for kinds in own for kind in kinds), *_CORE)


@cache
def workload_kinds() -> Sequence[Kind]:
    """Return the kinds of `workloads`."""
    return tuple(workload.kind for workload in workloads())


def workload_of(kind: Kind) -> Workload:
    """Return the row of a kind that creates pods.

    Raises:
        LookupError: It is none of `workloads`.
    """
    try:
        return next(workload for workload in workloads() if workload.kind == kind)
    except StopIteration:
        raise LookupError(kind.resource) from None


def read_workload(kind: Kind, manifest: Object) -> WorkloadState:
    """Return the state of a workload.

    Raises:
        LookupError: The kind is none of `workloads`.
    """
    return workload_of(kind).read(manifest)


def joint_state(states: Iterable[WorkloadState]) -> WorkloadState:
    """Return the state of a job of several workloads, which fails with the first that fails."""
    every = tuple(states)
    first = next((state for state in every if state.result == "failed"), None)
    first = first or next((state for state in every if state.result is None), every[0])
    limits = [state.most_retries for state in every if state.most_retries is not None]
    return WorkloadState(
        phase=first.phase,
        result=first.result,
        up=all(state.up for state in every),
        wanted=sum(state.wanted for state in every),
        least=sum(state.least for state in every),
        retries=max(state.retries for state in every),
        most_retries=max(limits) if limits else None,
        reason=first.reason,
        array=first.array,
    )


def _indexed(manifest: Object) -> WorkloadState:
    wanted = number(manifest, "spec", "completions", default=1)
    array = read_array(manifest)
    # Pods of an array start one by one.
    parallel = 1 if array else number(manifest, "spec", "parallelism", default=1)
    at_once = min(wanted, parallel)
    # The server makes this limit endless where each pod has another.
    of_all = number(manifest, "spec", "backoffLimit", default=6)
    retries = number(manifest, "spec", "backoffLimitPerIndex", default=of_all)
    phase, result, last = "Pending", None, condition(manifest, "Suspended")
    if complete := condition(manifest, "Complete"):
        phase, result, last = "Completed", "succeeded", complete
    elif failed := condition(manifest, "Failed"):
        phase, result, last = "Failed", "failed", failed
        if array and text(failed, "reason") == WITHIN_LIMIT:
            phase, result = "Completed", "succeeded"
    elif last:
        phase = "Suspended"
    elif number(manifest, "status", "active"):
        phase = "Running" if number(manifest, "status", "ready") else "Pending"
    reason = "" if result == "succeeded" else reason_of(last)
    if phase == "Suspended":
        reason = held_back_by_queue(manifest)
    return WorkloadState(
        phase=phase,
        result=result,
        up=result == "succeeded" or number(manifest, "status", "ready") >= at_once,
        wanted=wanted,
        least=at_once,
        retries=number(manifest, "status", "failed"),
        # Each index of an array has its own.
        most_retries=None if array else retries,
        reason=reason,
        array=array,
    )


def _deployment(manifest: Object) -> WorkloadState:
    wanted = number(manifest, "spec", "replicas", default=1)
    # Until the controller has seen this generation, the status is of the one before.
    seen = number(manifest, "status", "observedGeneration") >= number(
        manifest, "metadata", "generation"
    )
    updated = min(
        number(manifest, "status", "updatedReplicas"),
        number(manifest, "status", "availableReplicas"),
    )
    up = seen and updated >= wanted and number(manifest, "status", "replicas") == wanted
    stuck = [
        entry
        for entry in objects(manifest, "status", "conditions")
        if (text(entry, "type"), text(entry, "status")) == ("Progressing", "False")
    ]
    failing = condition(manifest, "ReplicaFailure")
    return WorkloadState(
        phase="Running" if up else "Progressing",
        result=None,
        up=up,
        wanted=wanted,
        least=wanted,
        retries=0,
        most_retries=None,
        reason=reason_of(failing or (stuck[0] if stuck else {})),
    )


def _leader_worker_set(manifest: Object) -> WorkloadState:
    """Return the state of a LeaderWorkerSet, whose status counts replicas and not their pods.

    Source: https://github.com/kubernetes-sigs/lws/blob/v0.10.0/pkg/controllers/leaderworkerset_controller.go
    """
    replicas = number(manifest, "spec", "replicas", default=1)
    size = number(manifest, "spec", "leaderWorkerTemplate", "size", default=1)
    seen = number(manifest, "status", "observedGeneration") >= number(
        manifest, "metadata", "generation"
    )
    ready = min(
        number(manifest, "status", "updatedReplicas"), number(manifest, "status", "readyReplicas")
    )
    # Replicas of an update stand beside the others.
    up = seen and ready >= replicas and number(manifest, "status", "replicas") == replicas
    queue = label(manifest, QUEUE_LABEL)
    waits = f"Kueue admits each of its replicas from queue {queue}" if queue and not up else ""
    return WorkloadState(
        phase="Running" if up else "Progressing",
        result=None,
        up=up,
        wanted=replicas * size,
        least=replicas * size,
        retries=0,
        most_retries=None,
        reason=waits,
    )


def held_back_by_queue(manifest: Object) -> str:
    """Return why a suspended workload waits. Kueue has more about it in an object of its own."""
    queue = label(manifest, QUEUE_LABEL)
    suspended = reason_of(condition(manifest, "Suspended"))
    return f"waits in queue {queue} for quota for all of it" if queue else suspended


def reason_of(manifest: Object) -> str:
    """Return reason and message of a condition, in words."""
    return ": ".join(part for part in (text(manifest, "reason"), text(manifest, "message")) if part)


_CORE = (
    Workload(
        kind=INDEXED_JOB, read=_indexed, name_label=INDEXED_NAME, index_label=COMPLETION_INDEX
    ),
    Workload(kind=DEPLOYMENT, read=_deployment),
    Workload(
        kind=LEADER_WORKER_SET,
        read=_leader_worker_set,
        missing="LeaderWorkerSet is not installed; deploy the cluster file's stacks with "
        "serving.controllers: [leader-worker-set], or with the service in its jobs",
        task_label=leaderworkerset.GROUP_LABEL,
        index_label=leaderworkerset.WORKER_LABEL,
    ),
)
