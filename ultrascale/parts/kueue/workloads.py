"""JobSets in the cluster: their state, and their pods."""

from collections.abc import Iterator

from ultrascale.cluster_api.objects import Kind, Object, condition
from ultrascale.documents import look_up, mapping, number, objects, text
from ultrascale.jobs.workloads import (
    COMPLETION_INDEX,
    Task,
    Workload,
    WorkloadState,
    held_back_by_queue,
    reason_of,
)
from ultrascale.parts.kueue import jobset


def _read(manifest: Object) -> WorkloadState:
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
    if last := condition(manifest, "Completed"):
        phase, result = "Completed", "succeeded"
    elif last := condition(manifest, "Failed"):
        phase, result = "Failed", "failed"
    elif look_up(manifest, "spec", "suspend") is True:
        phase, up = "Suspended", False
    elif last := condition(manifest, "RestartingJobSet"):
        phase, up = "Restarting", False
    reason = "" if result == "succeeded" else reason_of(last)
    if not reason and result is None and uncounted:
        reason = f"restarted {uncounted} times for pods that were evicted or lost their nodes"
    return WorkloadState(
        phase=phase,
        result=result,
        up=result == "succeeded" or up,
        wanted=wanted,
        least=sum(map(_fewest_pods, roles)),
        retries=counted,
        most_retries=number(manifest, "spec", "failurePolicy", "maxRestarts"),
        reason=held_back_by_queue(manifest) if phase == "Suspended" else reason,
    )


def _pods_of_role(role: Object) -> int:
    job = mapping(role, "template", "spec")
    return number(role, "replicas", default=1) * number(job, "parallelism", default=1)


def _fewest_pods(role: Object) -> int:
    """Return the fewest pods with which a role goes on: those whose success ends it."""
    rules = objects(role, "template", "spec", "successPolicy", "rules")
    enough = [number(rule, "succeededCount") for rule in rules]
    return min((count for count in enough if count), default=_pods_of_role(role))


def _tasks(manifest: Object) -> Iterator[Task]:
    for role in objects(manifest, "spec", "replicatedJobs"):
        job = mapping(role, "template", "spec")
        yield Task(
            name=text(role, "name"),
            pods=number(job, "parallelism", default=1),
            template=mapping(job, "template", "spec"),
        )


def _makes_service(_: Object) -> bool:
    """Return True: each makes a Service of its name.

    Source:
    https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/pkg/controllers/jobset_controller.go
    """
    return True


JOBSET = Kind("jobset.x-k8s.io/v1alpha2", "JobSet", "jobsets")

WORKLOADS = (
    Workload(
        kind=JOBSET,
        read=_read,
        missing="JobSet is not installed; deploy the cluster file's stacks with "
        "scheduling.queueing: kueue",
        name_label=jobset.NAME_LABEL,
        task_label=jobset.ROLE_LABEL,
        index_label=COMPLETION_INDEX,
        uid_label=jobset.UID_LABEL,
        tasks=_tasks,
        makes_service=_makes_service,
        starts_with_all=True,
    ),
)
