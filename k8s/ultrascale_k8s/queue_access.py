"""Admission policies that keep roles with queues of their own to these queues.

RBAC knows no queues. The groups of such a role name its queues, and the API server hands them to a
policy with each request.
"""

from collections.abc import Iterator

from ultrascale.documents import JsonObject
from ultrascale.frozen import Frozen
from ultrascale.plan.model import QueueAccessPlan
from ultrascale.plan.names import (
    EDIT_ROLE,
    QUEUE_LABEL,
    QUEUE_ROLE,
    VOLCANO_GROUP_ANNOTATIONS,
    VOLCANO_QUEUE_ANNOTATION,
    VOLCANO_SCHEDULER,
    access_group,
)
from ultrascale_k8s._admission import (
    JOBS,
    JOBSETS,
    LEADER_WORKER_SETS,
    PODS,
    Kinds,
    asks_for,
    asks_for_one_of,
    binding,
    jobset_asks_for,
    leader_worker_set_asks_for,
    policy,
)

_COMPONENT = "access"
# Begins the groups of the queues that a role has in the namespace of a request.
_OWN = f'"{access_group(QUEUE_ROLE, None)}:" + request.namespace + ":"'
_HAS_QUEUES = (
    f"has(request.userInfo.groups) && request.userInfo.groups.exists(group, "
    f"group.startsWith({_OWN}))"
)
_HAS_ALL = (
    f'!request.userInfo.groups.exists(group, group == "{access_group(EDIT_ROLE, None)}" || '
    f'group == "{access_group(EDIT_ROLE, None)}:" + request.namespace)'
)
# Another scheduler knows no queues, and pods that name a node have none. Volcano's is the default.
# Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/controllers/job/job_controller_util.go
_BY_VOLCANO = f'in ["", "{VOLCANO_SCHEDULER}"]'
_TASKS_BY_VOLCANO = (
    f"(!has(thing.spec.schedulerName) || thing.spec.schedulerName {_BY_VOLCANO}) && "
    "(!has(thing.spec.tasks) || thing.spec.tasks.all(task, !has(task.template) || "
    "!has(task.template.spec) || (!has(task.template.spec.nodeName) && "
    "(!has(task.template.spec.schedulerName) || "
    f"task.template.spec.schedulerName {_BY_VOLCANO}))))"
)
_MESSAGE = (
    "your role sends jobs to queues of its own alone in this namespace, and accelerators wait in "
    "queues: name one of them, which the file of the cluster has at kubernetes.access"
)


class _Judged(Frozen):
    """Kinds of objects that are judged alike, by expressions of CEL on ``thing``."""

    name: str  # End of the name of the policy
    kinds: Kinds  # The kinds
    asks: str  # True where it asks for an accelerator
    named: str = "false"  # True where it names a queue
    queue: str = '""'  # The queue that it names
    deletes: bool = True  # Whether its deletion is judged


def queue_access_objects(plan: QueueAccessPlan) -> Iterator[JsonObject]:
    """Yield the policies, and their bindings in the namespaces of jobs.

    Where a role asks for an accelerator, or names a queue, it has to be one of its own; it neither
    changes nor deletes jobs in others. Pods that controllers make for it are not judged: what they
    are made of was.

    Source: https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/
    """
    for judged in (*_kinds(plan), *_others(plan)):
        name = f"ultrascale-own-queues-{judged.name}"
        yield _policy(name, judged)
        yield binding(name, component=_COMPONENT, namespaces=plan.namespaces)


def _kinds(plan: QueueAccessPlan) -> Iterator[_Judged]:
    """Yield the kinds by which jobs wait in queues."""
    wanted = asks_for_one_of(plan.resources)
    of_job = asks_for("thing.spec.template.spec", wanted)
    if plan.engine == "volcano":
        yield _Judged(
            name="volcano-jobs",
            kinds=Kinds(group="batch.volcano.sh", version="v1alpha1", resources=("jobs",)),
            # Volcano takes its queue `default` for a job that names none.
            asks="true",
            named=f'has(thing.spec.queue) && thing.spec.queue != "" && {_TASKS_BY_VOLCANO}',
            queue="thing.spec.queue",
        )
        yield _Judged(
            name="jobs",
            kinds=JOBS,
            asks=of_job,
            named=_annotated("thing.spec.template"),
            queue=f'thing.spec.template.metadata.annotations["{VOLCANO_QUEUE_ANNOTATION}"]',
        )
        return
    # Kueue holds a job below another one to that one's queue and quota, whatever the job names.
    # Source: https://github.com/kubernetes-sigs/kueue/blob/v0.19.14/pkg/controller/jobframework/reconciler.go
    named = (
        "!has(thing.metadata.ownerReferences) && "
        f'has(thing.metadata.labels) && "{QUEUE_LABEL}" in thing.metadata.labels && '
        f'thing.metadata.labels["{QUEUE_LABEL}"] != ""'
    )
    queue = f'thing.metadata.labels["{QUEUE_LABEL}"]'
    yield _Judged(
        name="jobs",
        kinds=JOBS,
        asks=of_job,
        named=named,
        queue=queue,
    )
    yield _Judged(
        name="jobsets",
        kinds=JOBSETS,
        asks=jobset_asks_for("thing", wanted),
        named=named,
        queue=queue,
    )
    if plan.services:
        yield _Judged(
            name="leaderworkersets",
            kinds=LEADER_WORKER_SETS,
            asks=leader_worker_set_asks_for("thing", wanted),
            named=named,
            queue=queue,
        )
    yield from _beside_services(plan, named, queue)


def _beside_services(plan: QueueAccessPlan, named: str, queue: str) -> Iterator[_Judged]:
    """Yield the kinds that come with a service, and name its queue.

    What a ScaledObject scales has its quota in a queue only where it is a LeaderWorkerSet.

    Args:
        plan: Bounds of the roles.
        named: Expression that is true where ``thing`` names a queue.
        queue: Expression of that queue.
    """
    target = "thing.spec.scaleTargetRef"
    if plan.scaled:
        yield _Judged(
            name="scaled-objects",
            kinds=Kinds(group="keda.sh", version="v1alpha1", resources=("scaledobjects",)),
            asks="true",
            named=f'{named} && has({target}.kind) && {target}.kind == "LeaderWorkerSet"',
            queue=queue,
        )
    if plan.routed:
        yield _Judged(
            name="routes",
            kinds=Kinds(group="gateway.networking.k8s.io", version="v1", resources=("httproutes",)),
            asks="true",
            named=named,
            queue=queue,
        )


def _annotated(template: str) -> str:
    """Return the expression that is true of pods that Volcano schedules from a queue they name."""
    of_pods = f"{template}.metadata.annotations"
    in_no_group = "".join(f' && !("{name}" in {of_pods})' for name in VOLCANO_GROUP_ANNOTATIONS)
    return (
        f"has({template}.metadata) && has({of_pods}) && "
        f'"{VOLCANO_QUEUE_ANNOTATION}" in {of_pods} && has({template}.spec.schedulerName) && '
        f'{template}.spec.schedulerName == "{VOLCANO_SCHEDULER}" && '
        f"!has({template}.spec.nodeName){in_no_group}"
    )


def _others(plan: QueueAccessPlan) -> Iterator[_Judged]:
    """Yield the kinds that are in no queue: with accelerators they would pass it by."""
    wanted = asks_for_one_of(plan.resources)
    of_template = asks_for("thing.spec.template.spec", wanted)
    yield _Judged(
        name="pods",
        kinds=PODS,
        asks=asks_for("thing.spec", wanted),
        # Nothing in a pod tells whose job it belongs to, and people delete those that hang.
        deletes=False,
    )
    yield _Judged(
        name="services",
        kinds=Kinds(
            group="apps",
            version="v1",
            resources=("deployments", "statefulsets", "daemonsets", "replicasets"),
        ),
        asks=of_template,
    )
    yield _Judged(
        name="controllers",
        kinds=Kinds(group="", version="v1", resources=("replicationcontrollers",)),
        asks=f"has(thing.spec.template) && {of_template}",
    )
    yield _Judged(
        name="cron-jobs",
        kinds=Kinds(group="batch", version="v1", resources=("cronjobs",)),
        asks=asks_for("thing.spec.jobTemplate.spec.template.spec", wanted),
    )


def _policy(name: str, judged: _Judged) -> JsonObject:
    own = f"({judged.named}) && ({_OWN} + {judged.queue}) in request.userInfo.groups"
    free = f"!({judged.named}) && !({judged.asks})"
    new = f'request.operation == "DELETE" || ({_of("object", own)}) || ({_of("object", free)})'
    old = (
        f'request.operation == "CREATE" || ({_of("oldObject", own)}) || ({_of("oldObject", free)})'
    )
    return policy(
        name,
        component=_COMPONENT,
        kinds=(judged.kinds,),
        operations=("CREATE", "UPDATE", *(("DELETE",) if judged.deletes else ())),
        conditions={"has-queues": _HAS_QUEUES, "has-no-other-right": _HAS_ALL},
        validations=((new, _MESSAGE), (old, _MESSAGE)),
        reason="Forbidden",
    )


def _of(thing: str, expression: str) -> str:
    return expression.replace("thing.", f"{thing}.")
