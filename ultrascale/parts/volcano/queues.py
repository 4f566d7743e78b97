"""Volcano's queues: their capacity, use and waiting jobs."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from ultrascale.cluster_api.objects import (
    POD_GROUP,
    PRIORITY_CLASS,
    QUEUE,
    Object,
    condition,
    label,
    name,
)
from ultrascale.cluster_api.server import FORBIDDEN, NOT_FOUND, Cluster
from ultrascale.documents import mapping, number, objects, text
from ultrascale.errors import RefusedError
from ultrascale.jobs.queues import HeldBack, Queue, Queues, Waiting
from ultrascale.plan.names import JOB_LABEL

KIND = QUEUE
_WAITING = ("", "Pending", "Inqueue")
# Volcano calls a job Unknown while some of its pods run and some do not.
_RUNNING = ("Running", "Unknown")


def read_queues(cluster: Cluster, namespace: str) -> Queues | None:
    """Return the queues and the jobs in them; None where Volcano is not installed.

    Args:
        cluster: Their cluster.
        namespace: Namespace to count, where the user may not read all namespaces.

    Raises:
        ClusterError: The API server refuses or cannot be reached.
    """
    try:
        manifests = [*cluster.items(KIND.path())]
    except RefusedError as error:
        if error.status != NOT_FOUND:
            raise
        return None
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


def held_back(cluster: Cluster, namespace: str, jobs: Iterable[Object]) -> HeldBack:
    """Return nothing: the jobs' PodGroups, which are followed with them, have the reasons."""
    return HeldBack()


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
