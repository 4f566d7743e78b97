"""A job as Kubernetes itself runs it, where no gang scheduler is installed.

Source: https://kubernetes.io/docs/concepts/workloads/controllers/job/
"""

from collections.abc import Iterator
from typing import Any

from ultrascale.jobs.pods import labels, metadata, pod_template
from ultrascale.plan.model import JobPlan


def indexed_objects(plan: JobPlan) -> Iterator[dict[str, Any]]:
    """Yield the Service that gives the pods of several nodes their names, and the Job."""
    if plan.service_port is not None:
        yield {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata(plan),
            "spec": {
                "clusterIP": "None",
                "publishNotReadyAddresses": True,
                "selector": labels(plan),
                "ports": [{"name": "rendezvous", "port": plan.service_port}],
            },
        }
    spec: dict[str, Any] = {"restartPolicy": "Never"}
    if plan.service_port is not None:
        spec["subdomain"] = plan.name
    yield {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(plan),
        "spec": {
            "completionMode": "Indexed",
            "completions": plan.pods,
            "parallelism": plan.pods,
            "backoffLimitPerIndex": plan.restarts,
            "maxFailedIndexes": 0,
            # A node that is drained or taken by EC2 is no fault of the program's.
            "podFailurePolicy": {
                "rules": [
                    {
                        "action": "Ignore",
                        "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
                    }
                ]
            },
            "podReplacementPolicy": "Failed",
            "ttlSecondsAfterFinished": plan.ttl_seconds_after_finished,
            "template": pod_template(plan, spec=spec),
        },
    }
