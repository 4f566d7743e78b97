"""Objects of a request's job in the cluster: created once, labelled, and deleted.

It asks for no more than a Role on the jobs' namespaces gives: `create`, `get` and `delete` of what
a job consists of. In particular it applies nothing, which would take `patch`.
"""

from collections.abc import Iterable, Iterator
from typing import Literal
from uuid import UUID

from ultrascale.cluster_api.kinds import Kind
from ultrascale.cluster_api.objects import Object, label, name
from ultrascale.cluster_api.server import NOT_FOUND, Cluster
from ultrascale.documents import JsonObject, mapping, text
from ultrascale.errors import RefusedError
from ultrascale.jobs.manifests import kind_of
from ultrascale.jobs.workloads import WORKLOADS, read_workload, together

# On every object of a request's job: the request's id.
REQUEST_LABEL = "ultrascale.dev/request"
# On every object as well: who asked for it. A name of a caller fits no label.
OWNER_ANNOTATION = "ultrascale.dev/owner"
# Refusals of what is asked for, which another attempt would meet again. Not among them: 403, which
# is also a quota's word, and 404 for a namespace or a kind that is still being deployed.
# Source: https://kubernetes.io/docs/reference/using-api/api-concepts/
_FINAL = frozenset({400, 405, 409, 413, 415, 422})
_ALREADY_EXISTS = "AlreadyExists"


class NotOursError(Exception):
    """An object of that name is there, and is not of this request."""


def job_name(request_id: UUID) -> str:
    """Return the name of a request's job: the same one for every attempt to make it."""
    return f"request-{request_id.hex}"


def labelled(objects: Iterable[Object], request_id: UUID, owner: str) -> tuple[JsonObject, ...]:
    """Return ``objects`` with what says of which request and of whom they are."""
    return tuple(_labelled(each, request_id, owner) for each in objects)


def _labelled(found: Object, request_id: UUID, owner: str) -> JsonObject:
    metadata = mapping(found, "metadata")
    labels = {**mapping(metadata, "labels"), REQUEST_LABEL: str(request_id)}
    annotations = {**mapping(metadata, "annotations"), OWNER_ANNOTATION: owner}
    return {**found, "metadata": {**metadata, "labels": labels, "annotations": annotations}}


def workloads(objects: Iterable[Object]) -> tuple[tuple[Kind, Object], ...]:
    """Return those of ``objects`` that make pods."""
    return tuple((kind_of(each), each) for each in objects if kind_of(each) in WORKLOADS)


def is_final(error: Exception) -> bool:
    """Return whether what was refused would be refused again."""
    if isinstance(error, RefusedError):
        return error.status in _FINAL and error.reason != _ALREADY_EXISTS
    return isinstance(error, NotOursError)


def make(cluster: Cluster, namespace: str, request_id: UUID, objects: Iterable[Object]) -> None:
    """Make every object that is not there yet.

    Raises:
        NotOursError: An object of that name belongs to something else.
        ClusterError: The cluster refuses or cannot be reached; `is_final` tells these apart.
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
                raise  # It went meanwhile: the next attempt makes it.
            if label(found, REQUEST_LABEL) != str(request_id):
                message = f"{kind.kind} {name(manifest)} exists, and is not of this request"
                raise NotOursError(message) from error


def take_away(
    cluster: Cluster, namespace: str, request_id: UUID, objects: Iterable[Object]
) -> None:
    """Delete what is there of a request's job; pods get their grace period.

    Raises:
        ClusterError: The cluster refuses or cannot be reached.
    """
    for kind, found in [*_present(cluster, namespace, request_id, objects)]:
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
    """Return how a request's job ended; None where it has not, or is not there.

    Raises:
        ClusterError: The cluster refuses or cannot be reached.
    """
    wanted = [each for _, each in workloads(objects)]
    present = [*_present(cluster, namespace, request_id, wanted)]
    if not present or len(present) < len(wanted):
        return None
    return together(read_workload(kind, found) for kind, found in present).result


def _present(
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
