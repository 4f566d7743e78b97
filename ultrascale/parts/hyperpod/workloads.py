"""Jobs of both operators in the cluster: their state, and their pods."""

from collections.abc import Mapping

from ultrascale.catalog import training_operator
from ultrascale.cluster_api.objects import Kind, Object, condition
from ultrascale.documents import mapping, number, objects, text
from ultrascale.jobs.workloads import (
    Result,
    Workload,
    WorkloadState,
    held_back_by_queue,
    reason_of,
)
from ultrascale.parts.hyperpod.controller import REPLICA_INDEX

HYPERPOD_JOB = Kind(training_operator.API_VERSION, training_operator.KIND, "hyperpodpytorchjobs")
_JOB_NAME = "training.kubeflow.org/job-name"  # label that Kubeflow's operator sets on its pods
PYTORCH_JOB = Kind("kubeflow.org/v1", "PyTorchJob", "pytorchjobs")

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
    wanted = sum(number(replica, "replicas") for replica in replicas)
    held = [
        state
        for state in objects(manifest, "status", "conditions")
        if text(state, "status") == "True" and text(state, "type") != "Created"
    ]
    ended = next((state for state in held if text(state, "type") in _HYPERPOD_RESULTS), None)
    # It adds each condition behind those before it.
    last = ended or (held[-1] if held else {})
    phase = text(last, "type") or "Pending"
    reason = "" if phase in _HYPERPOD_UP else reason_of(last)
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


WORKLOADS = (
    Workload(
        kind=HYPERPOD_JOB,
        read=_hyperpod,
        missing="HyperPod's training operator is not installed; deploy the cluster file's stacks "
        "with hyperpod.training_operator: true",
        name_label=training_operator.JOB_NAME,
        ends_names=True,
    ),
    Workload(
        kind=PYTORCH_JOB,
        read=_pytorch,
        missing="Kubeflow's training operator is not installed; deploy the cluster file's stacks, "
        "of which HyperPod's chart brings it",
        name_label=_JOB_NAME,
        index_label=REPLICA_INDEX,
    ),
)
