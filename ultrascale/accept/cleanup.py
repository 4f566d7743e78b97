"""The end of what an acceptance made: objects by their label, and data by a record of them.

Before a job may write to a volume, a ConfigMap says so; it goes last, after the data. So a run that
was killed at any moment can be finished later.
"""

from collections.abc import Iterator, Sequence

from ultrascale.accept import trial
from ultrascale.accept.model import RUN_LABEL, Run
from ultrascale.cluster_api.objects import POD, Kind, Object, name
from ultrascale.cluster_api.server import CONFLICT, NOT_FOUND
from ultrascale.documents import objects, text
from ultrascale.errors import ClusterError, QuestionError, RefusedError, UltrascaleError
from ultrascale.jobs.listing import visible_objects
from ultrascale.jobs.manifests import sent_kinds
from ultrascale.plan import names
from ultrascale.plan.model import PoolPlan
from ultrascale.plan.namespaces import training_namespaces

CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")

_TRIES = 40
_PAUSE = 5.0


def begin(run: Run) -> None:
    """Take the id of a run in the cluster.

    Raises:
        QuestionError: The cluster has a run of this id.
        ClusterError: The server refuses, or cannot be reached.
    """
    if not _create(run, f"accept-{run.id}"):
        todo = f"`ultrascale accept FILE --clean {run.id}`"
        raise QuestionError([f"{RUN_LABEL}: the cluster has a run {run.id} already; {todo}"])


def note_data(run: Run, pool: PoolPlan) -> None:
    """Record that jobs of a pool may write to volumes.

    Raises:
        ClusterError: The server refuses, or cannot be reached.
    """
    _create(run, _record_of(run, pool.name), pool=pool.name)


def _record_of(run: Run, pool_name: str) -> str:
    return f"accept-{run.id}-{pool_name}"


def _create(run: Run, record: str, **data: str) -> bool:
    """Make a record; return whether it is a new one."""
    manifest: Object = {
        "apiVersion": CONFIG_MAP.api_version,
        "kind": CONFIG_MAP.kind,
        "metadata": {
            "name": record,
            "namespace": names.TRAINING_NAMESPACE,
            "labels": {RUN_LABEL: run.id},
        },
        "data": data,
    }
    try:
        run.cluster.create(CONFIG_MAP, names.TRAINING_NAMESPACE, manifest, dry_run=False)
    except RefusedError as error:
        if error.status != CONFLICT:
            raise
        return False
    return True


def clean(run: Run) -> Sequence[str]:
    """Delete what the run has made, and return what is left of it.

    Objects go first, by their UIDs; then, once no pod writes any more, the data, which are tried
    once: a job that deletes them costs as well.
    """
    namespaces = training_namespaces(trial.file_of(run.file).cluster)
    if left := _objects_left(run, namespaces):
        return left
    try:
        records = [*_of_kind(run, namespaces, CONFIG_MAP)]
        # That of the run itself, which names no pool, goes last.
        for namespace, record in sorted(records, key=lambda item: not _pool_in(item[1])):
            if not (pool := _pool_in(record)):
                _delete(run, CONFIG_MAP, namespace, record)
            elif left := delete_data(run, pool):
                return (*left, *_objects_left(run, namespaces))
        return [f"ConfigMap {name(left)}" for _, left in _of_kind(run, namespaces, CONFIG_MAP)]
    except ClusterError as error:
        return (f"not known: {error}",)


def delete_data(run: Run, pool_name: str) -> Sequence[str]:
    """Delete the data that jobs of a pool wrote; return why they stay, nothing once they are gone.

    Their record goes with them.
    """
    where = f"data in accept/{run.id} of the volumes"
    pool = next((pool for pool in run.plan.all_pools if pool.name == pool_name), None)
    if pool is None:
        return (f"{where}: the file has no pool {pool_name}",)
    try:
        deletion = trial.Trial(run, trial.deletion_job(run, pool), trial.DELETION_MINUTES)
        deletion.send()
        deletion.wait(lambda status, _: status.state.result == "succeeded")
        deletion.stop()
        place = CONFIG_MAP.path(names.TRAINING_NAMESPACE, _record_of(run, pool_name))
        if (record := run.cluster.find(place)) is not None:
            _delete(run, CONFIG_MAP, names.TRAINING_NAMESPACE, record)
    except UltrascaleError as error:
        return (f"{where}: {error}",)
    return ()


def _objects_left(run: Run, namespaces: Sequence[str]) -> Sequence[str]:
    """Delete the objects of the run, and return those that stay."""
    left: Sequence[str] = ()
    for number in range(_TRIES):
        if number:
            run.clock.sleep(_PAUSE)
        try:
            left = [*_swept(run, namespaces)]
        except ClusterError as error:
            left = [f"not known: {error}"]
        if not left:
            break
    return left


def _swept(run: Run, namespaces: Sequence[str]) -> Iterator[str]:
    """Delete the objects of the run that may be deleted, and yield all that were there."""
    for kind in (*sent_kinds(), POD):
        for namespace, manifest in _of_kind(run, namespaces, kind):
            # Others delete the rest: a controller, or the garbage collector after their owner.
            if not objects(manifest, "metadata", "ownerReferences"):
                _delete(run, kind, namespace, manifest)
            yield f"{kind.kind} {namespace}/{name(manifest)}"


def _of_kind(run: Run, namespaces: Sequence[str], kind: Kind) -> Iterator[tuple[str, Object]]:
    query = {"labelSelector": f"{RUN_LABEL}={run.id}"}
    for namespace in namespaces:
        for manifest in visible_objects(run.cluster, kind, namespace, query):
            yield namespace, manifest


def _pool_in(record: Object) -> str:
    return text(record, "data", "pool")


def _delete(run: Run, kind: Kind, namespace: str, manifest: Object) -> None:
    if text(manifest, "metadata", "deletionTimestamp"):
        return
    try:
        run.cluster.delete(kind, namespace, manifest)
    except RefusedError as error:
        # It is gone, and another may have its name: the next look shows which are of the run.
        if error.status not in (NOT_FOUND, CONFLICT):
            raise
