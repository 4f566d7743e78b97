"""Volcano's queues: capacity, use, and the jobs that wait."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from ultrascale.cluster_api.kinds import POD_GROUP, PRIORITY_CLASS, QUEUE
from ultrascale.cluster_api.objects import Object, condition, label, name
from ultrascale.cluster_api.server import FORBIDDEN, NOT_FOUND, Cluster
from ultrascale.documents import mapping, number, objects, text
from ultrascale.errors import ClusterError, RefusedError
from ultrascale.plan.names import JOB_LABEL

_WAITING = ("", "Pending", "Inqueue")
# Volcano calls a job Unknown while some of its pods run and some do not.
_RUNNING = ("Running", "Unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A queue.

    Attributes:
        name: Its name.
        state: `Open` where it takes jobs.
        weight: Its share among the queues of its parent.
        capability: Its limits by resource, as Kubernetes quantities.
        allocated: Its use by resource.
        pending: Number of jobs that wait.
        running: Number of jobs that run.
    """

    name: str
    state: str
    weight: int
    capability: Mapping[str, str]
    allocated: Mapping[str, str]
    pending: int
    running: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A job that waits in a queue.

    Attributes:
        queue: Where it waits.
        job: Its name; that of its PodGroup where it was not submitted by `ultrascale`.
        namespace: Its namespace.
        priority: Value of its priority class.
        pods: Pods that must start together.
        since: When it was submitted.
        reason: Why it waits; empty where Volcano says nothing.
    """

    queue: str
    job: str
    namespace: str
    priority: int
    pods: int
    since: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Queues:
    """All queues, and the jobs that wait in them.

    Attributes:
        queues: By name.
        waiting: By queue; the highest priority first, and the oldest of those.
        namespace: The only namespace whose jobs are counted; None where all are.
    """

    queues: tuple[Queue, ...]
    waiting: tuple[Waiting, ...]
    namespace: str | None


def read_queues(cluster: Cluster, namespace: str) -> Queues:
    """Return the queues and the jobs in them.

    Args:
        cluster: Where they are.
        namespace: Namespace to count, where the user may not read all namespaces.

    Raises:
        ClusterError: Volcano is not installed, or the API server refuses or cannot be reached.
    """
    try:
        manifests = [*cluster.items(QUEUE.path())]
    except RefusedError as error:
        if error.status == NOT_FOUND:
            raise ClusterError(
                f"the cluster serves no {QUEUE.resource}: Volcano is not installed, and jobs of "
                "Kubernetes itself wait in no queue"
            ) from error
        raise
    groups, only = _groups(cluster, namespace)
    values = _priorities(cluster)
    by_queue: dict[str, list[Object]] = defaultdict(list)
    for group in groups:
        by_queue[text(group, "spec", "queue")].append(group)
    waiting = [
        _waiting(group, values) for group in groups if text(group, "status", "phase") in _WAITING
    ]
    return Queues(
        queues=tuple(
            _queue(manifest, by_queue[name(manifest)]) for manifest in sorted(manifests, key=name)
        ),
        waiting=tuple(
            sorted(waiting, key=lambda job: (job.queue, -job.priority, job.since, job.job))
        ),
        namespace=only,
    )


def _groups(cluster: Cluster, namespace: str) -> tuple[list[Object], str | None]:
    try:
        return [*cluster.items(POD_GROUP.path())], None
    except RefusedError as error:
        if error.status != FORBIDDEN:
            raise
        return [*cluster.items(POD_GROUP.path(namespace))], namespace


def _priorities(cluster: Cluster) -> Mapping[str, int]:
    try:
        classes = [*cluster.items(PRIORITY_CLASS.path())]
    except RefusedError as error:
        if error.status != FORBIDDEN:
            raise
        return {}
    values = {name(item): number(item, "value") for item in classes}
    defaults = [number(item, "value") for item in classes if item.get("globalDefault")]
    return {"": max(defaults, default=0), **values}


def _queue(manifest: Object, groups: list[Object]) -> Queue:
    phases = [text(group, "status", "phase") for group in groups]
    return Queue(
        name=name(manifest),
        state=text(manifest, "status", "state") or "Unknown",
        weight=number(manifest, "spec", "weight", default=1),
        capability=_amounts(mapping(manifest, "spec", "capability")),
        allocated=_amounts(mapping(manifest, "status", "allocated")),
        pending=sum(phase in _WAITING for phase in phases),
        running=sum(phase in _RUNNING for phase in phases),
    )


def _waiting(group: Object, values: Mapping[str, int]) -> Waiting:
    stamp = text(group, "metadata", "creationTimestamp")
    owners = objects(group, "metadata", "ownerReferences")
    owner = text(owners[0], "name") if owners else name(group)
    return Waiting(
        queue=text(group, "spec", "queue"),
        job=label(group, JOB_LABEL) or owner,
        namespace=text(group, "metadata", "namespace"),
        priority=values.get(text(group, "spec", "priorityClassName"), 0),
        pods=number(group, "spec", "minMember"),
        since=datetime.fromisoformat(stamp) if stamp else datetime.now(UTC),
        reason=text(condition(group, "Unschedulable"), "message"),
    )


def _amounts(amounts: Object) -> Mapping[str, str]:
    return {key: str(value) for key, value in amounts.items()}
