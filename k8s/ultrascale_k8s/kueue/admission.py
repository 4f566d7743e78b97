"""Admission policies that keep pods with accelerators from bypassing Kueue's queues.

Kueue counts jobs, not single pods: with its integration of pods, no pod could be created in these
namespaces while Kueue is down. So nodes that uncounted pods use would be assigned a second time.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial

from ultrascale.documents import JsonObject
from ultrascale.frozen import Frozen
from ultrascale.parts.kueue.model import Plan
from ultrascale.plan.names import (
    CHECK_LABEL,
    POOL_LABEL,
    QUEUE_GATE,
    QUEUE_LABEL,
    QUEUED_POD_LABEL,
    QUEUED_PODS_POLICY,
)
from ultrascale_k8s._admission import (
    IS_PERSON,
    JOBS,
    LEADER_WORKER_SETS,
    PODS,
    RAY_JOBS,
    Kinds,
    asks_for,
    asks_for_one_of,
    binding,
    containers_ask_for,
    leader_worker_set_asks_for,
    of_ray_cluster,
    policy,
    ray_cluster_asks_for,
)

JOBSETS = Kinds(group="jobset.x-k8s.io", version="v1alpha2", resources=("jobsets",))
_COMPONENT = "ultrascale-queues"
# Source: https://github.com/kubernetes-sigs/lws/blob/v0.10.0/api/leaderworkerset/v1/leaderworkerset_types.go
REPLICA = "leaderworkerset.sigs.k8s.io/name"
_MAY_CORDON = 'authorizer.group("").resource("nodes").check("patch").allowed()'
_OTHER_DEVICES = 'name.startsWith("nvidia.com/") || name.startsWith("aws.amazon.com/neuron")'
_JOB_POD = "object.spec.template.spec"
_ROLE_POD = "role.template.spec.template.spec"
_GROUP = "object.spec.leaderWorkerTemplate"
_RAY = "object.spec.rayClusterSpec"


def _claims(pods: str) -> str:
    return f"has({pods}.spec.resourceClaims)"


# By plural of a kind, a CEL expression: true if a pod claims devices by dynamic allocation, which
# no queue counts.
# Source: https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/
_CLAIMS = {
    "pods": "has(object.spec.resourceClaims)",
    "jobs": f"has({_JOB_POD}.resourceClaims)",
    "jobsets": f"object.spec.replicatedJobs.exists(role, has({_ROLE_POD}.resourceClaims))",
    "leaderworkersets": f"has({_GROUP}.workerTemplate.spec.resourceClaims) || "
    f"(has({_GROUP}.leaderTemplate) && has({_GROUP}.leaderTemplate.spec.resourceClaims))",
    "rayjobs": f"has({_RAY}) && ({of_ray_cluster(_RAY, _claims)})",
    "rayclusters": of_ray_cluster("object.spec", _claims),
}


class _Gate(Frozen):
    """An admission policy for one kind of objects."""

    name: str  # Name of the policy, and of its binding
    kinds: Kinds  # The kind
    operations: tuple[str, ...]  # Requests that are checked
    is_judged: Mapping[str, str]  # Conditions by name; an object that breaks one passes unchecked
    is_queued: str  # Condition that a checked object must keep
    message: str  # Error message
    # Expressions of further objects that may pass, each with its message.
    uncounted: tuple[tuple[str, str], ...] = ()


def queue_gate_objects(plan: Plan) -> Iterator[JsonObject]:
    """Yield the policies of pods, and of each kind that makes some, each with its binding.

    The API server itself evaluates them, so no webhook can be down. Running jobs are left alone
    until their pods are made anew. Labels and owners that leave an object out count only where a
    controller sends it: people can write them too. A check of free nodes, which waits in no queue,
    is left to those who may cordon the nodes that it finds bad.

    Source: https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/
    """
    for gate in _gates(plan):
        yield policy(
            gate.name,
            component=_COMPONENT,
            kinds=(gate.kinds,),
            operations=gate.operations,
            conditions=gate.is_judged,
            validations=((gate.is_queued, gate.message), *gate.uncounted),
            reason="Invalid",
        )
        yield binding(gate.name, component=_COMPONENT, namespaces=plan.namespaces)


def _gates(plan: Plan) -> Iterator[_Gate]:
    resources = plan.gated_resources
    wanted = _device_names(plan)
    is_check = f"({_has_label('object', CHECK_LABEL)}) && {_MAY_CORDON}"
    shown = " or ".join(resources)
    add = f"add the label {QUEUE_LABEL} with the name of a LocalQueue of the namespace"
    ray = "RayJob, " if plan.queues_ray else ""
    kinds = (
        f"{ray}Job, JobSet or LeaderWorkerSet" if plan.queues_services else f"{ray}Job or JobSet"
    )
    # The object is created now, or was in a queue before: other existing objects may run to their
    # end.
    is_new = f'request.operation == "CREATE" || ({_has_label("oldObject", QUEUE_LABEL)})'
    # The resources of a suspended Job may change.
    asks_now = f"!({asks_for('oldObject.spec.template.spec', wanted)})"
    yield _Gate(
        name=QUEUED_PODS_POLICY,
        kinds=PODS,
        operations=("CREATE",),
        is_judged={"asks-for-accelerators": _asks("pods", wanted)},
        is_queued=_pod_is_queued(plan),
        message=(
            f"this pod asks for {shown} and is of no job that Kueue has admitted: jobs of this "
            f"namespace wait in queues; submit it as a {kinds} with the label {QUEUE_LABEL}, or "
            "run it in a namespace without queues"
        ),
    )
    yield _Gate(
        name="ultrascale-queued-jobs",
        kinds=JOBS,
        operations=("CREATE", "UPDATE"),
        is_judged={
            "asks-for-accelerators": _asks("jobs", wanted),
            "is-new-or-queued": f"{is_new} || {asks_now}",
        },
        # Kueue counts the Jobs of a JobSet with the JobSet.
        is_queued=f"({_has_label('object', QUEUE_LABEL)}) || ({is_check}) || "
        f"(!({IS_PERSON}) && {_owned_by('jobset.x-k8s.io/v1alpha2', 'JobSet')})"
        f"{_uncounted_nodes_alternative(plan, 'object.spec.template.spec')}",
        message=f"this Job asks for {shown} and names no queue; {add}",
        uncounted=(
            *_counting_conditions(plan, "Job", _ASKS["jobs"]),
            *_devices_of_no_queue(plan, "jobs"),
        ),
    )
    yield _Gate(
        name="ultrascale-queued-jobsets",
        kinds=JOBSETS,
        operations=("CREATE", "UPDATE"),
        is_judged={"asks-for-accelerators": _asks("jobsets", wanted), "is-new-or-queued": is_new},
        is_queued=_has_label("object", QUEUE_LABEL),
        message=f"this JobSet asks for {shown} and names no queue; {add}",
        uncounted=(
            *_counting_conditions(plan, "JobSet", _ASKS["jobsets"]),
            *_devices_of_no_queue(plan, "jobsets"),
        ),
    )
    if plan.queues_ray:
        yield from _ray_gates(plan, wanted, is_new=is_new, shown=shown, add=add)
    if plan.queues_services:
        yield _Gate(
            name="ultrascale-queued-leaderworkersets",
            kinds=LEADER_WORKER_SETS,
            operations=("CREATE", "UPDATE"),
            is_judged={
                "asks-for-accelerators": _asks("leaderworkersets", wanted),
                "is-new-or-queued": is_new,
            },
            is_queued=_has_label("object", QUEUE_LABEL),
            message=f"this LeaderWorkerSet asks for {shown} and names no queue; {add}",
            uncounted=(
                *_counting_conditions(plan, "LeaderWorkerSet", _ASKS["leaderworkersets"]),
                *_devices_of_no_queue(plan, "leaderworkersets"),
            ),
        )
        # Beside LeaderWorkerSets Kueue gates each pod with the label, and admits none of its own.
        replica = f"({_owned_by('apps/v1', 'StatefulSet')}) && ({_has_label('object', REPLICA)})"
        yield _Gate(
            name="ultrascale-queued-single-pods",
            kinds=PODS,
            operations=("CREATE",),
            is_judged={"names-a-queue": _has_label("object", QUEUE_LABEL)},
            is_queued=f"({_owned_by('batch/v1', 'Job')}) || ({replica})",
            message=(
                f"this pod has the label {QUEUE_LABEL} and is of no {kinds}: Kueue would keep it "
                f"waiting without end; leave the label out, or submit it as a {kinds}"
            ),
        )


def _ray_gates(plan: Plan, wanted: str, *, is_new: str, shown: str, add: str) -> Iterator[_Gate]:
    """Yield the policies of jobs of Ray, and of its clusters, which no queue counts by themselves.

    Kueue leaves a job alone that names a cluster which is there.
    """
    selects = "has(object.spec.clusterSelector)"
    yield _Gate(
        name="ultrascale-queued-rayjobs",
        kinds=RAY_JOBS,
        operations=("CREATE", "UPDATE"),
        is_judged={
            "asks-for-accelerators": f"{selects} || ({_asks('rayjobs', wanted)})",
            "is-new-or-queued": is_new,
        },
        is_queued=f"{_has_label('object', QUEUE_LABEL)} && !{selects}",
        message=f"this RayJob asks for {shown} and names no queue, or runs on a cluster that no "
        f"queue counts; {add}, and leave out clusterSelector",
        uncounted=(
            *_counting_conditions(plan, "RayJob", _ASKS["rayjobs"]),
            *_devices_of_no_queue(plan, "rayjobs"),
        ),
    )
    yield _Gate(
        name="ultrascale-queued-rayclusters",
        kinds=Kinds(group="ray.io", version="v1", resources=("rayclusters",)),
        operations=("CREATE", "UPDATE"),
        is_judged={"asks-for-accelerators": _asks("rayclusters", wanted)},
        is_queued=f"!({IS_PERSON}) && ({_owned_by('ray.io/v1', 'RayJob')})",
        message=f"this RayCluster asks for {shown} and is of no RayJob; send a RayJob with a queue",
    )


def _device_names(plan: Plan) -> str:
    """Return a CEL condition: true if a resource's ``name`` is one of a device.

    Slices of a device have names of their own, as ``nvidia.com/mig-1g.10gb``.
    """
    counted = asks_for_one_of([*plan.gated_resources, *plan.gated_interfaces])
    return f"({counted} || {_OTHER_DEVICES})"


def _asks(kind: str, wanted: str) -> str:
    """Return a CEL expression: true if a pod of a kind asks for a resource, or claims a device."""
    return f"({_ASKS[kind](wanted)}) || ({_CLAIMS[kind]})"


def _devices_of_no_queue(plan: Plan, kind: str) -> Iterator[tuple[str, str]]:
    """Yield a CEL expression: true if queues count all devices of a job; with its message."""
    counted = f"({_OTHER_DEVICES}) && !({asks_for_one_of(plan.gated_resources)})"
    other = "" if kind != "jobs" else _uncounted_nodes_alternative(plan, _JOB_POD)
    yield (
        f"!({_asks(kind, counted)}){other}",
        "queues count whole devices: a slice of one, or a device that is claimed, would be given "
        "away beside them; ask for whole devices, or run it in a namespace without queues",
    )


def _pod_is_queued(plan: Plan) -> str:
    """Return a CEL expression: true if Kueue counts a pod, or the pod needs no queue.

    Kueue labels the pods of a job when it admits the job, and a controller makes them. Pods of a
    LeaderWorkerSet wait behind a scheduling gate until Kueue has admitted their replica; while
    Kueue is down, they are created without the gate.

    Source: https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/pkg/controller/jobs/pod/pod_webhook.go
    """
    admitted = _has_label("object", QUEUED_POD_LABEL)
    is_check = _has_label("object", CHECK_LABEL)
    of_jobs = (
        f"(({admitted}) || ({is_check}){_uncounted_nodes_alternative(plan, 'object.spec')}) && "
        f"({_owned_by('batch/v1', 'Job')})"
    )
    if plan.queues_ray:
        of_ray = f"({admitted}) && ({_owned_by('ray.io/v1', 'RayCluster')})"
        of_jobs = f"(({of_jobs}) || ({of_ray}))"
    if not plan.queues_services:
        return f"!({IS_PERSON}) && {of_jobs}"
    gates = "object.spec.schedulingGates"
    gated = f'has({gates}) && {gates}.exists(gate, gate.name == "{QUEUE_GATE}")'
    of_services = f"({gated}) && ({_owned_by('apps/v1', 'StatefulSet')})"
    return f"!({IS_PERSON}) && (({of_jobs}) || ({of_services}))"


def _uncounted_nodes_alternative(plan: Plan, pod: str) -> str:
    """Return a CEL alternative: true if a pod runs on nodes that no queue counts; may be empty.

    The kubelet refuses a pod whose required affinity its node does not meet, even if the pod names
    the node.
    """
    if not plan.uncounted_pools:
        return ""
    affinity = f"{pod}.affinity"
    required = f"{affinity}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    return (
        f" || (has({affinity}) && has({affinity}.nodeAffinity) && has({required}) && "
        f"{required}.nodeSelectorTerms.all(term, has(term.matchExpressions) && "
        f'term.matchExpressions.exists(each, each.key == "{POOL_LABEL}" && '
        f'each.operator == "In" && '
        f"each.values.all(value, value in {json.dumps(list(plan.uncounted_pools))}))))"
    )


def _counting_conditions(
    plan: Plan, kind: str, asks: Callable[[str], str]
) -> Iterator[tuple[str, str]]:
    """Yield CEL expressions: true if the job's queue counts its resources; each with a message.

    Kueue admits any amount of a resource that a queue does not count.

    Source: assignFlavors of
    https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/pkg/scheduler/flavorassigner/flavorassigner.go
    """
    here = f'object.metadata.labels["{QUEUE_LABEL}"]'
    # Waiting jobs may run to their end, even after their queue counts other resources.
    stays = (
        f'request.operation == "UPDATE" && ({_has_label("oldObject", QUEUE_LABEL)}) && '
        f'oldObject.metadata.labels["{QUEUE_LABEL}"] == {here}'
    )
    counted = {queue.name: {group.resource for group in queue.groups} for queue in plan.queues}
    for resource in plan.gated_resources:
        own = sorted(name for name, each in counted.items() if resource in each)
        others = sorted(counted.keys() - {*own})
        if others:
            refused = f"({_has_label('object', QUEUE_LABEL)}) && {here} in {json.dumps(others)}"
            wanted = f"name == {json.dumps(resource)}"
            alike = [
                each for each in plan.gated_resources if _is_counted_alike(each, resource, counted)
            ]
            todo = f"name {' or '.join(own)}" if own else f"ask for {' or '.join(alike)}"
            if not own and not alike:
                todo = "run it in a namespace without queues"
            yield (
                f"!({refused} && !({stays}) && {asks(wanted)})",
                f"this {kind} asks for {resource}, which its queue does not count; {todo}",
            )


def _is_counted_alike(resource: str, other: str, counted: Mapping[str, Collection[str]]) -> bool:
    """Return whether a queue counts ``resource``, and ``other`` has the same vendor."""
    of_vendor = resource.partition("/")[0] == other.partition("/")[0]
    return of_vendor and any(resource in resources for resources in counted.values())


def _has_label(thing: str, label: str) -> str:
    """Return a CEL expression: true if an object has a label that is not empty."""
    of_it = f"{thing}.metadata.labels"
    return f'has({of_it}) && "{label}" in {of_it} && {of_it}["{label}"] != ""'


def _owned_by(api_version: str, kind: str) -> str:
    owners = "object.metadata.ownerReferences"
    return (
        f'has({owners}) && {owners}.exists(owner, owner.apiVersion == "{api_version}" && '
        f'owner.kind == "{kind}" && has(owner.controller) && owner.controller)'
    )


def jobset_asks_for(jobset: str, wanted: str) -> str:
    """Return a CEL expression: true if any pod of the JobSet requests the resource.

    Args:
        jobset: CEL expression for the JobSet.
        wanted: CEL condition on the resource's ``name``.
    """
    role = "role.template.spec.template.spec"
    of_role = containers_ask_for(f"{role}.containers", wanted)
    of_start = containers_ask_for(f"{role}.initContainers", wanted)
    return (
        f"{jobset}.spec.replicatedJobs.exists(role, {of_role} ||\n"
        f"(has({role}.initContainers) && {of_start}))"
    )


# By plural of a kind, CEL that says whether a pod of an object asks for a resource.
_ASKS: Mapping[str, Callable[[str], str]] = {
    "pods": partial(asks_for, "object.spec"),
    "jobs": partial(asks_for, _JOB_POD),
    "jobsets": partial(jobset_asks_for, "object"),
    "leaderworkersets": partial(leader_worker_set_asks_for, "object"),
    "rayjobs": lambda wanted: f"has({_RAY}) && ({ray_cluster_asks_for(_RAY, wanted)})",
    "rayclusters": partial(ray_cluster_asks_for, "object.spec"),
}
