"""HyperPodPyTorchJobs, of HyperPod's training operator.

It restarts processes where they are, then the whole job, and replaces the pods of nodes that
HyperPod takes away. It gives each pod its rank, and writes where they meet into their processes.

Sources:
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-eks-operator-usage.html
    https://github.com/aws/sagemaker-hyperpod-cli/blob/main/src/sagemaker/hyperpod/training/config/hyperpod_pytorch_job_unified_config.py
"""

from collections.abc import Iterator

from ultrascale.catalog import training_operator
from ultrascale.documents import Json
from ultrascale.jobs.pod_template import (
    deadline,
    pod_template,
    topology_annotations,
    workload_metadata,
)
from ultrascale.plan.model import JobPlan
from ultrascale.plan.model.jobs import ElasticPlan, LogRulePlan, OperatorPlan


def hyperpod_objects(plan: JobPlan, operator: OperatorPlan) -> Iterator[dict[str, Json]]:
    """Yield the HyperPodPyTorchJob."""
    role, elastic = plan.roles[0], operator.elastic
    # AWS's own client writes them in both places.
    annotations: dict[str, Json] = {**topology_annotations(plan)}
    yield {
        "apiVersion": training_operator.API_VERSION,
        "kind": training_operator.KIND,
        "metadata": {
            **workload_metadata(plan),
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": {
            "nprocPerNode": str(operator.processes),
            **({} if elastic is None else {"elasticPolicy": _elastic(elastic)}),
            "replicaSpecs": [
                {
                    "name": role.name,
                    "replicas": role.pods,
                    **({} if elastic is None else {"maxReplicas": elastic.most}),
                    "template": pod_template(
                        plan, role, container={"ports": [{"containerPort": operator.port}]}
                    ),
                }
            ],
            "runPolicy": _run_policy(plan, operator),
        },
    }


def _run_policy(plan: JobPlan, operator: OperatorPlan) -> dict[str, Json]:
    return {
        # Pods that stay hold their nodes: their agents wait for another start.
        "cleanPodPolicy": "All",
        "jobMaxRetryCount": operator.most_restarts,
        "restartPolicy": {
            "numRestartBeforeFullJobRestart": operator.process_restarts,
            "maxFullJobRestarts": plan.restarts,
            "evalPeriodSeconds": operator.period_seconds,
        },
        # By itself it takes the job away as soon as it has ended.
        "ttlSecondsAfterFinished": plan.ttl_seconds_after_finished,
        **_log_rules(operator),
        **deadline(plan),
    }


def _log_rules(operator: OperatorPlan) -> dict[str, Json]:
    if not operator.log_rules:
        return {}
    return {"logMonitoringConfiguration": [_log_rule(rule) for rule in operator.log_rules]}


def _log_rule(rule: LogRulePlan) -> dict[str, Json]:
    found: dict[str, Json] = {"name": rule.name, "logPattern": rule.pattern}
    if rule.silent_seconds is not None:
        found["expectedRecurringFrequencyInSeconds"] = rule.silent_seconds
    if rule.least is not None:
        found |= {"operator": "gteq", "metricThreshold": rule.least}
    return found


def _elastic(elastic: ElasticPlan) -> dict[str, Json]:
    return {
        "minReplicas": elastic.least,
        "maxReplicas": elastic.most,
        "replicaIncrementStep": 1,
        "gracefulShutdownTimeoutInSeconds": elastic.checkpoint_seconds,
        "scalingTimeoutInSeconds": elastic.growth_seconds,
        "faultyScaleDownTimeoutInSeconds": elastic.fault_seconds,
    }
