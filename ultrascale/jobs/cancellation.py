"""Deletion of a job: exactly the objects that carry its label."""

from collections.abc import Iterator

from ultrascale.cluster_api.objects import Kind, Object, name
from ultrascale.cluster_api.server import NOT_FOUND, Cluster
from ultrascale.documents import objects, text
from ultrascale.errors import ClusterError, RefusedError
from ultrascale.frozen import Frozen
from ultrascale.jobs.listing import visible_objects
from ultrascale.jobs.manifests import sent_kinds
from ultrascale.plan.names import JOB_LABEL


class SentObject(Frozen, kw_only=False):
    """An object of a job, in the cluster."""

    kind: Kind
    manifest: Object

    def __str__(self) -> str:
        return f"{self.kind.kind} {name(self.manifest)}"


def objects_of(cluster: Cluster, namespace: str, job: str) -> tuple[SentObject, ...]:
    """Return the objects of ``job``, the workloads first.

    Claims are never among them. Objects that a controller created go with their owner.

    Raises:
        ClusterError: There is no such job.
    """
    existing = tuple(labelled(cluster, namespace, f"{JOB_LABEL}={job}"))
    if not existing:
        raise ClusterError(
            f"no job {job} in namespace {namespace}; `ultrascale status -n {namespace}` lists them"
        )
    return existing


def labelled(cluster: Cluster, namespace: str, selector: str) -> Iterator[SentObject]:
    """Yield the objects of jobs with a label that nobody owns, the workloads first."""
    for kind in sent_kinds():
        for manifest in visible_objects(cluster, kind, namespace, {"labelSelector": selector}):
            if not objects(manifest, "metadata", "ownerReferences"):
                yield SentObject(kind, manifest)


def cancel(
    cluster: Cluster, namespace: str, sent: tuple[SentObject, ...]
) -> tuple[SentObject, ...]:
    """Delete ``sent``, and return the deleted objects.

    Pods get SIGTERM and their grace period, for a last checkpoint.

    Raises:
        ClusterError: Objects cannot be deleted; one line for each.
    """
    refused: list[str] = []
    deleted: list[SentObject] = []
    for item in sent:
        if text(item.manifest, "metadata", "deletionTimestamp"):
            continue
        try:
            cluster.delete(item.kind, namespace, item.manifest)
        except RefusedError as error:
            if error.status != NOT_FOUND:
                refused.append(f"{item}: {error.message}")
        else:
            deleted.append(item)
    if refused:
        raise ClusterError(*refused)
    return tuple(deleted)
