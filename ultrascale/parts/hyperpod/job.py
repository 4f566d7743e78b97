"""Jobs on HyperPod's nodes: PyTorchJobs of Kubeflow's operator, or HyperPod's own of its operator.

Pods of a PyTorchJob are restarted where they are, and made anew where their nodes are gone;
HyperPod starts the whole job anew, from its last checkpoint, when it takes a faulty node away.

HyperPod's training operator restarts processes where they are, then the whole job, and replaces the
pods of nodes that HyperPod takes away. It gives each pod its rank, and writes where they meet into
their processes.

Sources:
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-run-jobs-kubectl.html
    https://github.com/kubeflow/trainer/tree/v1.8.1/pkg/controller.v1/common
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-eks-operator-usage.html
    https://github.com/aws/sagemaker-hyperpod-cli/blob/main/src/sagemaker/hyperpod/training/config/hyperpod_pytorch_job_unified_config.py
"""

from collections.abc import Iterator

from ultrascale.catalog import training_operator
from ultrascale.documents import Json
from ultrascale.jobs.pod_template import (
    deadline,
    meeting_service,
    pod_template,
    topology_annotations,
    workload_metadata,
)
from ultrascale.parts.hyperpod.controller import REPLICA_INDEX, is_resumed
from ultrascale.parts.hyperpod.model import OperatorPlan
from ultrascale.plan import names
from ultrascale.plan.model import JobPlan

# Annotations with which HyperPod starts a job anew, from its last checkpoint, when a node fails.
# Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-run-jobs-kubectl.html
_AUTO_RESUME = "sagemaker.amazonaws.com/enable-job-auto-resume"
_MOST_RESUMES = "sagemaker.amazonaws.com/job-max-retry-count"


def objects(plan: JobPlan) -> Iterator[dict[str, Json]]:
    """Return the objects of a job, of the controller that its plan names."""
    if isinstance(plan.operator, OperatorPlan):
        return _operated_objects(plan, plan.operator)
    return _pytorch_objects(plan)


def _pytorch_objects(plan: JobPlan) -> Iterator[dict[str, Json]]:
    """Yield the Service at which the pods of several nodes meet, and the PyTorchJob.

    It has workers alone. With a master the operator would make them wait by a container of its own,
    whose image it pulls from Docker Hub, and call the job done when that one pod is.
    """
    if plan.service_port is not None:
        # The operator's own Services know no pod before it is ready.
        first = {names.JOB_LABEL: plan.name, REPLICA_INDEX: "0"}
        yield meeting_service(plan, plan.service_port, first)
    yield {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {**workload_metadata(plan), **_annotations(plan)},
        "spec": {
            "runPolicy": {
                # The operator adds up the restarts of all containers.
                "backoffLimit": plan.restarts * plan.pods,
                # Pods of a failed job would hold their nodes; ended ones keep their log.
                "cleanPodPolicy": "Running",
                "ttlSecondsAfterFinished": plan.ttl_seconds_after_finished,
                **deadline(plan),
            },
            "pytorchReplicaSpecs": {
                "Worker": {
                    "replicas": plan.pods,
                    # The annotation by which HyperPod resumes jobs.
                    "restartPolicy": "OnFailure",
                    "template": pod_template(plan),
                }
            },
        },
    }


def _annotations(plan: JobPlan) -> dict[str, Json]:
    if not is_resumed(plan.namespace):
        return {}
    resume = {_AUTO_RESUME: "true", _MOST_RESUMES: str(plan.restarts)}
    return {"annotations": resume}


def _operated_objects(plan: JobPlan, operator: OperatorPlan) -> Iterator[dict[str, Json]]:
    """Yield the HyperPodPyTorchJob."""
    role, elastic = plan.roles[0], _elastic(plan.pods, operator.fewest_pods)
    # AWS's own client writes them in both places.
    annotations: dict[str, Json] = {**topology_annotations(plan)}
    port: Json = {"containerPort": training_operator.AGENT_PORT}
    yield {
        "apiVersion": training_operator.API_VERSION,
        "kind": training_operator.KIND,
        "metadata": {
            **workload_metadata(plan),
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": {
            "nprocPerNode": str(operator.processes),
            **({"elasticPolicy": elastic} if elastic else {}),
            "replicaSpecs": [
                {
                    "name": role.name,
                    "replicas": role.pods,
                    **({"maxReplicas": role.pods} if elastic else {}),
                    "template": pod_template(plan, role, container={"ports": [port]}),
                }
            ],
            "runPolicy": _run_policy(plan, operator),
        },
    }


def _run_policy(plan: JobPlan, operator: OperatorPlan) -> dict[str, Json]:
    of_processes, rules = operator.process_restarts, [*_log_rules(operator)]
    return {
        # Remaining pods hold their nodes: their agents wait for another start.
        "cleanPodPolicy": "All",
        # Restarts of both kinds.
        "jobMaxRetryCount": of_processes * (plan.restarts + 1) + plan.restarts,
        "restartPolicy": {
            "numRestartBeforeFullJobRestart": of_processes,
            "maxFullJobRestarts": plan.restarts,
            "evalPeriodSeconds": training_operator.RESTART_PERIOD_SECONDS,
        },
        # By itself it deletes the job as soon as it has ended.
        "ttlSecondsAfterFinished": plan.ttl_seconds_after_finished,
        **({"logMonitoringConfiguration": rules} if rules else {}),
        **deadline(plan),
    }


def _log_rules(operator: OperatorPlan) -> Iterator[Json]:
    """Yield the rules on lines of our programs; other programs' lines are not known."""
    if operator.is_watched:
        yield {
            "name": "Hang",
            "logPattern": training_operator.PROGRESS_PATTERN,
            "expectedRecurringFrequencyInSeconds": training_operator.HANG_SECONDS,
        }
    if operator.restarts_if_slow:
        yield {
            "name": "Straggler",
            "logPattern": training_operator.STRAGGLER_PATTERN,
            "operator": "gteq",
            "metricThreshold": training_operator.STRAGGLER_RATIO,
        }


def _elastic(pods: int, fewest: int | None) -> dict[str, Json]:
    if fewest is None:
        return {}
    return {
        "minReplicas": fewest,
        "maxReplicas": pods,
        "replicaIncrementStep": 1,
        "gracefulShutdownTimeoutInSeconds": training_operator.GRACEFUL_SHUTDOWN_SECONDS,
        "scalingTimeoutInSeconds": training_operator.SCALING_SECONDS,
        "faultyScaleDownTimeoutInSeconds": training_operator.FAULTY_SCALE_DOWN_SECONDS,
    }
