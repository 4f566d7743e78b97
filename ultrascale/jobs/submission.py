"""Sends a job to the cluster: all of it or nothing."""

from ultrascale.errors import ClusterError, RefusedError
from ultrascale.jobs import preflight
from ultrascale.jobs.cluster import Cluster
from ultrascale.jobs.fields import Object, name
from ultrascale.jobs.kinds import Kind, kind_of
from ultrascale.jobs.manifests import JobManifests


def send(cluster: Cluster, job: JobManifests) -> tuple[str, ...]:
    """Send the objects of ``job``, and return what could not be checked before, each a sentence.

    A service is applied, so that sending it again updates it. All else is created, and refused
    where an object of its name exists. Every object is first sent as a dry run, through schemas and
    webhooks, so that a refusal leaves nothing behind.

    Raises:
        ClusterError: Something is missing or refused, one line for each; nothing was made, or
            what was made is deleted again. The message says which.
    """
    unchecked = preflight.check(cluster, job)
    sent = [(kind_of(each), each) for each in job.objects]
    _rehearse(cluster, job, sent)
    made: list[tuple[Kind, Object]] = []
    for kind, manifest in sent:
        try:
            answer = _write(cluster, job, kind, manifest, dry_run=False)
        except ClusterError as error:
            made += _made_unseen(cluster, job, kind, manifest, error)
            raise _taken_back(cluster, job, made, error) from error
        except KeyboardInterrupt:
            _delete(cluster, job, made)
            raise
        if job.kind != "service":
            made.append((kind, answer))
    return unchecked


def _rehearse(cluster: Cluster, job: JobManifests, sent: list[tuple[Kind, Object]]) -> None:
    """Let the API server judge every object without keeping any."""
    refusals: list[str] = []
    for kind, manifest in sent:
        try:
            _write(cluster, job, kind, manifest, dry_run=True)
        except ClusterError as error:
            refusals.append(f"{job.name}: {error}")
    if refusals:
        raise ClusterError(*dict.fromkeys(refusals), "nothing was sent")


def _write(
    cluster: Cluster, job: JobManifests, kind: Kind, manifest: Object, *, dry_run: bool
) -> Object:
    if job.kind == "service":
        return cluster.apply(kind, job.namespace, manifest, dry_run=dry_run)
    return cluster.create(kind, job.namespace, manifest, dry_run=dry_run)


def _made_unseen(
    cluster: Cluster, job: JobManifests, kind: Kind, manifest: Object, cause: ClusterError
) -> list[tuple[Kind, Object]]:
    """Return the object whose creation was not answered, where it was created all the same."""
    if isinstance(cause, RefusedError) or job.kind == "service":
        return []
    try:
        found = cluster.find(kind.path(job.namespace, name(manifest)))
    except ClusterError:
        # It is named as left, where it cannot be deleted either.
        return [(kind, manifest)]
    return [(kind, found)] if found else []


def _taken_back(
    cluster: Cluster, job: JobManifests, made: list[tuple[Kind, Object]], cause: ClusterError
) -> ClusterError:
    lines = [f"{job.name}: {cause}"]
    if job.kind == "service":
        return ClusterError(*lines, "what was applied before it stays; submit again to complete it")
    if made:
        deleted, left = _delete(cluster, job, made)
        if deleted:
            lines.append(f"deleted again: {', '.join(deleted)}")
        if left:
            lines.append(
                f"could not be deleted: {', '.join(left)}; "
                f"`ultrascale cancel {job.name} -n {job.namespace}`"
            )
    else:
        lines.append("nothing was made")
    return ClusterError(*lines)


def _delete(
    cluster: Cluster, job: JobManifests, made: list[tuple[Kind, Object]]
) -> tuple[list[str], list[str]]:
    """Delete what was made, and return what is deleted and what is left."""
    deleted: list[str] = []
    left: list[str] = []
    for kind, found in reversed(made):
        about = f"{kind.kind} {name(found)}"
        try:
            cluster.delete(kind, job.namespace, found)
        except ClusterError as error:
            left.append(f"{about} ({error})")
        else:
            deleted.append(about)
    return deleted, left
