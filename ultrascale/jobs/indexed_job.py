"""Indexed Jobs of Kubernetes: single pods, arrays, and several nodes without a gang scheduler.

Source: https://kubernetes.io/docs/concepts/workloads/controllers/job/
"""

from collections.abc import Iterator

from ultrascale.documents import Json
from ultrascale.jobs.pod_template import (
    deadline,
    labels,
    meeting_service,
    mistake_codes,
    pod_template,
    workload_metadata,
)
from ultrascale.plan.model import JobPlan


def indexed_objects(plan: JobPlan) -> Iterator[dict[str, Json]]:
    """Yield the Service that gives the pods of several nodes their names, and the Job."""
    if plan.service_port is not None:
        yield meeting_service(plan, plan.service_port, labels(plan))
    spec: dict[str, Json] = {"restartPolicy": "Never"}
    if plan.service_port is not None:
        spec["subdomain"] = plan.name
    yield {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": workload_metadata(plan),
        "spec": {
            "completionMode": "Indexed",
            "completions": plan.pods if plan.array is None else plan.array.size,
            "parallelism": plan.pods,
            "backoffLimitPerIndex": plan.restarts,
            "maxFailedIndexes": 0 if plan.array is None else plan.array.max_failed,
            "podFailurePolicy": {"rules": [*_failure_rules(plan)]},
            "podReplacementPolicy": "Failed",
            "ttlSecondsAfterFinished": plan.ttl_seconds_after_finished,
            **deadline(plan),
            "template": pod_template(plan, spec=spec),
        },
    }


def _failure_rules(plan: JobPlan) -> Iterator[dict[str, Json]]:
    # The drain or the loss of a node is no fault of the program's.
    disrupted = {"type": "DisruptionTarget", "status": "True"}
    yield {"action": "Ignore", "onPodConditions": [disrupted]}
    role = plan.roles[0]
    if role.mistake_exit_code is not None:
        codes = mistake_codes(role, role.mistake_exit_code)
        yield {"action": "FailJob", "onExitCodes": codes}
