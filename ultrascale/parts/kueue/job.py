"""JobSets: all pods of a job restart together, and Kueue admits all of them or none.

Sources:
    https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/api/jobset/v1alpha2/jobset_types.go
    https://github.com/kubernetes-sigs/jobset/tree/v0.12.0/site/static/examples/failure-policy
"""

from collections.abc import Iterator

from ultrascale.documents import Json
from ultrascale.jobs.pod_template import (
    deadline,
    mistake_codes,
    pod_template,
    workload_metadata,
)
from ultrascale.parts.kueue import jobset
from ultrascale.plan.model import JobPlan, RolePlan

API_VERSION = "jobset.x-k8s.io/v1alpha2"
_POD_FAILURE = "PodFailurePolicy"


def objects(plan: JobPlan) -> Iterator[dict[str, Json]]:
    """Yield the JobSet, which makes the Service of its pods' names itself."""
    yield {
        "apiVersion": API_VERSION,
        "kind": "JobSet",
        "metadata": workload_metadata(plan),
        "spec": {
            # Pods look for the first one before it is ready.
            "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
            **_success_policy(plan),
            "failurePolicy": {
                "maxRestarts": plan.restarts,
                # The next pods get no node while those before them hold it.
                "restartStrategy": "BlockingRecreate",
                "rules": [*_failure_rules(plan)],
            },
            "ttlSecondsAfterFinished": plan.ttl_seconds_after_finished,
            "replicatedJobs": [
                {"name": role.name, "replicas": 1, "template": {"spec": _job(plan, role)}}
                for role in plan.roles
            ],
        },
    }


def _success_policy(plan: JobPlan) -> dict[str, Json]:
    """Return JobSet's success policy: the first role's end ends the job, and its other Jobs go.

    Source: https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/pkg/controllers/success_policy.go
    """
    if len(plan.roles) == 1:
        return {}
    policy: dict[str, Json] = {"operator": "All", "targetReplicatedJobs": [plan.roles[0].name]}
    return {"successPolicy": policy}


def _failure_rules(plan: JobPlan) -> Iterator[dict[str, Json]]:
    """Yield the rules of failure: the effect of a pod's failure on the job; the first match counts.

    Any other failure restarts the job, and counts.
    """
    if plan.deadline_seconds is not None:
        late = {"action": "FailJobSet", "onJobFailureReasons": ["DeadlineExceeded"]}
        yield {"name": "deadline", **late}
    if any(role.restarts_alone for role in plan.roles):
        yield {
            "name": "exhausted",
            "action": "FailJobSet",
            "onJobFailureReasons": ["MaxFailedIndexesExceeded", "FailedIndexes"],
        }
    disrupted: dict[str, Json] = {
        "name": "disrupted",
        "action": "RestartJobSetAndIgnoreMaxRestarts",
        "onJobFailureReasons": [_POD_FAILURE],
    }
    if all(role.mistake_exit_code is None for role in plan.roles):
        yield disrupted
        return
    yield {**disrupted, "onJobFailureMessagePatterns": [jobset.DISRUPTED]}
    yield {"name": "mistake", "action": "FailJobSet", "onJobFailureReasons": [_POD_FAILURE]}


def _job(plan: JobPlan, role: RolePlan) -> dict[str, Json]:
    return {
        "completionMode": "Indexed",
        "completions": role.pods,
        "parallelism": role.pods,
        **_retries(plan, role),
        **_job_success_policy(plan),
        **deadline(plan),
        "podFailurePolicy": {"rules": [*_pod_rules(role)]},
        "podReplacementPolicy": "Failed",
        "template": pod_template(plan, role, spec={"restartPolicy": "Never"}),
    }


def _retries(plan: JobPlan, role: RolePlan) -> dict[str, Json]:
    """Return how often a Job makes single pods anew.

    The action RestartJob of JobSet, which would make all pods of a role anew, is an alpha feature.

    Source: https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/pkg/features/features.go
    """
    if role.restarts_alone:
        return {"backoffLimitPerIndex": plan.restarts, "maxFailedIndexes": 0}
    # The Job would replace single pods, whose peers wait for nobody.
    return {"backoffLimit": 0}


def _job_success_policy(plan: JobPlan) -> dict[str, Json]:
    """Return the success policy of a role's Job that fewer than all pods end.

    Source: https://kubernetes.io/docs/concepts/workloads/controllers/job/#success-policy
    """
    if plan.min_success is None:
        return {}
    return {"successPolicy": {"rules": [{"succeededCount": plan.min_success}]}}


def _pod_rules(role: RolePlan) -> Iterator[dict[str, Json]]:
    # The drain or the loss of a node is no fault of the program's.
    disrupted = {"type": "DisruptionTarget", "status": "True"}
    action = "Ignore" if role.restarts_alone else "FailJob"
    yield {"action": action, "onPodConditions": [disrupted]}
    if role.mistake_exit_code is not None:
        codes = mistake_codes(role, role.mistake_exit_code)
        yield {"action": "FailJob", "onExitCodes": codes}
