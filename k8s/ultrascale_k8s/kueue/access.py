"""Kinds by which jobs wait in queues of Kueue, for the policies on people's rights."""

from collections.abc import Iterator

from ultrascale.plan.model import QueueAccessPlan
from ultrascale.plan.names import QUEUE_LABEL
from ultrascale_k8s._admission import (
    JOBS,
    LEADER_WORKER_SETS,
    Kinds,
    asks_for,
    asks_for_one_of,
    leader_worker_set_asks_for,
)
from ultrascale_k8s.kueue.admission import JOBSETS, jobset_asks_for
from ultrascale_k8s.queue_access import Judged


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
    )
    yield Judged(
        name="jobsets",
        kinds=JOBSETS,
        asks=jobset_asks_for("thing", wanted),
        named=named,
        queue=queue,
    )
    if plan.services:
        yield Judged(
            name="leaderworkersets",
            kinds=LEADER_WORKER_SETS,
            asks=leader_worker_set_asks_for("thing", wanted),
            named=named,
            queue=queue,
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
