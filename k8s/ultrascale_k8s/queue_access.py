"""Admission policies that restrict roles with queues of their own to these queues.

RBAC knows no queues. Groups of such a role name its queues, and the API server passes the groups to
a policy with each request.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import product
from types import ModuleType

from ultrascale.documents import JsonObject
from ultrascale.frozen import Frozen
from ultrascale.plan.model import QueueAccessPlan
from ultrascale.plan.names import (
    EDIT_ROLE,
    QUEUE_ROLE,
    access_group,
)
from ultrascale_k8s._admission import (
    PODS,
    Kinds,
    asks_for,
    asks_for_one_of,
    binding,
    policy,
)

_COMPONENT = "access"
# Prefix of the groups that name a role's queues in the namespace of a request.
_OWN = f'"{access_group(QUEUE_ROLE, None)}:" + request.namespace + ":"'
_HAS_QUEUES = (
    f"has(request.userInfo.groups) && request.userInfo.groups.exists(group, "
    f"group.startsWith({_OWN}))"
)
_HAS_ALL = (
    f'!request.userInfo.groups.exists(group, group == "{access_group(EDIT_ROLE, None)}" || '
    f'group == "{access_group(EDIT_ROLE, None)}:" + request.namespace)'
)
_MESSAGE = (
    "your role sends jobs to queues of its own alone in this namespace, and accelerators wait in "
    "queues: name one of them, which the file of the cluster has at kubernetes.access"
)


class Judged(Frozen):
    """Kinds of objects that the policy judges by the same CEL expressions on ``thing``."""

    name: str  # End of the name of the policy
    kinds: Kinds  # The kinds
    asks: str  # True where it asks for an accelerator
    named: str = "false"  # True where it names a queue
    queue: str = '""'  # The queue that it names
    # True where no further place of it, such as its pods, names a queue of others.
    elsewhere: str = "true"
    deletes: bool = True  # Whether its deletion is judged


def queue_access_objects(plan: QueueAccessPlan) -> Iterator[JsonObject]:
    """Yield the policies, and their bindings in the namespaces of jobs.

    A job of the role that requests an accelerator, or names a queue, has to be in a queue of the
    role; the role can neither change nor delete jobs in other queues. Pods that controllers make
    are not judged: the objects that they are made from were.

    Source: https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/
    """
    for judged in (*_queued_kinds(plan), *_unqueued_kinds(plan)):
        name = f"ultrascale-own-queues-{judged.name}"
        yield _policy(name, judged)
        yield binding(name, component=_COMPONENT, namespaces=plan.namespaces)


def names_no_other(
    holder: str, keys: Sequence[str], parts: Sequence[str], *, own: bool = True
) -> str:
    """Return a CEL expression: true if metadata names no queue, or one of the role.

    ``holder`` is the object or template that has ``keys`` in the ``parts`` of its metadata.
    """
    conditions: list[str] = []
    for part, key in product(parts, keys):
        # The schema of an embedded template may name no fields of its metadata.
        metadata = f"dyn({holder}).metadata"
        named = f'{metadata}.{part}["{key}"]'
        kept = f" || ({_OWN} + string({named})) in request.userInfo.groups" if own else ""
        conditions.append(
            f"(!has(dyn({holder}).metadata) || !has({metadata}.{part}) || "
            f'!("{key}" in {metadata}.{part}) || {named} == ""{kept})'
        )
    return " &&\n".join(conditions)


def _queued_kinds(plan: QueueAccessPlan) -> Iterator[Judged]:
    """Yield the kinds of objects by which jobs wait in queues of the engine."""
    judged: Iterator[Judged] = _engine(plan).judged_kinds(plan)
    yield from judged


def _engine(plan: QueueAccessPlan) -> ModuleType:
    return import_module(f"{__package__}.{plan.engine}.access")


def _unqueued_kinds(plan: QueueAccessPlan) -> Iterator[Judged]:
    """Yield the kinds that no queue counts: with accelerators they would bypass the queues.

    Engines count their pods in the queue that these name.
    """
    wanted = asks_for_one_of(plan.resources)
    engine = _engine(plan)
    names_no_queue: Callable[[str], str] = engine.names_no_queue
    pods_of_others: Callable[[str], str] = engine.pods_name_no_other
    of_template = asks_for("thing.spec.template.spec", wanted)
    template = pods_of_others("thing.spec.template")
    yield Judged(
        name="pods",
        kinds=PODS,
        asks=asks_for("thing.spec", wanted),
        elsewhere=pods_of_others("thing"),
        # A pod does not tell whose job it belongs to, and people delete pods that hang.
        deletes=False,
    )
    yield Judged(
        name="services",
        kinds=Kinds(
            group="apps",
            version="v1",
            resources=("deployments", "statefulsets", "daemonsets", "replicasets"),
        ),
        asks=of_template,
        elsewhere=f"{names_no_queue('thing')} && {template}",
    )
    yield Judged(
        name="controllers",
        kinds=Kinds(group="", version="v1", resources=("replicationcontrollers",)),
        asks=f"has(thing.spec.template) && {of_template}",
        elsewhere=f"!has(thing.spec.template) || ({template})",
    )
    job = "thing.spec.jobTemplate"
    yield Judged(
        name="cron-jobs",
        kinds=Kinds(group="batch", version="v1", resources=("cronjobs",)),
        asks=asks_for(f"{job}.spec.template.spec", wanted),
        elsewhere=f"{names_no_queue(job)} && {pods_of_others(f'{job}.spec.template')}",
    )


def _policy(name: str, judged: Judged) -> JsonObject:
    own = f"({judged.named}) && ({_OWN} + {judged.queue}) in request.userInfo.groups"
    free = f"!({judged.named}) && !({judged.asks})"
    either = f"(({own}) || ({free})) && ({judged.elsewhere})"
    new = f'request.operation == "DELETE" || ({_with_thing(either, "object")})'
    old = f'request.operation == "CREATE" || ({_with_thing(either, "oldObject")})'
    return policy(
        name,
        component=_COMPONENT,
        kinds=(judged.kinds,),
        operations=("CREATE", "UPDATE", *(("DELETE",) if judged.deletes else ())),
        conditions={"has-queues": _HAS_QUEUES, "has-no-other-right": _HAS_ALL},
        validations=((new, _MESSAGE), (old, _MESSAGE)),
        reason="Forbidden",
    )


def _with_thing(expression: str, thing: str) -> str:
    return re.sub(r"\bthing\b", thing, expression)
