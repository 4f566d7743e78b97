"""State of workloads: the jobs of each engine, Deployments and LeaderWorkerSets."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Literal

from ultrascale.catalog import kubeflow, leaderworkerset, training_operator
from ultrascale.cluster_api.kinds import (
    DEPLOYMENT,
    HYPERPOD_JOB,
    INDEXED_JOB,
    LEADER_WORKER_SET,
    PYTORCH_JOB,
    Kind,
)
from ultrascale.cluster_api.objects import Object, condition, label
from ultrascale.core.table import all_parts
from ultrascale.documents import mapping, number, objects, text
from ultrascale.frozen import Frozen
from ultrascale.jobs.arrays import WITHIN_LIMIT, ArrayState, read_array
from ultrascale.plan.names import QUEUE_LABEL

# Source: https://kubernetes.io/docs/reference/labels-annotations-taints/#batchkubernetesio-job-completion-index
INDEXED_NAME = "batch.kubernetes.io/job-name"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"

Result = Literal["succeeded", "failed"]

# Conditions of a PyTorchJob, the last word first.
# Source: https://github.com/kubeflow/trainer/blob/v1.8.1/pkg/apis/kubeflow.org/v1/common_types.go
_PYTORCH_RESULTS: Mapping[str, Result | None] = {
    "Succeeded": "succeeded",
    "Failed": "failed",
    "Suspended": None,
    "Restarting": None,
    "Running": None,
}


# Last conditions of a HyperPodPyTorchJob; the others are steps on the way.
# Source: https://github.com/aws/sagemaker-hyperpod-cli/tree/main/test/integration_tests
_HYPERPOD_RESULTS: Mapping[str, Result] = {"Completed": "succeeded", "Failed": "failed"}
_HYPERPOD_UP = ("Running", "PodsRunning", "Completed")


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
    pods: int  # How many there are
    template: Object  # Specification of its pods


class Workload(Frozen):
    """A kind that makes pods of jobs: its state, and labels of its pods."""

    kind: Kind
    read: Callable[[Object], WorkloadState]  # Returns the state of one
    missing: str = ""  # Why the cluster does not serve it, and what to do; empty of Kubernetes' own
    name_label: str = ""  # Label of its pods with its name; empty without
    task_label: str = ""  # Label with the task that a pod is of
    index_label: str = ""  # Label with the number of a pod
    uid_label: str = ""  # Label with its UID, where it does not own the pods itself
    # Returns its tasks in the order of the pods' indexes; none where it has one kind of pods.
    tasks: Callable[[Object], Iterator[Task]] = lambda _: iter(())
    # Returns whether one makes a Service of its own name.
    makes_service: Callable[[Object], bool] = lambda _: False
    # Returns the tasks of one whose pods a scheduler starts at once or not at all.
    gang: Callable[[Object], Iterator[Task]] = lambda _: iter(())
    # Whether its state is that it starts until all pods run, where a job goes on with fewer.
    starts_with_all: bool = False
    is_scheduled: bool = (
        False  # Whether a scheduler of its own takes pods of its queues, and others
    )


@cache
def workloads() -> Sequence[Workload]:
    """Return the kinds that create pods, and so have a state of their own."""
    own = (part.module("workloads").WORKLOADS for part in all_parts() if part.has_workloads)
    return (*(each for kinds in own for each in kinds), *_CORE)


@cache
def workload_kinds() -> Sequence[Kind]:
    """Return the kinds of `workloads`."""
    return tuple(workload.kind for workload in workloads())


def workload_of(kind: Kind) -> Workload:
    """Return what is known of a kind that creates pods.

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


def together(states: Iterable[WorkloadState]) -> WorkloadState:
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


def _pytorch(manifest: Object) -> WorkloadState:
    wanted = number(manifest, "spec", "pytorchReplicaSpecs", "Worker", "replicas", default=1)
    phase = next((name for name in _PYTORCH_RESULTS if condition(manifest, name)), "Pending")
    result = _PYTORCH_RESULTS.get(phase)
    workers = mapping(manifest, "status", "replicaStatuses", "Worker")
    reason = "" if phase in ("Succeeded", "Running") else reason_of(condition(manifest, phase))
    return WorkloadState(
        phase=phase,
        result=result,
        up=result == "succeeded" or number(workers, "active") >= wanted,
        wanted=wanted,
        least=wanted,
        # Restarts of containers, which its limit counts, are in the status of the pods alone.
        retries=number(workers, "failed"),
        most_retries=None,
        reason=held_back_by_queue(manifest) if phase == "Suspended" else reason,
    )


def _hyperpod(manifest: Object) -> WorkloadState:
    replicas = objects(manifest, "spec", "replicaSpecs")
    wanted = sum(number(each, "replicas") for each in replicas)
    held = [
        each
        for each in objects(manifest, "status", "conditions")
        if text(each, "status") == "True" and text(each, "type") != "Created"
    ]
    ended = next((each for each in held if text(each, "type") in _HYPERPOD_RESULTS), None)
    # It adds each condition behind those before it.
    told = ended or (held[-1] if held else {})
    phase = text(told, "type") or "Pending"
    reason = "" if phase in _HYPERPOD_UP else reason_of(told)
    return WorkloadState(
        phase=phase,
        result=_HYPERPOD_RESULTS.get(phase),
        up=phase in _HYPERPOD_UP,
        wanted=wanted,
        least=number(manifest, "spec", "elasticPolicy", "minReplicas", default=wanted),
        retries=number(manifest, "status", "restartCount"),
        most_retries=number(manifest, "spec", "runPolicy", "jobMaxRetryCount"),
        reason=held_back_by_queue(manifest) if phase == "Suspended" else reason,
    )


def _indexed(manifest: Object) -> WorkloadState:
    wanted = number(manifest, "spec", "completions", default=1)
    array = read_array(manifest)
    # Pods of an array start one by one.
    parallel = 1 if array else number(manifest, "spec", "parallelism", default=1)
    least = min(wanted, parallel)
    # The server makes this limit endless where it is told another for each pod.
    of_all = number(manifest, "spec", "backoffLimit", default=6)
    retries = number(manifest, "spec", "backoffLimitPerIndex", default=of_all)
    phase, result, told = "Pending", None, condition(manifest, "Suspended")
    if complete := condition(manifest, "Complete"):
        phase, result, told = "Completed", "succeeded", complete
    elif failed := condition(manifest, "Failed"):
        phase, result, told = "Failed", "failed", failed
        if array and text(failed, "reason") == WITHIN_LIMIT:
            phase, result = "Completed", "succeeded"
    elif told:
        phase = "Suspended"
    elif number(manifest, "status", "active"):
        phase = "Running" if number(manifest, "status", "ready") else "Pending"
    reason = "" if result == "succeeded" else reason_of(told)
    if phase == "Suspended":
        reason = held_back_by_queue(manifest)
    return WorkloadState(
        phase=phase,
        result=result,
        up=result == "succeeded" or number(manifest, "status", "ready") >= least,
        wanted=wanted,
        least=least,
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
    """Return why a suspended workload waits. Kueue keeps more about it in an object of its own."""
    queue = label(manifest, QUEUE_LABEL)
    suspended = reason_of(condition(manifest, "Suspended"))
    return f"waits in queue {queue} for quota for all of it" if queue else suspended


def reason_of(manifest: Object) -> str:
    """Return reason and message of a condition, in words."""
    return ": ".join(part for part in (text(manifest, "reason"), text(manifest, "message")) if part)


_CORE = (
    Workload(
        kind=HYPERPOD_JOB,
        read=_hyperpod,
        missing="HyperPod's training operator is not installed; deploy the cluster file's stacks "
        "with hyperpod.training_operator: true",
        name_label=training_operator.JOB_NAME,
    ),
    Workload(
        kind=PYTORCH_JOB,
        read=_pytorch,
        missing="Kubeflow's training operator is not installed; deploy the cluster file's stacks, "
        "of which HyperPod's chart brings it",
        name_label=kubeflow.JOB_NAME,
        index_label=kubeflow.REPLICA_INDEX,
    ),
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
