"""Objects of a request's job in the cluster: created once, labelled, and deleted.

A Role in the jobs' namespaces grants the needed rights: `create`, `get` and `delete` for the kinds
of a job's objects. Objects are created, not applied, which would need the right `patch`.
"""

from collections.abc import Iterable, Iterator
from typing import Literal
from uuid import UUID

from ultrascale.cluster_api.objects import Kind, Object, label, name
from ultrascale.cluster_api.server import NOT_FOUND, Cluster
from ultrascale.documents import JsonObject, mapping, text
from ultrascale.errors import RefusedError
from ultrascale.jobs.manifests import kind_of
from ultrascale.jobs.workloads import joint_state, read_workload, workload_kinds

# Label of every object of a request's job: the request's id.
REQUEST_LABEL = "ultrascale.dev/request"
# Annotation of every object: its owner. The name of a caller would not fit a label.
OWNER_ANNOTATION = "ultrascale.dev/owner"
# Statuses that another attempt would get again; not 403, which a full quota also gives, and not
# 404, which a namespace or kind gives that is still being deployed.
# Source: https://kubernetes.io/docs/reference/using-api/api-concepts/
_FINAL = frozenset({400, 405, 409, 413, 415, 422})
_ALREADY_EXISTS = "AlreadyExists"


class NotOursError(Exception):
    """Error: an object of that name exists and belongs to another owner."""


def job_name(request_id: UUID) -> str:
    """Return the name of a request's job, which is the same for every attempt to create it."""
    return f"request-{request_id.hex}"


def labelled(objects: Iterable[Object], request_id: UUID, owner: str) -> tuple[JsonObject, ...]:
    """Label ``objects`` with their request and owner."""
    return tuple(_with_labels(each, request_id, owner) for each in objects)


def _with_labels(found: Object, request_id: UUID, owner: str) -> JsonObject:
    metadata = mapping(found, "metadata")
    labels = {**mapping(metadata, "labels"), REQUEST_LABEL: str(request_id)}
    annotations = {**mapping(metadata, "annotations"), OWNER_ANNOTATION: owner}
    return {**found, "metadata": {**metadata, "labels": labels, "annotations": annotations}}


def workloads(objects: Iterable[Object]) -> tuple[tuple[Kind, Object], ...]:
    """Return the ``objects`` that make pods, with their kinds."""
    return tuple((kind_of(each), each) for each in objects if kind_of(each) in workload_kinds())


def is_final(error: Exception) -> bool:
    """Return whether the cluster would refuse the same request again."""
    if isinstance(error, RefusedError):
        return error.status in _FINAL and error.reason != _ALREADY_EXISTS
    return isinstance(error, NotOursError)


def make(cluster: Cluster, namespace: str, request_id: UUID, objects: Iterable[Object]) -> None:
    """Create every object that does not exist yet.

    Raises:
        NotOursError: An object of that name belongs to another owner.
        ClusterError: The cluster refuses or cannot be reached; `is_final` distinguishes the two.
    """
    for manifest in objects:
        kind = kind_of(manifest)
        try:
            cluster.create(kind, namespace, manifest, dry_run=False)
        except RefusedError as error:
            if error.reason != _ALREADY_EXISTS:
                raise
            found = cluster.find(kind.path(namespace, name(manifest)))
            if found is None:
                raise  # The object was deleted meanwhile: the next attempt creates it.
            if label(found, REQUEST_LABEL) != str(request_id):
                message = f"{kind.kind} {name(manifest)} exists, and is not of this request"
                raise NotOursError(message) from error


def take_away(
    cluster: Cluster, namespace: str, request_id: UUID, objects: Iterable[Object]
) -> None:
    """Delete the objects of a request's job; its pods get their grace period.

    Raises:
        ClusterError: The cluster refuses or cannot be reached.
    """
    for kind, found in [*_existing_objects(cluster, namespace, request_id, objects)]:
        if text(found, "metadata", "deletionTimestamp"):
            continue
        try:
            cluster.delete(kind, namespace, found)
        except RefusedError as error:
            if error.status != NOT_FOUND:
                raise


def result_of(
    cluster: Cluster, namespace: str, request_id: UUID, objects: Iterable[Object]
) -> Literal["succeeded", "failed"] | None:
    """Return the result of a request's job; None if the job still runs or does not exist.

    Raises:
        ClusterError: The cluster refuses or cannot be reached.
    """
    wanted = [each for _, each in workloads(objects)]
    present = [*_existing_objects(cluster, namespace, request_id, wanted)]
    if not present or len(present) < len(wanted):
        return None
    return joint_state(read_workload(kind, found) for kind, found in present).result


def _existing_objects(
    cluster: Cluster, namespace: str, request_id: UUID, objects: Iterable[Object]
) -> Iterator[tuple[Kind, JsonObject]]:
    for manifest in objects:
        kind = kind_of(manifest)
        try:
            found = cluster.find(kind.path(namespace, name(manifest)))
        except RefusedError as error:
            if error.status != NOT_FOUND:
                raise
            continue
        if found is not None and label(found, REQUEST_LABEL) == str(request_id):
            yield kind, found
