"""Room for a job on existing nodes, and the jobs that hold it."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from ultrascale.catalog.quantities import amount
from ultrascale.cluster_api.objects import NODE, POD, Object, condition, label, name
from ultrascale.cluster_api.server import FORBIDDEN, Cluster
from ultrascale.documents import look_up, mapping, number, objects, text
from ultrascale.errors import RefusedError
from ultrascale.jobs.manifests import JobManifests
from ultrascale.plan.names import JOB_LABEL

MOST_NODES = 64
"""Most nodes to look at: the pods of each are a request. On more, a job waits for a queue rather
than for another job.
"""

_MOST_HOLDERS = 3
_HOLDING = "status.phase!=Succeeded,status.phase!=Failed"
_KEEPS_OFF = ("NoSchedule", "NoExecute")

_Amounts = Mapping[str, Decimal]


def waits_for_room(cluster: Cluster, job: JobManifests) -> Iterator[str]:
    """Yield the holders of the nodes on which the pods of ``job`` do not fit now.

    Raises:
        ClusterError: The API server refuses, for another reason than a missing right, or cannot be
            reached.
    """
    kinds = [kind for manifest in job.objects for kind in pod_kinds(manifest)]
    try:
        nodes_of = [nodes_for(cluster, spec) for spec, _ in kinds]
        nodes = {name(node): node for of_kind in nodes_of for node in of_kind}
        if not 0 < len(nodes) <= MOST_NODES:
            return
        pods = {key: _pods_on(cluster, node, job.name) for key, node in nodes.items()}
    except RefusedError as error:
        if error.status != FORBIDDEN:
            raise
        return
    free = {key: _free(node, pods[key]) for key, node in nodes.items()}
    fitting, held = _place_pods(job, kinds, nodes_of, free)
    holders = sorted({holder for node in held for pod in pods[node] if (holder := _holder(pod))})
    if holders:
        yield _waiting_note(job, fitting, len(nodes), holders)


def _place_pods(
    job: JobManifests,
    kinds: Sequence[tuple[Object, int]],
    nodes_of: Sequence[Sequence[Object]],
    free: Mapping[str, dict[str, Decimal]],
) -> tuple[int, Sequence[str]]:
    """Take the pods of ``job`` from the ``free`` resources of the nodes of each kind.

    Returns:
        The number of pods that fit, and the full nodes of the kinds that do not fit whole.
    """
    fitting, held = 0, dict[str, None]()
    for (spec, count), nodes in zip(kinds, nodes_of, strict=True):
        # Pods of an array start one by one, unless a queue of Kueue admits them together.
        wanted = 1 if job.array is not None and job.local_queue is None else count
        asked, placed = _requests(spec), 0
        full = [node for node in map(name, nodes) if not _fits(free[node], asked)]
        for node in map(name, nodes):
            taken = min(_fits(free[node], asked), count - placed)
            placed += taken
            for resource, quantity in asked.items():
                free[node][resource] -= taken * quantity
        fitting += placed
        if placed < wanted:
            held |= dict.fromkeys(full)
    return fitting, [*held]


def _waiting_note(job: JobManifests, fitting: int, nodes: int, holders: Sequence[str]) -> str:
    known, more = ", ".join(holders[:_MOST_HOLDERS]), len(holders) - _MOST_HOLDERS
    launched = ", or for nodes that are launched for it" if job.launches else ""
    preempted = ", unless its queue has them give way" if job.local_queue is not None else ""
    return (
        f"{fitting} of its {job.pods} pods fit on the {nodes} nodes that it "
        f"may run on: it waits for {known}{f' and {more} more' if more > 0 else ''}{launched}"
        f"{preempted}"
    )


def requests_of(container: Object) -> _Amounts:
    """Return the requests of a container; a limit without a request counts as a request."""
    stated = {
        **mapping(container, "resources", "limits"),
        **mapping(container, "resources", "requests"),
    }
    return {resource: amount(str(quantity)) for resource, quantity in stated.items()}


def nodes_for(cluster: Cluster, pod: Object, *, most: int = MOST_NODES) -> list[Object]:
    """Return possible nodes of a pod, at most one more than ``most``."""
    terms = objects(
        pod,
        "affinity",
        "nodeAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "nodeSelectorTerms",
    )
    # A job of ours has one term, of values that a label may have.
    selectors = [
        _selector(text(expression, "key"), _texts(expression, "values"))
        for term in terms
        for expression in objects(term, "matchExpressions")
    ]
    found: list[Object] = []
    for node in cluster.items(NODE.path(), {"labelSelector": ",".join(selectors)}):
        if _takes(node, pod):
            found.append(node)
        if len(found) > most:
            break
    return found


def _selector(key: str, values: Sequence[str]) -> str:
    return f"{key}={values[0]}" if len(values) == 1 else f"{key} in ({','.join(values)})"


def _texts(value: Object, key: str) -> list[str]:
    values = value.get(key)
    return [str(item) for item in values] if isinstance(values, list) else []


def _takes(node: Object, pod: Object) -> bool:
    """Return whether the scheduler puts new pods on a node, and its taints allow this one."""
    if look_up(node, "spec", "unschedulable") or not condition(node, "Ready"):
        return False
    tolerations = objects(pod, "tolerations")
    return all(
        any(_tolerates(toleration, taint) for toleration in tolerations)
        for taint in objects(node, "spec", "taints")
        if text(taint, "effect") in _KEEPS_OFF
    )


def _tolerates(toleration: Object, taint: Object) -> bool:
    key, effect = text(toleration, "key"), text(toleration, "effect")
    exists = text(toleration, "operator") == "Exists"
    return (
        key in ("", text(taint, "key"))
        and effect in ("", text(taint, "effect"))
        and (exists or text(toleration, "value") == text(taint, "value"))
    )


def _pods_on(cluster: Cluster, node: Object, job: str) -> list[Object]:
    query = {"fieldSelector": f"spec.nodeName={name(node)},{_HOLDING}"}
    return [pod for pod in cluster.items(POD.path(), query) if label(pod, JOB_LABEL) != job]


def _free(node: Object, pods: list[Object]) -> dict[str, Decimal]:
    """Return a node's resources beside ``pods``; 0 of a resource that it does not have."""
    has = mapping(node, "status", "allocatable")
    free = defaultdict(Decimal, {key: amount(str(value)) for key, value in has.items()})
    for pod in pods:
        for resource, quantity in _requests(mapping(pod, "spec")).items():
            free[resource] -= quantity
    return free


def _fits(free: _Amounts, asked: _Amounts) -> int:
    counts = (
        max(0, int(free[resource] // quantity)) for resource, quantity in asked.items() if quantity
    )
    return min(counts, default=0)


def _requests(pod: Object) -> _Amounts:
    """Return the resources that a pod holds: its containers reuse those of its init containers."""
    together: dict[str, Decimal] = defaultdict(Decimal)
    for container in objects(pod, "containers"):
        for resource, quantity in requests_of(container).items():
            together[resource] += quantity
    for container in objects(pod, "initContainers"):
        for resource, quantity in requests_of(container).items():
            together[resource] = max(together[resource], quantity)
    return together


def _holder(pod: Object) -> str:
    """Return the job of a pod, or the pod; empty for a pod that each node has."""
    owners = objects(pod, "metadata", "ownerReferences")
    if any(text(owner, "kind") == "DaemonSet" for owner in owners):
        return ""
    job = label(pod, JOB_LABEL)
    return f"job {job}" if job else f"pod {text(pod, 'metadata', 'namespace')}/{name(pod)}"


def _pods_of_replicas(spec: Object) -> Iterator[tuple[Object, int]]:
    """Yield the pods of a LeaderWorkerSet: the first of each replica, and the others."""
    template = mapping(spec, "leaderWorkerTemplate")
    replicas = number(spec, "replicas", default=1)
    others = number(template, "size", default=1)
    if leader := mapping(template, "leaderTemplate", "spec"):
        others -= 1
        yield leader, replicas
    if others and (pod := mapping(template, "workerTemplate", "spec")):
        yield pod, replicas * others


def pod_kinds(manifest: Object) -> Iterator[tuple[Object, int]]:
    """Yield the spec of each kind of a workload's pods, and their number."""
    spec = mapping(manifest, "spec")
    jobs = (mapping(role, "template", "spec") for role in objects(spec, "replicatedJobs"))
    worker = mapping(spec, "pytorchReplicaSpecs", "Worker")
    replicas = objects(spec, "replicaSpecs")
    ray = mapping(spec, "rayClusterSpec")
    groups = (mapping(ray, "headGroupSpec"), *objects(ray, "workerGroupSpecs"))
    yield from _pods_of_replicas(spec)
    for place in (spec, *objects(spec, "tasks"), *jobs, *replicas, worker, *groups):
        if pod := mapping(place, "template", "spec"):
            count = number(place, "parallelism", default=number(place, "replicas", default=1))
            yield pod, count
