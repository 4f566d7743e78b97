"""State of workloads: Volcano Jobs, PyTorchJobs, Indexed Jobs and Deployments."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from ultrascale.cluster_api.kinds import DEPLOYMENT, INDEXED_JOB, PYTORCH_JOB, VOLCANO_JOB, Kind
from ultrascale.cluster_api.objects import Object, condition, label
from ultrascale.documents import mapping, number, objects, text
from ultrascale.plan.names import QUEUE_LABEL

# What makes pods, and so has a state of its own.
WORKLOADS = (VOLCANO_JOB, PYTORCH_JOB, INDEXED_JOB, DEPLOYMENT)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadState:
    """How far a workload is.

    Attributes:
        phase: In the words of its kind.
        result: How it ended; None while it has not.
        up: Whether all that must run at once has run, or serves.
        wanted: Pods that it is to have.
        least: Pods of these that must run at once.
        retries: How often all its pods were started again (Volcano), or failed pods (others).
        most_retries: How many are allowed; None where there is no limit.
        reason: Why it is in this phase; empty where there is nothing to say.
    """

    phase: str
    result: Result | None
    up: bool
    wanted: int
    least: int
    retries: int
    most_retries: int | None
    reason: str


def read_workload(kind: Kind, found: Object) -> WorkloadState:
    """Return how far the workload ``found`` is.

    Raises:
        LookupError: ``kind`` is no workload.
    """
    return _READERS[kind](found)


def together(states: Iterable[WorkloadState]) -> WorkloadState:
    """Return the state of a job of several workloads: it fails with the first that fails."""
    every = tuple(states)
    first = next((each for each in every if each.result == "failed"), None)
    first = first or next((each for each in every if each.result is None), every[0])
    limits = [each.most_retries for each in every if each.most_retries is not None]
    return WorkloadState(
        phase=first.phase,
        result=first.result,
        up=all(each.up for each in every),
        wanted=sum(each.wanted for each in every),
        least=sum(each.least for each in every),
        retries=max(each.retries for each in every),
        most_retries=max(limits) if limits else None,
        reason=first.reason,
    )


def _volcano(found: Object) -> WorkloadState:
    state = mapping(found, "status", "state")
    phase = text(state, "phase") or "Pending"
    wanted = sum(number(each, "replicas", default=1) for each in objects(found, "spec", "tasks"))
    least = number(found, "spec", "minAvailable") or wanted
    told = (text(state, "reason"), text(state, "message"))
    # Volcano counts the first run as well, and a last failure as if a restart followed it.
    restarts = number(found, "spec", "maxRetry", default=3) - 1
    return WorkloadState(
        phase=phase,
        result=_VOLCANO_RESULTS.get(phase),
        up=phase == "Completed" or number(found, "status", "running") >= least,
        wanted=wanted,
        least=least,
        retries=min(number(found, "status", "retryCount"), restarts),
        most_retries=restarts,
        reason=": ".join(part for part in told if part),
    )


def _pytorch(found: Object) -> WorkloadState:
    wanted = number(found, "spec", "pytorchReplicaSpecs", "Worker", "replicas", default=1)
    phase = next((each for each in _PYTORCH_RESULTS if condition(found, each)), "Pending")
    result = _PYTORCH_RESULTS.get(phase)
    workers = mapping(found, "status", "replicaStatuses", "Worker")
    reason = "" if phase in ("Succeeded", "Running") else _told(condition(found, phase))
    return WorkloadState(
        phase=phase,
        result=result,
        up=result == "succeeded" or number(workers, "active") >= wanted,
        wanted=wanted,
        least=wanted,
        # Restarts of containers, which its limit counts, are in the status of the pods alone.
        retries=number(workers, "failed"),
        most_retries=None,
        reason=_held_back(found) if phase == "Suspended" else reason,
    )


def _indexed(found: Object) -> WorkloadState:
    wanted = number(found, "spec", "completions", default=1)
    least = min(wanted, number(found, "spec", "parallelism", default=1))
    # The server makes this limit endless where it is told another for each pod.
    of_all = number(found, "spec", "backoffLimit", default=6)
    phase, result, told = "Pending", None, condition(found, "Suspended")
    if complete := condition(found, "Complete"):
        phase, result, told = "Completed", "succeeded", complete
    elif failed := condition(found, "Failed"):
        phase, result, told = "Failed", "failed", failed
    elif told:
        phase = "Suspended"
    elif number(found, "status", "active"):
        phase = "Running" if number(found, "status", "ready") else "Pending"
    reason = "" if result == "succeeded" else _told(told)
    if phase == "Suspended":
        reason = _held_back(found)
    return WorkloadState(
        phase=phase,
        result=result,
        up=result == "succeeded" or number(found, "status", "ready") >= least,
        wanted=wanted,
        least=least,
        retries=number(found, "status", "failed"),
        most_retries=number(found, "spec", "backoffLimitPerIndex", default=of_all),
        reason=reason,
    )


def _deployment(found: Object) -> WorkloadState:
    wanted = number(found, "spec", "replicas", default=1)
    # Until the controller has seen this generation, the status is of the one before.
    seen = number(found, "status", "observedGeneration") >= number(found, "metadata", "generation")
    updated = min(
        number(found, "status", "updatedReplicas"), number(found, "status", "availableReplicas")
    )
    up = seen and updated >= wanted and number(found, "status", "replicas") == wanted
    stuck = [
        each
        for each in objects(found, "status", "conditions")
        if (text(each, "type"), text(each, "status")) == ("Progressing", "False")
    ]
    failing = condition(found, "ReplicaFailure")
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


def _held_back(found: Object) -> str:
    """Return why a suspended workload waits: Kueue says more of it in an object of its own."""
    queue = label(found, QUEUE_LABEL)
    suspended = _told(condition(found, "Suspended"))
    return f"waits in queue {queue} until its team has quota for all of it" if queue else suspended


def _told(found: Object) -> str:
    return ": ".join(part for part in (text(found, "reason"), text(found, "message")) if part)


_READERS = {
    VOLCANO_JOB: _volcano,
    PYTORCH_JOB: _pytorch,
    INDEXED_JOB: _indexed,
    DEPLOYMENT: _deployment,
}
