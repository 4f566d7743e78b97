"""Kueue's queues: quota by flavor, use, waiting jobs, and the reasons of waiting.

Sources:
    https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/apis/kueue/v1beta2/clusterqueue_types.go
    https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/apis/kueue/v1beta2/localqueue_types.go
    https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/apis/kueue/v1beta2/workload_types.go
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from ultrascale.catalog.quantities import amount
from ultrascale.cluster_api.objects import (
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    Kind,
    Object,
    condition,
    label,
    name,
    uid,
)
from ultrascale.cluster_api.server import FORBIDDEN, Cluster
from ultrascale.documents import look_up, mapping, number, objects, text
from ultrascale.errors import RefusedError
from ultrascale.jobs.queues import HeldBack, Queue, Queues, Waiting
from ultrascale.parts.kueue.facts import JOB_UID_LABEL
from ultrascale.plan.names import QUEUE_LABEL

KIND = CLUSTER_QUEUE
# Kueue makes one for each job that waits in a queue.
WORKLOAD = Kind("kueue.x-k8s.io/v1beta2", "Workload", "workloads")
_LATE = "PodsReadyTimeout"
_NONE: Object = {}


def read_queues(cluster: Cluster, namespace: str) -> Queues | None:
    """Return Kueue's queues and the jobs that wait in them; None where it is not installed.

    Args:
        cluster: Their cluster.
        namespace: Namespace to count, where the user may not read all namespaces.

    Raises:
        ClusterError: The API server refuses or cannot be reached.
    """
    if cluster.find(KIND.group_path) is None:
        return None
    try:
        queues = [_queue(queue) for queue in cluster.items(KIND.path())]
    except RefusedError as error:
        if error.status != FORBIDDEN:
            raise
        queues = [_queue(queue) for queue in cluster.items(LOCAL_QUEUE.path(namespace))]
    workloads, only = _entries(cluster, namespace)
    waiting = [_waiting(each) for each in _blocked(filter(is_waiting, workloads))]
    return Queues(
        queues=tuple(sorted(queues, key=lambda queue: queue.name)),
        waiting=tuple(
            sorted(waiting, key=lambda job: (job.queue, -job.priority, job.since, job.job))
        ),
        namespace=only,
    )


def _entries(cluster: Cluster, namespace: str) -> tuple[Sequence[Object], str | None]:
    try:
        return [*cluster.items(WORKLOAD.path())], None
    except RefusedError as error:
        if error.status != FORBIDDEN:
            raise
        return [*cluster.items(WORKLOAD.path(namespace))], namespace


def _queue(manifest: Object) -> Queue:
    state = "Active" if condition(manifest, "Active") else _inactive(manifest)
    return Queue(
        name=name(manifest),
        state=state,
        weight=int(amount(text(manifest, "spec", "fairSharing", "weight") or "1")),
        capability=dict(_own_quota(manifest)),
        allocated=dict(_used(manifest)),
        pending=number(manifest, "status", "pendingWorkloads"),
        running=number(manifest, "status", "admittedWorkloads"),
    )


def _inactive(manifest: Object) -> str:
    conditions = objects(manifest, "status", "conditions")
    reasons = [
        text(condition_, "reason")
        for condition_ in conditions
        if text(condition_, "type") == "Active"
    ]
    return reasons[0] if reasons and reasons[0] else "Unknown"


def _own_quota(manifest: Object) -> Iterator[tuple[str, str]]:
    for group in objects(manifest, "spec", "resourceGroups"):
        for flavor in objects(group, "flavors"):
            for resource in objects(flavor, "resources"):
                yield _key(flavor, resource), str(resource.get("nominalQuota", "0"))


def _used(manifest: Object) -> Iterator[tuple[str, str]]:
    for flavor in objects(manifest, "status", "flavorsReservation"):
        for resource in objects(flavor, "resources"):
            total, borrowed = resource.get("total", "0"), str(resource.get("borrowed", "0"))
            more = f" ({borrowed} borrowed)" if amount(borrowed) else ""
            yield _key(flavor, resource), f"{total}{more}"


def _key(flavor: Object, resource: Object) -> str:
    return f"{text(flavor, 'name')} {text(resource, 'name')}"


def _blocked(workloads: Iterable[Object]) -> Iterator[tuple[Object, str]]:
    """Yield each waiting Workload, and the one that keeps Kueue from looking at it; empty: none.

    Kueue tries a Workload of several kinds of pods again and again, before all behind it, and
    gives those no condition at all.

    Source: https://github.com/kubernetes-sigs/kueue/issues/3710
    """
    heads: dict[str, str] = {}
    for workload in sorted(workloads, key=_order):
        queue = text(workload, "spec", "queueName")
        unseen = not _any_status(workload, "QuotaReserved")
        yield workload, heads.get(queue, "") if unseen else ""
        if len(objects(workload, "spec", "podSets")) > 1:
            heads.setdefault(queue, _job_of(workload))


def _order(workload: Object) -> tuple[int, str]:
    stamp = text(workload, "metadata", "creationTimestamp")
    return -number(workload, "spec", "priority"), stamp


def _job_of(workload: Object) -> str:
    owners: Sequence[Mapping[str, object]] = objects(workload, "metadata", "ownerReferences")
    return str(owners[0].get("name", "")) if owners else name(workload)


def _waiting(entry: tuple[Object, str]) -> Waiting:
    workload, blocker = entry
    stamp = text(workload, "metadata", "creationTimestamp")
    sets = objects(mapping(workload, "spec"), "podSets")
    return Waiting(
        queue=text(workload, "spec", "queueName"),
        job=_job_of(workload),
        namespace=text(workload, "metadata", "namespace"),
        priority=number(workload, "spec", "priority"),
        pods=sum(number(pod_set, "count", default=1) for pod_set in sets),
        since=datetime.fromisoformat(stamp) if stamp else datetime.now(UTC),
        reason=f"{reason(workload)}: {_behind(blocker)}" if blocker else reason(workload),
    )


def _behind(blocker: str) -> str:
    return (
        f"Kueue has not looked at it, and may try {blocker}, a job of several roles, without end: "
        f"cancel {blocker}, and send it again with a pool in each role"
    )


def held_back(cluster: Cluster, namespace: str, jobs: Iterable[Object]) -> HeldBack:
    """Return why Kueue lets ``jobs`` wait.

    It knows nothing of a job in no queue, and where the user may not read Workloads.
    """
    workloads = [workload for job in jobs for workload in _workloads(cluster, namespace, job)]
    return HeldBack(
        reason="; ".join(
            dict.fromkeys(text_ for workload in workloads if (text_ := reason(workload)))
        ),
        given_up=any(_is_given_up(workload) for workload in workloads),
    )


def _workloads(cluster: Cluster, namespace: str, job: Object) -> Sequence[Object]:
    if not label(job, QUEUE_LABEL):
        return ()
    query = {"labelSelector": f"{JOB_UID_LABEL}={uid(job)}"}
    try:
        return cluster.collection(WORKLOAD, namespace, query)
    except RefusedError:
        # Its queue, and that it is suspended, are known all the same.
        return ()


def reason(workload: Object) -> str:
    """Return why Kueue lets the job of ``workload`` wait; empty where it does not."""
    if condition(workload, "Finished"):
        return ""
    if _is_given_up(workload):
        return (
            f"Kueue has given it up{_reason_of(condition(workload, 'Evicted'))}: cancel it, or "
            f"kubectl patch workloads.kueue.x-k8s.io {name(workload)} -n "
            f"{text(workload, 'metadata', 'namespace')} --type=merge "
            """-p '{"spec":{"active":true}}'"""
        )
    if condition(workload, "Admitted"):
        return _without_pods(workload)
    queue = text(workload, "spec", "queueName")
    if condition(workload, "QuotaReserved"):
        waiting = [
            text(check, "name")
            for check in objects(workload, "status", "admissionChecks")
            if text(check, "state") != "Ready"
        ]
        return f"has its quota in queue {queue}, and waits for {', '.join(waiting) or 'admission'}"
    missing = text(_any_status(workload, "QuotaReserved"), "message")
    why = f"waits in queue {queue}{f': {missing}' if missing else ''}"
    evicted = _evicted(workload)
    return f"{evicted}; {why}" if evicted else why


def is_waiting(workload: Object) -> bool:
    """Return whether a Workload stands in its queue."""
    return not (
        condition(workload, "Finished")
        or condition(workload, "QuotaReserved")
        or _is_given_up(workload)
    )


def _is_given_up(workload: Object) -> bool:
    inactive = look_up(workload, "spec", "active") is False
    return inactive and not condition(workload, "Finished")


def _without_pods(workload: Object) -> str:
    """Return since when an admitted job waits for its pods: its nodes may not come."""
    ready = _any_status(workload, "PodsReady")
    if not ready or text(ready, "status") == "True":
        return ""
    flavors = ", ".join(_flavors(workload))
    since = text(condition(workload, "Admitted"), "lastTransitionTime")
    if text(ready, "reason") == "WaitForRecovery":
        return f"runs on {flavors}, and waits for pods that it has lost"
    return (
        f"admitted on {flavors} at {since}, and its pods are not all ready: while nodes are "
        "missing, those that have come are paid for; Kueue ends that after its time limit and "
        "tries the same nodes again"
    )


def _evicted(workload: Object) -> str:
    evicted = condition(workload, "Evicted")
    if not evicted:
        return ""
    if text(evicted, "reason") != _LATE:
        preempted = condition(workload, "Preempted")
        return f"was put back{_reason_of(preempted or evicted)}"
    count = number(workload, "status", "requeueState", "count")
    again = text(workload, "status", "requeueState", "requeueAt")
    times = f" {count} times" if count > 1 else ""
    return (
        f"was put back{times}, as its pods were not all ready in time (nodes did not come, or the "
        f"program did not start){f'; tried again from {again}' if again else ''}"
    )


def _flavors(workload: Object) -> Iterable[str]:
    """Return the flavors of its pods, each once; a flavor has its pool's name."""
    assigned = objects(workload, "status", "admission", "podSetAssignments")
    return dict.fromkeys(
        str(flavor) for assignment in assigned for flavor in mapping(assignment, "flavors").values()
    )


def _reason_of(condition_: Object) -> str:
    words = ": ".join(
        part for part in (text(condition_, "reason"), text(condition_, "message")) if part
    )
    return f" ({words})" if words else ""


def _any_status(manifest: Object, kind: str) -> Object:
    conditions = objects(manifest, "status", "conditions")
    return next(
        (condition_ for condition_ in conditions if text(condition_, "type") == kind), _NONE
    )
