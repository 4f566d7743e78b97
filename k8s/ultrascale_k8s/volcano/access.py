"""Kinds by which jobs wait in queues of Volcano, for the policies on people's rights."""

from collections.abc import Iterator

from ultrascale.parts.volcano.facts import GROUP_ANNOTATIONS, QUEUE_ANNOTATION, SCHEDULER
from ultrascale.plan.model import QueueAccessPlan
from ultrascale_k8s._admission import (
    JOBS,
    RAY_JOBS,
    Kinds,
    asks_for,
    asks_for_one_of,
    of_ray_cluster,
)
from ultrascale_k8s.queue_access import Judged, names_no_other

# `dyn`: the schema of a task's pods names no fields, so the type check would know none of them.
# Another scheduler knows no queues, and pods that name a node bypass them. Volcano's jobs use
# Volcano's scheduler by default.
# Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/controllers/job/job_controller_util.go
_BY_VOLCANO = f'in ["", "{SCHEDULER}"]'
_TASKS_BY_VOLCANO = (
    f"(!has(thing.spec.schedulerName) || thing.spec.schedulerName {_BY_VOLCANO}) && "
    "(!has(thing.spec.tasks) || thing.spec.tasks.all(task, !has(task.template) || "
    "!has(task.template.spec) || (!has(dyn(task.template.spec).nodeName) && "
    "(!has(dyn(task.template.spec).schedulerName) || "
    f"dyn(task.template.spec).schedulerName {_BY_VOLCANO}))))"
)


def names_no_queue(holder: str) -> str:
    """Return a CEL expression: true; Volcano reads the queue of a job in its pods alone."""
    del holder
    return "true"


def pods_name_no_other(holder: str) -> str:
    """Return a CEL expression: true if a pod, or a template of pods, names no queue of others."""
    others = names_no_other(holder, (QUEUE_ANNOTATION,), ("annotations",))
    groups = names_no_other(holder, GROUP_ANNOTATIONS, ("annotations",), own=False)
    return f"{others} && {groups}"


def judged_kinds(plan: QueueAccessPlan) -> Iterator[Judged]:
    """Yield the kinds of objects by which jobs wait in Volcano's queues."""
    wanted = asks_for_one_of(plan.resources)
    yield Judged(
        name="volcano-jobs",
        kinds=Kinds(group="batch.volcano.sh", version="v1alpha1", resources=("jobs",)),
        # For a job that names no queue, Volcano takes the queue `default`.
        asks="true",
        named=f'has(thing.spec.queue) && thing.spec.queue != "" && {_TASKS_BY_VOLCANO}',
        queue="thing.spec.queue",
    )
    yield Judged(
        name="jobs",
        kinds=JOBS,
        asks=asks_for("thing.spec.template.spec", wanted),
        named=_names_queue("thing.spec.template"),
        queue=f'thing.spec.template.metadata.annotations["{QUEUE_ANNOTATION}"]',
        elsewhere=pods_name_no_other("thing.spec.template"),
    )
    if plan.ray:
        # Their operator puts the label's queue, and Volcano, into the pods.
        ray, key = "thing.spec.rayClusterSpec", "volcano.sh/queue-name"
        bypasses = of_ray_cluster(
            ray, lambda pods: f"has({pods}.spec.nodeName) || !({pods_name_no_other(pods)})"
        )
        yield Judged(
            name="rayjobs",
            kinds=RAY_JOBS,
            asks="true",
            named=f'has({ray}) && has(thing.metadata.labels) && "{key}" in thing.metadata.labels',
            queue=f'thing.metadata.labels["{key}"]',
            elsewhere=f"!has({ray}) || !({bypasses})",
        )


def _names_queue(template: str) -> str:
    """Return a CEL expression: true if Volcano schedules the pods from a queue that they name."""
    of_pods = f"{template}.metadata.annotations"
    in_no_group = "".join(f' && !("{name}" in {of_pods})' for name in GROUP_ANNOTATIONS)
    return (
        f"has({template}.metadata) && has({of_pods}) && "
        f'"{QUEUE_ANNOTATION}" in {of_pods} && has({template}.spec.schedulerName) && '
        f'{template}.spec.schedulerName == "{SCHEDULER}" && '
        f"!has({template}.spec.nodeName){in_no_group}"
    )
