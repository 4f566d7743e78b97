"""Submission of a job's objects: all of them or none."""

import time
from collections.abc import Callable

from ultrascale.cluster_api.objects import (
    DEPLOYMENT,
    HTTP_ROUTE,
    LEADER_WORKER_SET,
    NETWORK_POLICY,
    SCALED_OBJECT,
    SERVICE,
    Kind,
    Object,
    name,
)
from ultrascale.cluster_api.server import FIELD_MANAGER, Cluster, Query
from ultrascale.core.table import all_parts
from ultrascale.documents import mapping, number, objects, text
from ultrascale.errors import ClusterError, RefusedError
from ultrascale.jobs import prerequisites
from ultrascale.jobs.listing import visible_objects
from ultrascale.jobs.manifests import JobManifests, kind_of
from ultrascale.plan.names import JOB_LABEL

_Sent = tuple[Kind, Object]

# Objects that only some services have; the autoscaler goes first.
_AT_WILL = (SCALED_OBJECT, HTTP_ROUTE, NETWORK_POLICY)
# Field managers of the replicas of a service with an autoscaler: Kubernetes' own, and KEDA at its
# bounds.
_AUTOSCALERS = ("kube-controller-manager", "keda")
_GONE_SECONDS = 60


def send(
    cluster: Cluster, job: JobManifests, report: Callable[[str], None] = lambda _: None
) -> tuple[str, ...]:
    """Send the objects of ``job`` once its checks have passed, and return notes for the user.

    The objects of a service are applied, so that sending it again updates it. All others are
    created, and refused where one of its name exists. Every object is first sent as a dry run,
    through schemas and webhooks, so that a refusal leaves nothing behind.

    Args:
        cluster: The cluster.
        job: The job.
        report: Is called with what the checks may cost, and with what they do or find.

    Raises:
        ClusterError: A check fails, or something is missing or refused, one line for each; nothing
            was made, or what was made is deleted again. The message says which.
    """
    passed: list[str] = []
    if job.checks:
        # A job that would be refused costs no check.
        check(cluster, job)
        gates = (part.module("gate") for part in all_parts() if part.has_gate)
        passed += (note for gate in gates for note in gate.pass_checks(cluster, job, report))
    unchecked = check(cluster, job)
    create(cluster, job)
    return (*passed, *unchecked)


def check(cluster: Cluster, job: JobManifests) -> tuple[str, ...]:
    """Return notes for the user, each a sentence, on a job that could be sent. Nothing is kept.

    Raises:
        ClusterError: Something is missing or refused, one line for each.
    """
    unchecked = prerequisites.check(cluster, job)
    _rehearse(cluster, job)
    return unchecked


def create(cluster: Cluster, job: JobManifests) -> None:
    """Make the objects of ``job``, all of them or none.

    Raises:
        ClusterError: One of them is refused. The made ones are deleted again; the message says so.
    """
    made: list[_Sent] = []
    updated: list[_Sent] = []
    if job.kind == "service":
        _take_away(cluster, job)
    for kind, manifest in ((kind_of(manifest), manifest) for manifest in job.objects):
        path = kind.path(job.namespace, name(manifest))
        new = not _is_applied(job, kind) or cluster.find(path) is None
        try:
            (made if new else updated).append((kind, _write(cluster, job, kind, manifest)))
        except (ClusterError, KeyboardInterrupt) as error:
            if new and not isinstance(error, RefusedError):
                made += _created_unanswered(cluster, job, kind, manifest)
            lines = _undo(cluster, job, made, updated)
            if isinstance(error, KeyboardInterrupt):
                raise
            raise ClusterError(f"{job.name}: {error}", *lines) from error


def _take_away(cluster: Cluster, job: JobManifests) -> None:
    """Delete the former objects that a service no longer has: its autoscaler, route and policy.

    Raises:
        ClusterError: Its autoscaler stays, and would change the replicas again.
    """
    sent = {kind_of(manifest) for manifest in job.objects}
    for kind in (kind for kind in _AT_WILL if kind not in sent):
        for left in visible_objects(cluster, kind, job.namespace, _job_query(job)):
            cluster.delete(kind, job.namespace, left)
            if kind == SCALED_OBJECT:
                _wait_until_gone(cluster, job, kind, left)


def _job_query(job: JobManifests) -> Query:
    return {"labelSelector": f"{JOB_LABEL}={job.name}"}


def _wait_until_gone(cluster: Cluster, job: JobManifests, kind: Kind, left: Object) -> None:
    for _ in range(_GONE_SECONDS):
        if cluster.find(kind.path(job.namespace, name(left))) is None:
            return
        time.sleep(1)
    raise ClusterError(
        f"{job.name}: {kind.kind} {name(left)} is still being deleted, which KEDA does; look at "
        "`kubectl get pods -n keda`, and submit again once it is gone"
    )


def _rehearse(cluster: Cluster, job: JobManifests) -> None:
    """Let the API server judge every object without keeping any."""
    refusals: list[str] = []
    for manifest in job.objects:
        try:
            _write(cluster, job, kind_of(manifest), manifest, dry_run=True)
        except ClusterError as error:
            refusals.append(f"{job.name}: {error}")
    if refusals:
        raise ClusterError(*dict.fromkeys(refusals), "nothing was sent")


def _write(
    cluster: Cluster, job: JobManifests, kind: Kind, manifest: Object, *, dry_run: bool = False
) -> Object:
    if not _is_applied(job, kind):
        return cluster.create(kind, job.namespace, manifest, dry_run=dry_run)
    if kind not in (DEPLOYMENT, LEADER_WORKER_SET):
        return cluster.apply(kind, job.namespace, manifest, dry_run=dry_run)
    existing = cluster.find(kind.path(job.namespace, name(manifest)))
    if "replicas" not in mapping(manifest, "spec"):
        manifest = _with_replicas(job, manifest, existing)
    elif existing is not None and _sets_replicas(existing, *_AUTOSCALERS):
        # A user who may not see the autoscaler cannot delete it, and it would set them again.
        cluster.collection(SCALED_OBJECT, job.namespace, _job_query(job))
        # Every other field of another manager is still refused.
        kept = _replicas_patch(manifest, number(existing, "spec", "replicas", default=1))
        cluster.apply(kind, job.namespace, kept, dry_run=True)
        return cluster.apply(kind, job.namespace, manifest, dry_run=dry_run, force=True)
    return cluster.apply(kind, job.namespace, manifest, dry_run=dry_run)


def _with_replicas(job: JobManifests, manifest: Object, existing: Object | None) -> Object:
    """Return the manifest with the replicas to begin with, where an autoscaler sets them.

    An existing service keeps its replicas. As long as they are of our own last writing, a manifest
    without them would set them to 1.

    Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/#transferring-ownership
    """
    if existing is None:
        scaled = next(manifest for manifest in job.objects if kind_of(manifest) == SCALED_OBJECT)
        return _replicas_patch(manifest, number(scaled, "spec", "minReplicaCount"))
    if _sets_replicas(existing, FIELD_MANAGER):
        return _replicas_patch(manifest, number(existing, "spec", "replicas", default=1))
    return manifest


def _replicas_patch(manifest: Object, replicas: int) -> Object:
    return {**manifest, "spec": {**mapping(manifest, "spec"), "replicas": replicas}}


def _sets_replicas(existing: Object, *managers: str) -> bool:
    return any(
        text(entry, "manager") in managers and "f:replicas" in mapping(entry, "fieldsV1", "f:spec")
        for entry in objects(existing, "metadata", "managedFields")
    )


def _is_applied(job: JobManifests, kind: Kind) -> bool:
    """Return whether an object of that name may exist, and is brought up to date.

    An ended job may have left the Service behind at which its pods met.
    """
    return job.kind == "service" or kind == SERVICE


def _created_unanswered(
    cluster: Cluster, job: JobManifests, kind: Kind, manifest: Object
) -> list[_Sent]:
    """Return the object that was created although the server did not answer."""
    try:
        existing = cluster.find(kind.path(job.namespace, name(manifest)))
    except ClusterError:
        # It cannot be deleted either, and is named as left.
        return [(kind, manifest)]
    return [(kind, existing)] if existing else []


def _undo(
    cluster: Cluster, job: JobManifests, made: list[_Sent], updated: list[_Sent]
) -> list[str]:
    """Delete the made objects, and return the outcome for everything that was sent."""
    deleted, left = _delete(cluster, job, made)
    lines = [f"deleted again: {', '.join(deleted)}"] if deleted else []
    if left:
        lines.append(
            f"could not be deleted: {', '.join(left)}; "
            f"`ultrascale cancel {job.name} -n {job.namespace}`"
        )
    if updated:
        names = ", ".join(f"{kind.kind} {name(manifest)}" for kind, manifest in updated)
        lines.append(f"updated before: {names}; submit again to complete it")
    return lines or ["nothing was made"]


def _delete(cluster: Cluster, job: JobManifests, made: list[_Sent]) -> tuple[list[str], list[str]]:
    """Delete the created objects, and return a line for the deleted and one for the rest."""
    deleted: list[str] = []
    left: list[str] = []
    for kind, manifest in reversed(made):
        about = f"{kind.kind} {name(manifest)}"
        try:
            cluster.delete(kind, job.namespace, manifest)
        except ClusterError as error:
            left.append(f"{about} ({error})")
        else:
            deleted.append(about)
    return deleted, left
