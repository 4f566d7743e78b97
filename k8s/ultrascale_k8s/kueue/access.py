"""Kinds by which jobs wait in queues of Kueue, for the policies on people's rights."""

from collections.abc import Iterator

from ultrascale.plan.model import QueueAccessPlan
from ultrascale.plan.names import QUEUE_LABEL
from ultrascale_k8s._admission import (
    JOBS,
    LEADER_WORKER_SETS,
    RAY_JOBS,
    Kinds,
    asks_for,
    asks_for_one_of,
    leader_worker_set_asks_for,
    of_ray_cluster,
    ray_cluster_asks_for,
)
from ultrascale_k8s.kueue.admission import JOBSETS, jobset_asks_for
from ultrascale_k8s.queue_access import Judged, names_no_other

_PARTS = ("labels", "annotations")
# Takes the quota of a Workload that is there, whoever made it.
# Source: https://kueue.sigs.k8s.io/docs/reference/labels-and-annotations/
_PREBUILT = "kueue.x-k8s.io/prebuilt-workload-name"


def names_no_queue(holder: str) -> str:
    """Return a CEL expression: true if a job, or a template of one, names no queue of others.

    Kueue reads the annotation of the label's name too, its older way.
    """
    others = names_no_other(holder, (QUEUE_LABEL,), _PARTS)
    return f"{others} && {names_no_other(holder, (_PREBUILT,), _PARTS, own=False)}"


def pods_name_no_other(holder: str) -> str:
    """Return a CEL expression: true if a pod, or a template of pods, names no queue.

    Where services wait in queues, Kueue holds such a pod back, and admits none by itself.
    """
    return names_no_other(holder, (QUEUE_LABEL, _PREBUILT), _PARTS, own=False)


def judged_kinds(plan: QueueAccessPlan) -> Iterator[Judged]:
    """Yield the kinds of objects by which jobs wait in Kueue's queues."""
    wanted = asks_for_one_of(plan.resources)
    # Kueue counts a job that another job owns in the owner's queue, whatever queue the job names.
    # Source: https://github.com/kubernetes-sigs/kueue/blob/v0.19.14/pkg/controller/jobframework/reconciler.go
    named = (
        "!has(thing.metadata.ownerReferences) && "
        f'has(thing.metadata.labels) && "{QUEUE_LABEL}" in thing.metadata.labels && '
        f'thing.metadata.labels["{QUEUE_LABEL}"] != ""'
    )
    queue = f'thing.metadata.labels["{QUEUE_LABEL}"]'
    yield Judged(
        name="jobs",
        kinds=JOBS,
        asks=asks_for("thing.spec.template.spec", wanted),
        named=named,
        queue=queue,
        elsewhere=f"{names_no_queue('thing')} && {names_no_queue('thing.spec.template')}",
    )
    roles = f"{names_no_queue('role.template')} && {names_no_queue('role.template.spec.template')}"
    yield Judged(
        name="jobsets",
        kinds=JOBSETS,
        asks=jobset_asks_for("thing", wanted),
        named=named,
        queue=queue,
        elsewhere=f"{names_no_queue('thing')} && thing.spec.replicatedJobs.all(role, {roles})",
    )
    if plan.ray:
        ray = "thing.spec.rayClusterSpec"
        queued = of_ray_cluster(ray, lambda pods: f"!({names_no_queue(pods)})")
        yield Judged(
            name="rayjobs",
            kinds=RAY_JOBS,
            asks=f"!has({ray}) || ({ray_cluster_asks_for(ray, wanted)})",
            named=named,
            queue=queue,
            elsewhere=f"{names_no_queue('thing')} && (!has({ray}) || !({queued}))",
        )
    if plan.services:
        group = "thing.spec.leaderWorkerTemplate"
        yield Judged(
            name="leaderworkersets",
            kinds=LEADER_WORKER_SETS,
            asks=leader_worker_set_asks_for("thing", wanted),
            named=named,
            queue=queue,
            elsewhere=f"{names_no_queue('thing')} && "
            f"{names_no_queue(f'{group}.workerTemplate')} && "
            f"(!has({group}.leaderTemplate) || ({names_no_queue(f'{group}.leaderTemplate')}))",
        )
    yield from _beside_services(plan, named, queue)


def _beside_services(plan: QueueAccessPlan, named: str, queue: str) -> Iterator[Judged]:
    """Yield the kinds that belong to a service and name the service's queue.

    The target of a ScaledObject has quota in a queue only if it is a LeaderWorkerSet.

    Args:
        plan: Bounds of the roles.
        named: CEL expression: true if ``thing`` names a queue.
        queue: CEL expression for that queue.
    """
    target = "thing.spec.scaleTargetRef"
    if plan.scaled:
        yield Judged(
            name="scaled-objects",
            kinds=Kinds(group="keda.sh", version="v1alpha1", resources=("scaledobjects",)),
            asks="true",
            named=f'{named} && has({target}.kind) && {target}.kind == "LeaderWorkerSet"',
            queue=queue,
        )
    if plan.routed:
        yield Judged(
            name="routes",
            kinds=Kinds(group="gateway.networking.k8s.io", version="v1", resources=("httproutes",)),
            asks="true",
            named=named,
            queue=queue,
        )
