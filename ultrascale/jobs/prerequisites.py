"""Checks of the cluster before a job is sent. They report everything that is missing."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial

from ultrascale.catalog.quantities import amount
from ultrascale.cluster_api.objects import (
    CLAIM,
    CLUSTER_QUEUE,
    HTTP_ROUTE,
    INDEXED_JOB,
    LOCAL_QUEUE,
    NAMESPACE,
    PRIORITY_CLASS,
    QUEUE,
    SCALED_OBJECT,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    Kind,
    Object,
    label,
    name,
    owned_by,
)
from ultrascale.cluster_api.server import FORBIDDEN, Cluster
from ultrascale.documents import look_up, mapping, objects, text
from ultrascale.errors import ClusterError, RefusedError
from ultrascale.jobs.listing import visible_objects
from ultrascale.jobs.manifests import JobManifests, kind_of
from ultrascale.jobs.part_reports import warnings_of
from ultrascale.jobs.room import MOST_NODES, nodes_for, pod_kinds, requests_of, waits_for_room
from ultrascale.jobs.workloads import read_workload, workload_kinds, workload_of, workloads
from ultrascale.plan.names import JOB_LABEL, OUTPUT_ACCOUNT

# --- Disks of the possible nodes of a job with scratch space --------------------------------------


_GB = 10**9
_MOST_NAMED = 3
# File systems and RAID take a few percent; an EBS root volume is a fraction.
_LEAST_SHARE = 0.5


def warns_of_disks(cluster: Cluster, job: JobManifests) -> Iterator[str]:
    """Yield nodes whose disk for pods' volumes is too small to be their local NVMe.

    HyperPod's nodes are such if they are older than the script that moves these volumes.

    Raises:
        ClusterError: The API server refuses, for another reason than a missing right, or cannot be
            reached.
    """
    if job.scratch_gb is None:
        return
    pods = [pod for manifest in job.objects for pod, _ in pod_kinds(manifest)]
    try:
        nodes = {name(node): node for pod in pods for node in nodes_for(cluster, pod)}
    except RefusedError as error:
        if error.status != FORBIDDEN:
            raise
        return
    if len(nodes) > MOST_NODES:
        return
    sizes = {name: size for name, node in nodes.items() if (size := _gb(node)) is not None}
    small = {name: size for name, size in sizes.items() if size < job.scratch_gb * _LEAST_SHARE}
    if small:
        named, more = ", ".join(sorted(small)[:_MOST_NAMED]), len(small) - _MOST_NAMED
        yield (
            f"{len(small)} of the {len(nodes)} nodes that it may run on keep volumes of pods on a "
            f"disk of {min(small.values()):,} GB, not on their local NVMe ({named}"
            f"{f' and {more} more' if more > 0 else ''}): files in its scratch space fill that "
            "disk, and the node evicts its pods; replace these nodes first"
        )


def _gb(node: Object) -> int | None:
    """Return the size of the disk below the kubelet's folder, in GB; None if not stated."""
    size = look_up(node, "status", "capacity", "ephemeral-storage")
    return int(amount(str(size)) / _GB) if size is not None else None


# --- Checks of the cluster before a job is sent. They report everything that is missing -----------


_INSTALLED_BY = {
    HTTP_ROUTE: (
        "Envoy Gateway is not installed; deploy the cluster file's stacks, of which the front's "
        "brings it"
    ),
    SCALED_OBJECT: (
        "KEDA is not installed; deploy the cluster file's stacks with the service in its jobs, or "
        "with keda in serving.controllers"
    ),
}
_MEASURES = "/apis/metrics.k8s.io/v1beta1"
"""Path of the API that gives autoscalers the use of CPU."""
_Check = Callable[[Cluster, JobManifests], Iterator[str]]


def check(cluster: Cluster, job: JobManifests) -> tuple[str, ...]:
    """Return notes for the user, each a sentence.

    They name checks that failed for want of a right, a queue that the job has to wait for, and jobs
    that hold its nodes.

    Raises:
        ClusterError: Something is missing; one line for each.
    """
    missing: list[str] = []
    unchecked: list[str] = []

    def found_missing(*checks: _Check) -> bool:
        before = len(missing)
        for lines in checks:
            try:
                missing.extend(lines(cluster, job))
            except RefusedError as error:
                if error.status != FORBIDDEN:
                    raise
                unchecked.append(f"not checked before sending: {error.message}")
        return len(missing) > before

    if not found_missing(_controllers):
        found_missing(_queue)
    found_missing(_priority_class)
    if not found_missing(_namespace):
        found_missing(_local_queue, _claims, _service_account, *_secrets(job), _names)
    if missing:
        raise ClusterError(*(f"{job.name}: {line}" for line in missing))
    notes = (_waits, waits_for_room, warns_of_disks, warnings_of)
    return (*unchecked, *(line for note in notes for line in note(cluster, job)))


def _namespace(cluster: Cluster, job: JobManifests) -> Iterator[str]:
    namespace = cluster.find(NAMESPACE.path(name=job.namespace))
    if namespace is None:
        where = f" in {cluster.name}" if cluster.name else ""
        yield (
            f"namespace {job.namespace} does not exist{where}; deploy the cluster file's stacks, "
            "or choose another --context"
        )
    elif text(namespace, "status", "phase") == "Terminating":
        yield f"namespace {job.namespace} is being deleted; wait until it is gone, and make it anew"


def _controllers(cluster: Cluster, job: JobManifests) -> Iterator[str]:
    kinds = {kind_of(manifest) for manifest in job.objects}
    if job.queue is not None:
        # Pods of other Jobs may wait in queues of a scheduler too.
        kinds |= {workload.kind for workload in workloads() if workload.is_scheduled}
    remedies = {
        workload.kind: workload.missing for workload in workloads() if workload.missing
    } | _INSTALLED_BY
    for kind, remedy in remedies.items():
        if kind in kinds and cluster.find(kind.group_path) is None:
            yield f"the cluster serves no {kind.resource}, so {remedy}"
    if _follows_cpu(job) and cluster.find(_MEASURES) is None:
        yield (
            "the cluster serves no pods.metrics.k8s.io, so metrics-server is not installed; deploy "
            "the cluster file's stacks with the service in its jobs, or install EKS's add-on"
        )


def _follows_cpu(job: JobManifests) -> bool:
    """Return whether an autoscaler of Kubernetes reads the use of CPU of a job's pods."""
    scaled = (manifest for manifest in job.objects if kind_of(manifest) == SCALED_OBJECT)
    triggers = (trigger for manifest in scaled for trigger in objects(manifest, "spec", "triggers"))
    return any(text(trigger, "type") == "cpu" for trigger in triggers)


def _local_queue(cluster: Cluster, job: JobManifests) -> Iterator[str]:
    """Yield a queue of Kueue that is missing, or that admits no job.

    Source: https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/pkg/controller/core/localqueue_controller.go
    """
    if job.local_queue is None:
        return
    queue = cluster.find(LOCAL_QUEUE.path(job.namespace, job.local_queue))
    if queue is not None:
        yield from _inactive(cluster, queue)
    elif cluster.find(LOCAL_QUEUE.group_path) is None:
        yield (
            f"the cluster serves no {LOCAL_QUEUE.resource}, so Kueue is not installed; deploy the "
            "cluster file's stacks, which install it"
        )
    else:
        yield (
            f"queue {job.local_queue} does not exist in namespace {job.namespace}; deploy the "
            "cluster file's stacks, which make it; that of a team comes with its quota, which "
            "SageMaker's console shows"
        )


def _inactive(cluster: Cluster, queue: Object) -> Iterator[str]:
    """Yield why a queue of Kueue admits no job: it is stopped, or lacks a part."""
    if text(_activity(queue), "status") != "False":
        return
    stopped = text(queue, "spec", "stopPolicy") not in ("", "None")
    of_all = text(queue, "spec", "clusterQueue")
    judged = queue if stopped else _cluster_queue(cluster, of_all) or queue
    why = text(_activity(judged), "message") or "it is not active"
    yield (
        f"queue {name(queue)} admits no job ({why}); deploy the cluster "
        f"file's stacks, or see `kubectl describe clusterqueue {of_all}`"
    )


def _cluster_queue(cluster: Cluster, of_all: str) -> Object | None:
    """Return the ClusterQueue behind a queue, which names its missing part; None if hidden."""
    try:
        return cluster.find(CLUSTER_QUEUE.path(name=of_all))
    except RefusedError as error:
        if error.status != FORBIDDEN:
            raise
        return None


def _activity(queue: Object) -> Object:
    """Return the condition of a queue on whether it admits jobs; empty without one."""
    for entry in objects(queue, "status", "conditions"):
        if text(entry, "type") == "Active":
            return entry
    return {}


def _claims(cluster: Cluster, job: JobManifests) -> Iterator[str]:
    for claim in job.claims:
        existing = cluster.find(CLAIM.path(job.namespace, claim))
        if existing is None:
            yield (
                f"claim {claim} does not exist in namespace {job.namespace}; make it (a file "
                "system's comes with the cluster's stacks), or leave it out of the job's volumes"
            )
        elif text(existing, "status", "phase") == "Lost":
            yield f"claim {claim} has lost its volume; make both anew"


def _service_account(cluster: Cluster, job: JobManifests) -> Iterator[str]:
    account = job.service_account
    if account is None or cluster.find(SERVICE_ACCOUNT.path(job.namespace, account)) is not None:
        return
    if account == OUTPUT_ACCOUNT:
        yield (
            f"service account {account}, whose pods may write to the bucket of checkpoints, does "
            f"not exist in namespace {job.namespace}; deploy the cluster file's stacks again"
        )
    else:
        yield (
            f"service account {account} does not exist in namespace {job.namespace}; make it, "
            "with its Pod Identity association, or leave it out of the job"
        )


def _secrets(job: JobManifests) -> Iterator[_Check]:
    """Yield a check of each Secret: a user may be allowed to read only some."""
    yield from (partial(_secret, name=name, keys=keys) for name, keys in job.secrets.items())


def _secret(
    cluster: Cluster, job: JobManifests, *, name: str, keys: Sequence[str]
) -> Iterator[str]:
    """Yield a Secret that is missing or lacks a key: pods would wait for it on paid nodes."""
    existing = cluster.find(SECRET.path(job.namespace, name))
    if existing is None:
        literals = " ".join(f"--from-literal={key}=..." for key in keys)
        yield (
            f"secret {name} does not exist in namespace {job.namespace}; make it: "
            f"`kubectl create secret generic {name} -n {job.namespace} {literals}`"
        )
        return
    has = mapping(existing, "data")
    for key in keys:
        if key not in has:
            yield (
                f"secret {name} has no key {key}, only {', '.join(sorted(has)) or 'none'}; add it: "
                "the key is the name of the variable"
            )


def _queue(cluster: Cluster, job: JobManifests) -> Iterator[str]:
    if job.queue is None:
        return
    queue = cluster.find(QUEUE.path(name=job.queue))
    if queue is None:
        known = sorted(name(item) for item in cluster.items(QUEUE.path()))
        yield f"queue {job.queue} does not exist; {_options(known, '--queue')}"
        return
    state = text(queue, "status", "state")
    if state not in ("", "Open"):
        yield (
            f"queue {job.queue} takes no jobs, its state is {state}; choose another by --queue, "
            f"or open it (`vcctl queue operate --name {job.queue} --action open`)"
        )
    yield from _above_capability(queue, job)


def _above_capability(queue: Object, job: JobManifests) -> Iterator[str]:
    """Yield resources of which the job needs more at once than its queue may ever have."""
    capability = mapping(queue, "spec", "capability")
    for resource, needed in demand(job.objects).items():
        if resource not in capability:
            continue
        most = amount(str(capability[resource]))
        if needed > most:
            yield (
                f"the job needs {needed.normalize():f} {resource} at once, and queue {job.queue} "
                f"has {most.normalize():f}: it would wait for ever; ask for fewer --nodes, or "
                "choose another --queue"
            )


def _waits(cluster: Cluster, job: JobManifests) -> Iterator[str]:
    """Yield resources of which the job's queue has too few left for the job to start now.

    Karpenter and Cluster Autoscaler do not know queues, and launch nodes that stay idle.

    Source: https://github.com/volcano-sh/volcano/issues/4710
    """
    if job.queue is None:
        return
    try:
        queue = cluster.find(QUEUE.path(name=job.queue)) or {}
    except RefusedError as error:
        if error.status != FORBIDDEN:
            raise
        return
    most, given = mapping(queue, "spec", "capability"), mapping(queue, "status", "allocated")
    for resource, needed in demand(job.objects).items():
        left = amount(str(most.get(resource, "0"))) - amount(str(given.get(resource, "0")))
        if resource in most and needed > left:
            yield (
                f"queue {job.queue} has {max(left, Decimal()).normalize():f} {resource} left, and "
                f"the job needs {needed.normalize():f} at once: it waits for other jobs, and nodes "
                "that Karpenter or Cluster Autoscaler launch for it stand idle until then"
            )


def _priority_class(cluster: Cluster, job: JobManifests) -> Iterator[str]:
    if job.priority_class is None:
        return
    if cluster.find(PRIORITY_CLASS.path(name=job.priority_class)) is None:
        known = sorted(name(item) for item in cluster.items(PRIORITY_CLASS.path()))
        yield f"priority class {job.priority_class} does not exist; {_options(known, '--priority')}"


def _options(known: Sequence[str], option: str) -> str:
    if not known:
        return "there is none: deploy the cluster file's stacks, or choose another --context"
    return f"choose one by {option}: {', '.join(known)}"


def _names(cluster: Cluster, job: JobManifests) -> Iterator[str]:
    for manifest in job.objects:
        kind = kind_of(manifest)
        existing = cluster.find(kind.path(job.namespace, name(manifest)))
        if existing is None:
            continue
        ours = label(existing, JOB_LABEL) == job.name
        if ours and (job.kind == "service" or kind == SERVICE):
            # Kubernetes deletes an ended job after its time, and not the Service beside it.
            continue
        yield _taken_name(kind, existing, job, ours=ours)
    yield from _services(cluster, job)
    yield from _other_kinds(cluster, job)


def _services(cluster: Cluster, job: JobManifests) -> Iterator[str]:
    """Yield a Service with the name of one that a workload would create.

    The pods would get no names there.
    """
    for manifest in job.objects:
        kind = kind_of(manifest)
        if kind not in workload_kinds() or not workload_of(kind).makes_service(manifest):
            continue
        existing = cluster.find(SERVICE.path(job.namespace, name(manifest)))
        if existing is None:
            continue
        owner = cluster.find(kind.path(job.namespace, name(manifest)))
        if owner is not None and owned_by(existing, owner):
            continue  # The job itself is in the way, and has a line already.
        if _left_by_a_job(existing, kind, name(manifest)):
            gone = f"Service {name(existing)} of a deleted job is still there"
            yield f"{gone}; submit once it is gone"
            continue
        yield _taken_name(SERVICE, existing, job, ours=False)


def _left_by_a_job(service: Object, kind: Kind, job: str) -> bool:
    """Return whether a job of that name, which is gone, made a Service: it goes as well."""
    owners = objects(service, "metadata", "ownerReferences")
    return any(text(owner, "kind") == kind.kind and text(owner, "name") == job for owner in owners)


def _other_kinds(cluster: Cluster, job: JobManifests) -> Iterator[str]:
    sent = {kind_of(manifest) for manifest in job.objects}
    for kind in (INDEXED_JOB, *(kind for kind in workload_kinds() if kind != INDEXED_JOB)):
        if kind in sent:
            continue
        selector = {"labelSelector": f"{JOB_LABEL}={job.name}"}
        for existing in visible_objects(cluster, kind, job.namespace, selector)[:1]:
            yield _taken_name(kind, existing, job, ours=True)


def _taken_name(kind: Kind, existing: Object, job: JobManifests, *, ours: bool) -> str:
    phase = f" ({read_workload(kind, existing).phase})" if kind in workload_kinds() else ""
    if text(existing, "metadata", "deletionTimestamp"):
        return (
            f"{kind.kind} {name(existing)} is still being deleted; wait for its pods to stop, or "
            "submit under another --name"
        )
    if ours:
        return (
            f"{kind.kind} {name(existing)} exists already{phase}; "
            f"`ultrascale cancel {job.name} -n {job.namespace}`, or submit under another --name"
        )
    return (
        f"{kind.kind} {name(existing)} exists already{phase}, and is not of a job of this name; "
        "submit under another --name"
    )


def demand(manifests: Iterable[Object]) -> Mapping[str, Decimal]:
    """Return the resources that the gangs of jobs need at once; for an array those of one pod."""
    needs: dict[str, Decimal] = defaultdict(Decimal)
    for manifest in manifests:
        kind = kind_of(manifest)
        if kind == INDEXED_JOB:
            _add(needs, mapping(manifest, "spec", "template", "spec"), 1)
        elif kind in workload_kinds():
            for task in workload_of(kind).gang(manifest):
                _add(needs, task.template, task.pods)
    return needs


def _add(needs: dict[str, Decimal], pod: Object, count: int) -> None:
    for container in objects(pod, "containers"):
        for resource, requested in requests_of(container).items():
            needs[resource] += count * requested
