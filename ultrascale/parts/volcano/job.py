"""Volcano Jobs: all pods start together, and restart together.

Source: https://volcano.sh/en/docs/vcjob/
"""

from collections.abc import Iterator

from ultrascale.documents import Json
from ultrascale.jobs.pod_template import meeting_service, metadata, pod_template
from ultrascale.parts.volcano import facts as volcano
from ultrascale.plan import names
from ultrascale.plan.jobs.command import DEADLINE_EXIT_CODE, FIRST_INDEX
from ultrascale.plan.model import JobPlan, PartPlan, RolePlan, TaskPlan

API_VERSION = "batch.volcano.sh/v1alpha1"


def objects(plan: JobPlan) -> Iterator[dict[str, Json]]:
    """Yield the Service at which the pods of a large job meet, and its Volcano Jobs."""
    if plan.service_port is not None:
        first = {names.JOB_LABEL: plan.name, names.RANK_ZERO_LABEL: "true"}
        yield meeting_service(plan, plan.service_port, first)
    for part in plan.parts:
        yield {
            "apiVersion": API_VERSION,
            "kind": "Job",
            "metadata": metadata(plan, part.name),
            "spec": _spec(plan, part),
        }


def _spec(plan: JobPlan, part: PartPlan) -> dict[str, Json]:
    spec: dict[str, Json] = {
        "schedulerName": volcano.SCHEDULER,
        "queue": plan.queue,
        "minAvailable": part.min_available,
        # Volcano counts the first run as well, and takes 0 for its own default of 3.
        "maxRetry": plan.restarts + 1,
        "ttlSecondsAfterFinished": plan.ttl_seconds_after_finished,
        "plugins": _plugins(part),
        "policies": [*_policies(plan)],
        "tasks": [_task(plan, task) for task in part.tasks],
    }
    if plan.min_success is not None:
        spec["minSuccess"] = plan.min_success
    if plan.pod.priority_class is not None:
        spec["priorityClassName"] = plan.pod.priority_class
    if (topology := plan.topology) is not None:
        tier = topology.highest_tier
        bound: dict[str, Json] = {} if tier is None else {"highestTierAllowed": tier}
        spec["networkTopology"] = {"mode": topology.mode, **bound}
    return spec


def _policies(plan: JobPlan) -> Iterator[dict[str, Json]]:
    """Yield the policies on failures: a pod's effect on the job; the first match counts.

    Source:
    https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/controllers/job/job_controller_util.go
    """
    if len(plan.roles) == 1:
        yield from _mistakes(plan.roles[0])
    yield from _late(plan)
    yield _lost("RestartPod" if plan.elastic else "RestartJob")


def _role_policies(plan: JobPlan, role: RolePlan) -> Iterator[dict[str, Json]]:
    """Yield the policies of one role's pods, which come before those of the job."""
    if len(plan.roles) > 1 or role.restarts_alone:
        yield from _mistakes(role)
    if len(plan.roles) > 1 and role == plan.roles[0]:
        # Pods of the other roles are deleted, and the job counts as completed.
        yield {"event": "TaskCompleted", "action": "CompleteJob"}
    if role.restarts_alone:
        yield from _late(plan)
        yield _lost("RestartPartition" if role.restarts_together else "RestartPod")


def _mistakes(role: RolePlan) -> Iterator[dict[str, Json]]:
    if role.mistake_exit_code is not None:
        yield {"exitCode": role.mistake_exit_code, "action": "TerminateJob"}


def _late(plan: JobPlan) -> Iterator[dict[str, Json]]:
    if plan.deadline_seconds is not None:
        yield {"exitCode": DEADLINE_EXIT_CODE, "action": "TerminateJob"}


def _lost(action: str) -> dict[str, Json]:
    return {"events": ["PodEvicted", "PodFailed"], "action": action}


def _plugins(part: PartPlan) -> dict[str, list[str]]:
    if not part.host_list:
        return {"env": []}
    # The namespace has its own network policies, and a policy for each job costs every node time.
    options = ["--publish-not-ready-addresses=true", "--disable-network-policy=true"]
    return {"env": [], "svc": options}


def _task(plan: JobPlan, task: TaskPlan) -> dict[str, Json]:
    role = next(role for role in plan.roles if role.name == task.role)
    policies = [*_role_policies(plan, role)]
    return {
        "name": task.name,
        "replicas": task.pods,
        **({"policies": policies} if policies else {}),
        **({"partitionPolicy": _one_partition(task)} if role.restarts_together else {}),
        "template": pod_template(
            plan,
            role,
            env={FIRST_INDEX: str(task.first)} if plan.kind == "training" else {},
            extra_labels={names.RANK_ZERO_LABEL: "true"} if task.rank_zero else {},
            spec={"schedulerName": volcano.SCHEDULER, "restartPolicy": "Never"},
        ),
    }


def _one_partition(task: TaskPlan) -> dict[str, Json]:
    """Return the policy by which the pods of a task start, and start anew, as one group.

    Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/docs/user-guide/how_to_use_network_topology_aware_scheduling.md
    """
    return {"totalPartitions": 1, "partitionSize": task.pods, "minPartitions": 1}
