"""Kinds by which jobs wait in queues of Volcano, as policies of people's rights judge them."""

from collections.abc import Iterator

from ultrascale.parts.volcano.facts import GROUP_ANNOTATIONS, QUEUE_ANNOTATION, SCHEDULER
from ultrascale.plan.model import QueueAccessPlan
from ultrascale_k8s._admission import JOBS, Kinds, asks_for, asks_for_one_of
from ultrascale_k8s.queue_access import Judged

# Another scheduler knows no queues, and pods that name a node have none. Volcano's is the default.
# Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/controllers/job/job_controller_util.go
_BY_VOLCANO = f'in ["", "{SCHEDULER}"]'
_TASKS_BY_VOLCANO = (
    f"(!has(thing.spec.schedulerName) || thing.spec.schedulerName {_BY_VOLCANO}) && "
    "(!has(thing.spec.tasks) || thing.spec.tasks.all(task, !has(task.template) || "
    "!has(task.template.spec) || (!has(task.template.spec.nodeName) && "
    "(!has(task.template.spec.schedulerName) || "
    f"task.template.spec.schedulerName {_BY_VOLCANO}))))"
)


def judged_kinds(plan: QueueAccessPlan) -> Iterator[Judged]:
    """Yield the kinds by which jobs wait in its queues."""
    wanted = asks_for_one_of(plan.resources)
    yield Judged(
        name="volcano-jobs",
        kinds=Kinds(group="batch.volcano.sh", version="v1alpha1", resources=("jobs",)),
        # Volcano takes its queue `default` for a job that names none.
        asks="true",
        named=f'has(thing.spec.queue) && thing.spec.queue != "" && {_TASKS_BY_VOLCANO}',
        queue="thing.spec.queue",
    )
    yield Judged(
        name="jobs",
        kinds=JOBS,
        asks=asks_for("thing.spec.template.spec", wanted),
        named=_annotated("thing.spec.template"),
        queue=f'thing.spec.template.metadata.annotations["{QUEUE_ANNOTATION}"]',
    )


def _annotated(template: str) -> str:
    """Return the expression that is true of pods that Volcano schedules from a queue they name."""
    of_pods = f"{template}.metadata.annotations"
    in_no_group = "".join(f' && !("{name}" in {of_pods})' for name in GROUP_ANNOTATIONS)
    return (
        f"has({template}.metadata) && has({of_pods}) && "
        f'"{QUEUE_ANNOTATION}" in {of_pods} && has({template}.spec.schedulerName) && '
        f'{template}.spec.schedulerName == "{SCHEDULER}" && '
        f"!has({template}.spec.nodeName){in_no_group}"
    )
