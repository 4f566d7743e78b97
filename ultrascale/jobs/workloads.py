"""State of workloads: the jobs of each engine, Deployments and LeaderWorkerSets."""

from collections.abc import Iterable, Mapping
from typing import Literal

from ultrascale.cluster_api.kinds import (
    DEPLOYMENT,
    HYPERPOD_JOB,
    INDEXED_JOB,
    JOBSET,
    LEADER_WORKER_SET,
    PYTORCH_JOB,
    VOLCANO_JOB,
    Kind,
)
from ultrascale.cluster_api.objects import Object, condition, label
from ultrascale.documents import look_up, mapping, number, objects, text
from ultrascale.frozen import Frozen
from ultrascale.jobs.arrays import WITHIN_LIMIT, ArrayState, read_array
from ultrascale.plan.names import QUEUE_LABEL

# Kinds that create pods, and so have a state of their own.
WORKLOADS = (
    VOLCANO_JOB,
    JOBSET,
    HYPERPOD_JOB,
    PYTORCH_JOB,
    INDEXED_JOB,
    DEPLOYMENT,
    LEADER_WORKER_SET,
)

Result = Literal["succeeded", "failed"]

# Source: https://github.com/volcano-sh/apis/blob/master/pkg/apis/batch/v1alpha1/job.go
_VOLCANO_RESULTS: Mapping[str, Result] = {
    "Completed": "succeeded",
    "Failed": "failed",
    "Aborted": "failed",
    "Terminated": "failed",
}

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


def read_workload(kind: Kind, manifest: Object) -> WorkloadState:
    """Return the state of a workload.

    Raises:
        LookupError: The kind is not one of `WORKLOADS`.
    """
    return _READERS[kind](manifest)


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


def _volcano(manifest: Object) -> WorkloadState:
    state = mapping(manifest, "status", "state")
    phase = text(state, "phase") or "Pending"
    wanted = sum(number(task, "replicas", default=1) for task in objects(manifest, "spec", "tasks"))
    least = number(manifest, "spec", "minAvailable") or wanted
    told = (text(state, "reason"), text(state, "message"))
    # Volcano counts the first run as well, and a last failure as if a restart followed it.
    restarts = number(manifest, "spec", "maxRetry", default=3) - 1
    return WorkloadState(
        phase=phase,
        result=_VOLCANO_RESULTS.get(phase),
        up=phase == "Completed" or number(manifest, "status", "running") >= least,
        wanted=wanted,
        least=least,
        retries=min(number(manifest, "status", "retryCount"), restarts),
        most_retries=restarts,
        reason=": ".join(part for part in told if part),
    )


def _pytorch(manifest: Object) -> WorkloadState:
    wanted = number(manifest, "spec", "pytorchReplicaSpecs", "Worker", "replicas", default=1)
    phase = next((name for name in _PYTORCH_RESULTS if condition(manifest, name)), "Pending")
    result = _PYTORCH_RESULTS.get(phase)
    workers = mapping(manifest, "status", "replicaStatuses", "Worker")
    reason = "" if phase in ("Succeeded", "Running") else _told(condition(manifest, phase))
    return WorkloadState(
        phase=phase,
        result=result,
        up=result == "succeeded" or number(workers, "active") >= wanted,
        wanted=wanted,
        least=wanted,
        # Restarts of containers, which its limit counts, are in the status of the pods alone.
        retries=number(workers, "failed"),
        most_retries=None,
        reason=_held_back(manifest) if phase == "Suspended" else reason,
    )


def _jobset(manifest: Object) -> WorkloadState:
    """Return the state of a JobSet; restarts by lost nodes count towards no limit.

    Source: https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/pkg/controllers/jobset_controller.go
    """
    roles = objects(manifest, "spec", "replicatedJobs")
    wanted = sum(map(_pods_of_role, roles))
    states = objects(manifest, "status", "replicatedJobsStatus")
    jobs = sum(number(role, "replicas", default=1) for role in roles)
    up = sum(number(state, "ready") + number(state, "succeeded") for state in states) >= jobs
    counted = number(manifest, "status", "restartsCountTowardsMax")
    uncounted = number(manifest, "status", "restarts") - counted
    phase, result = "Running" if up else "Pending", None
    if told := condition(manifest, "Completed"):
        phase, result = "Completed", "succeeded"
    elif told := condition(manifest, "Failed"):
        phase, result = "Failed", "failed"
    elif look_up(manifest, "spec", "suspend") is True:
        phase, up = "Suspended", False
    elif told := condition(manifest, "RestartingJobSet"):
        phase, up = "Restarting", False
    reason = "" if result == "succeeded" else _told(told)
    if not reason and result is None and uncounted:
        reason = f"restarted {uncounted} times for pods that were evicted or lost their nodes"
    return WorkloadState(
        phase=phase,
        result=result,
        up=result == "succeeded" or up,
        wanted=wanted,
        least=sum(map(_fewest_of_role, roles)),
        retries=counted,
        most_retries=number(manifest, "spec", "failurePolicy", "maxRestarts"),
        reason=_held_back(manifest) if phase == "Suspended" else reason,
    )


def _pods_of_role(role: Object) -> int:
    job = mapping(role, "template", "spec")
    return number(role, "replicas", default=1) * number(job, "parallelism", default=1)


def _fewest_of_role(role: Object) -> int:
    """Return the pods with which a role goes on: as many as end it by their success."""
    rules = objects(role, "template", "spec", "successPolicy", "rules")
    enough = [number(rule, "succeededCount") for rule in rules]
    return min((count for count in enough if count), default=_pods_of_role(role))


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
    reason = "" if phase in _HYPERPOD_UP else _told(told)
    return WorkloadState(
        phase=phase,
        result=_HYPERPOD_RESULTS.get(phase),
        up=phase in _HYPERPOD_UP,
        wanted=wanted,
        least=number(manifest, "spec", "elasticPolicy", "minReplicas", default=wanted),
        retries=number(manifest, "status", "restartCount"),
        most_retries=number(manifest, "spec", "runPolicy", "jobMaxRetryCount"),
        reason=_held_back(manifest) if phase == "Suspended" else reason,
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
    reason = "" if result == "succeeded" else _told(told)
    if phase == "Suspended":
        reason = _held_back(manifest)
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
        reason=_told(failing or (stuck[0] if stuck else {})),
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


def _held_back(manifest: Object) -> str:
    """Return why a suspended workload waits. Kueue keeps more about it in an object of its own."""
    queue = label(manifest, QUEUE_LABEL)
    suspended = _told(condition(manifest, "Suspended"))
    return f"waits in queue {queue} for quota for all of it" if queue else suspended


def _told(manifest: Object) -> str:
    return ": ".join(part for part in (text(manifest, "reason"), text(manifest, "message")) if part)


_READERS = {
    VOLCANO_JOB: _volcano,
    JOBSET: _jobset,
    PYTORCH_JOB: _pytorch,
    HYPERPOD_JOB: _hyperpod,
    INDEXED_JOB: _indexed,
    DEPLOYMENT: _deployment,
    LEADER_WORKER_SET: _leader_worker_set,
}
