"""Submission of a job's objects: all of them or none."""

from ultrascale.cluster_api.kinds import SCALED_OBJECT, SERVICE, Kind
from ultrascale.cluster_api.objects import Object, name
from ultrascale.cluster_api.server import FIELD_MANAGER, Cluster
from ultrascale.documents import mapping, number, objects, text
from ultrascale.errors import ClusterError, RefusedError
from ultrascale.jobs import prerequisites
from ultrascale.jobs.manifests import JobManifests, kind_of
from ultrascale.plan.names import JOB_LABEL

_Sent = tuple[Kind, Object]


def send(cluster: Cluster, job: JobManifests) -> tuple[str, ...]:
    """Send the objects of ``job``, and return notes for the user, each a sentence.

    The objects of a service are applied, so that sending it again updates it. All others are
    created, and refused where one of its name exists. Every object is first sent as a dry run,
    through schemas and webhooks, so that a refusal leaves nothing behind.

    Raises:
        ClusterError: Something is missing or refused, one line for each; nothing was made, or
            what was made is deleted again. The message says which.
    """
    unchecked = check(cluster, job)
    create(cluster, job)
    return unchecked


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
        ClusterError: One of them is refused. What was made is deleted again; the message says so.
    """
    made: list[_Sent] = []
    updated: list[_Sent] = []
    if job.kind == "service":
        _stop_scaling(cluster, job)
    for kind, manifest in ((kind_of(each), each) for each in job.objects):
        path = kind.path(job.namespace, name(manifest))
        new = not _is_applied(job, kind) or cluster.find(path) is None
        try:
            (made if new else updated).append((kind, _write(cluster, job, kind, manifest)))
        except (ClusterError, KeyboardInterrupt) as error:
            if new and not isinstance(error, RefusedError):
                made += _made_unanswered(cluster, job, kind, manifest)
            lines = _taken_back(cluster, job, made, updated)
            if isinstance(error, KeyboardInterrupt):
                raise
            raise ClusterError(f"{job.name}: {error}", *lines) from error


def _stop_scaling(cluster: Cluster, job: JobManifests) -> None:
    """Delete the autoscaler of a service that has a fixed number of replicas by now."""
    if any(kind_of(each) == SCALED_OBJECT for each in job.objects):
        return
    wanted = {"labelSelector": f"{JOB_LABEL}={job.name}"}
    for left in cluster.collection(SCALED_OBJECT, job.namespace, wanted):
        cluster.delete(SCALED_OBJECT, job.namespace, left)


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
    if _is_applied(job, kind):
        manifest = _with_replicas(cluster, job, kind, manifest)
        return cluster.apply(kind, job.namespace, manifest, dry_run=dry_run)
    return cluster.create(kind, job.namespace, manifest, dry_run=dry_run)


def _with_replicas(cluster: Cluster, job: JobManifests, kind: Kind, manifest: Object) -> Object:
    """Return the manifest with the replicas to begin with, where an autoscaler sets them.

    A service that is there keeps those it has. As long as they are of our own last writing, a
    manifest without them would set them to 1.

    Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/#transferring-ownership
    """
    scaled = [each for each in job.objects if kind_of(each) == SCALED_OBJECT]
    target = next(
        (each for each in scaled if text(each, "spec", "scaleTargetRef", "kind") == kind.kind), None
    )
    if target is None:
        return manifest
    existing = cluster.find(kind.path(job.namespace, name(manifest)))
    if existing is None:
        replicas = number(target, "spec", "minReplicaCount")
    elif _owns_replicas(existing):
        replicas = number(existing, "spec", "replicas", default=1)
    else:
        return manifest
    return {**manifest, "spec": {**mapping(manifest, "spec"), "replicas": replicas}}


def _owns_replicas(existing: Object) -> bool:
    return any(
        text(entry, "manager") == FIELD_MANAGER
        and "f:replicas" in mapping(entry, "fieldsV1", "f:spec")
        for entry in objects(existing, "metadata", "managedFields")
    )


def _is_applied(job: JobManifests, kind: Kind) -> bool:
    """Return whether one of that name may be there, and is brought up to date.

    A job that has ended may have left the Service behind at which its pods met.
    """
    return job.kind == "service" or kind == SERVICE


def _made_unanswered(
    cluster: Cluster, job: JobManifests, kind: Kind, manifest: Object
) -> list[_Sent]:
    """Return the object that was created although the server did not answer."""
    try:
        existing = cluster.find(kind.path(job.namespace, name(manifest)))
    except ClusterError:
        # It cannot be deleted either, and is named as left.
        return [(kind, manifest)]
    return [(kind, existing)] if existing else []


def _taken_back(
    cluster: Cluster, job: JobManifests, made: list[_Sent], updated: list[_Sent]
) -> list[str]:
    """Delete what was made, and return what became of everything that was sent."""
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
