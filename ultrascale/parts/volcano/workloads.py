"""Volcano Jobs in the cluster: their state, their pods, and their demand at once."""

from collections.abc import Iterator, Mapping

from ultrascale.cluster_api.objects import Kind, Object
from ultrascale.documents import mapping, number, objects, text
from ultrascale.jobs.workloads import Result, Task, Workload, WorkloadState

# Source: https://github.com/volcano-sh/apis/blob/master/pkg/apis/batch/v1alpha1/job.go
_RESULTS: Mapping[str, Result] = {
    "Completed": "succeeded",
    "Failed": "failed",
    "Aborted": "failed",
    "Terminated": "failed",
}


def _read(manifest: Object) -> WorkloadState:
    state = mapping(manifest, "status", "state")
    phase = text(state, "phase") or "Pending"
    wanted = sum(number(task, "replicas", default=1) for task in objects(manifest, "spec", "tasks"))
    fewest = number(manifest, "spec", "minAvailable") or wanted
    words = (text(state, "reason"), text(state, "message"))
    # Volcano counts the first run as well, and a last failure as if a restart followed it.
    restarts = number(manifest, "spec", "maxRetry", default=3) - 1
    return WorkloadState(
        phase=phase,
        result=_RESULTS.get(phase),
        up=phase == "Completed" or number(manifest, "status", "running") >= fewest,
        wanted=wanted,
        least=fewest,
        retries=min(number(manifest, "status", "retryCount"), restarts),
        most_retries=restarts,
        reason=": ".join(part for part in words if part),
    )


def _tasks(manifest: Object) -> Iterator[Task]:
    for task in objects(manifest, "spec", "tasks"):
        yield Task(
            name=text(task, "name"),
            pods=number(task, "replicas", default=1),
            template=mapping(task, "template", "spec"),
        )


def _gang_tasks(manifest: Object) -> Iterator[Task]:
    """Yield the pods of each task that must run.

    They are `minAvailable`, or all without it; in a job of one task, the job's own `minAvailable`.
    """
    tasks = objects(manifest, "spec", "tasks")
    fewest = number(manifest, "spec", "minAvailable") if len(tasks) == 1 else 0
    for task, planned in zip(tasks, _tasks(manifest), strict=True):
        pods = fewest or number(task, "minAvailable", default=planned.pods)
        yield Task(name=planned.name, pods=pods, template=planned.template)


def _makes_service(manifest: Object) -> bool:
    """Return whether a job makes a Service of its name, which its first restart would delete.

    Source:
    https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/controllers/job/plugins/svc/svc.go
    """
    return "svc" in mapping(manifest, "spec", "plugins")


VOLCANO_JOB = Kind("batch.volcano.sh/v1alpha1", "Job", "jobs")

# Labels of its pods.
# Source: https://github.com/volcano-sh/apis/blob/master/pkg/apis/batch/v1alpha1/labels.go
WORKLOADS = (
    Workload(
        kind=VOLCANO_JOB,
        read=_read,
        missing="Volcano is not installed; deploy the cluster file's stacks with "
        "scheduling.queueing: volcano",
        name_label="volcano.sh/job-name",
        task_label="volcano.sh/task-spec",
        # A command of its own, which `kubectl` has no verb for.
        resume="vcctl job resume --namespace {namespace} --name {name}",
        index_label="volcano.sh/task-index",
        tasks=_tasks,
        makes_service=_makes_service,
        gang=_gang_tasks,
        is_scheduled=True,
    ),
)
