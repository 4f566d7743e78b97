"""Kueue's queues: quota by flavor, use, and the jobs that wait.

Sources:
    https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/apis/kueue/v1beta2/clusterqueue_types.go
    https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/apis/kueue/v1beta2/localqueue_types.go
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from ultrascale.catalog.quantities import amount
from ultrascale.cluster_api.kinds import CLUSTER_QUEUE, KUEUE_WORKLOAD, LOCAL_QUEUE
from ultrascale.cluster_api.objects import Object, condition, name
from ultrascale.cluster_api.server import FORBIDDEN, Cluster
from ultrascale.documents import mapping, number, objects, text
from ultrascale.errors import RefusedError
from ultrascale.jobs.admission import is_waiting, reason
from ultrascale.jobs.queue_state import Queue, Queues, Waiting


def kueue_queues(cluster: Cluster, namespace: str) -> Queues:
    """Return Kueue's queues and the jobs that wait in them.

    Args:
        cluster: Where they are.
        namespace: Namespace to count, where the user may not read all namespaces.

    Raises:
        ClusterError: Kueue is not installed, or the API server refuses or cannot be reached.
    """
    try:
        queues = [_queue(each) for each in cluster.items(CLUSTER_QUEUE.path())]
    except RefusedError as error:
        if error.status != FORBIDDEN:
            raise
        queues = [_queue(each) for each in cluster.items(LOCAL_QUEUE.path(namespace))]
    workloads, only = _workloads(cluster, namespace)
    waiting = [_waiting(each) for each in workloads if is_waiting(each)]
    return Queues(
        queues=tuple(sorted(queues, key=lambda queue: queue.name)),
        waiting=tuple(
            sorted(waiting, key=lambda job: (job.queue, -job.priority, job.since, job.job))
        ),
        namespace=only,
    )


def _workloads(cluster: Cluster, namespace: str) -> tuple[Sequence[Object], str | None]:
    try:
        return [*cluster.items(KUEUE_WORKLOAD.path())], None
    except RefusedError as error:
        if error.status != FORBIDDEN:
            raise
        return [*cluster.items(KUEUE_WORKLOAD.path(namespace))], namespace


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
    found = objects(manifest, "status", "conditions")
    reasons = [text(each, "reason") for each in found if text(each, "type") == "Active"]
    return reasons[0] if reasons and reasons[0] else "Unknown"


def _own_quota(manifest: Object) -> Iterator[tuple[str, str]]:
    """Yield the quota that is the queue's own, by flavor and resource."""
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


def _waiting(workload: Object) -> Waiting:
    owners: Sequence[Mapping[str, object]] = objects(workload, "metadata", "ownerReferences")
    owner = str(owners[0].get("name", "")) if owners else ""
    stamp = text(workload, "metadata", "creationTimestamp")
    sets = objects(mapping(workload, "spec"), "podSets")
    return Waiting(
        queue=text(workload, "spec", "queueName"),
        job=owner or name(workload),
        namespace=text(workload, "metadata", "namespace"),
        priority=number(workload, "spec", "priority"),
        pods=sum(number(each, "count", default=1) for each in sets),
        since=datetime.fromisoformat(stamp) if stamp else datetime.now(UTC),
        reason=reason(workload),
    )
