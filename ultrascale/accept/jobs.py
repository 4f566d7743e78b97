"""Jobs of an acceptance: level `storage`, and the end of everything that a run has made.

Before a job may write to a volume, a ConfigMap says so, and goes after the data: a run that was
killed at any moment can be finished later.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache, partial
from pathlib import Path
from typing import cast

from msgspec.structs import replace

from ultrascale import catalog
from ultrascale.accept.model import RUN_LABEL, Check, Cost, Level, Run
from ultrascale.cluster_api.objects import CONFIG_MAP, POD, Object
from ultrascale.cluster_api.server import CONFLICT, FORBIDDEN
from ultrascale.core.engine import engine_of
from ultrascale.documents import Json, JsonObject, mapping, text
from ultrascale.errors import (
    ClusterError,
    ConfigError,
    QuestionError,
    RefusedError,
    UltrascaleError,
)
from ultrascale.findings import Finding, State
from ultrascale.jobs import cancellation, logs, submission
from ultrascale.jobs.checked_file import JobCluster, read_cluster
from ultrascale.jobs.manifests import JobManifests
from ultrascale.jobs.preparation import prepare
from ultrascale.jobs.queues import read_queues
from ultrascale.jobs.room import pod_kinds
from ultrascale.jobs.status import JobStatus, find_job
from ultrascale.operate.clock import wait
from ultrascale.plan import names
from ultrascale.plan.jobs.nodes import whole_share
from ultrascale.plan.model import ClaimPlan, ClusterPlan, PoolPlan, QueueingPlan
from ultrascale.plan.namespaces import training_namespaces
from ultrascale.plan.volumes import mounted_claims

LEAVES = "jobs with a deadline, nodes until their provisioner takes them, accept/RUN on volumes"
SOME_STEPS = 12
"""Steps after which the job has saved twice."""

_BUILDS = {names.NVIDIA_GPU: "nvidia", names.NEURON_DEVICE: "neuron", None: "cpu"}
_DEVICES = {"nvidia": "cuda", "neuron": "neuron-xla", "cpu": "cpu"}
_FLAGS = (
    *("--model=tiny", "--batch-size=2", "--max-steps=1000000", "--warmup-steps=5"),
    *("--log-every=1", "--checkpoint-every=5"),
)
# Most minutes of a training job and of one that deletes its data: they wait for a node too.
_MINUTES, _DELETION_MINUTES = 25, 10
_EVERY, _GONE_MINUTES, _TRIES = 5.0, 5, 40
_START = re.compile(r"starts at step (\d+) of \d+ with (\d+) workers")
_STEP = re.compile(r"^progress step=(\d+)/", re.MULTILINE)
_VOLUME = re.compile(r"^volume (\S+): \d+ (?:bytes written and read|entries read)", re.MULTILINE)

Step = tuple[State, str]


def pools_of_jobs(plan: ClusterPlan) -> Sequence[PoolPlan]:
    """Return the pools with nodes for jobs, the first shard of each."""
    pools = {pool.pool: pool for pool in reversed(plan.all_pools) if pool.max_nodes}
    return [pool for pool in reversed(pools.values()) if pool.role != names.SYSTEM_ROLE]


def costs(plan: ClusterPlan, pool: PoolPlan, nodes: int, *, jobs: int) -> Sequence[Cost]:
    """Return the cost of ``jobs`` jobs, one after the other, and of the end of their data.

    Kueue ends a job a minute after its deadline. The end of the run tries to delete data again.
    """
    if _obstacle(plan, pool):
        return ()
    deletion = Cost(pool=pool.pool, nodes=1, minutes=2 * (_DELETION_MINUTES + 1))
    return Cost(pool=pool.pool, nodes=nodes, minutes=jobs * (_MINUTES + 1)), deletion


def checks(plan: ClusterPlan) -> Iterator[Check]:
    """Yield the check of each pool with nodes for jobs."""
    title = "a small job meets, writes each volume, is ended by SIGTERM, resumes and ends"
    for pool in pools_of_jobs(plan):
        nodes = min(2, pool.max_nodes)
        act, steps = partial(_job, pool, nodes), ("starts", "resumes", "ends")
        held = costs(plan, pool, nodes, jobs=2)
        yield check("storage", "job", pool.pool, title, steps, act, pool=pool.pool, held=held)


def check(
    level: Level,
    name: str,
    subject: str,
    title: str,
    steps: Sequence[str],
    act: Callable[[Run], Iterator[Step]],
    *,
    pool: str = "",
    held: Sequence[Cost] = (),
) -> Check:
    """Return a check of several steps: one that fails leaves those behind it not run.

    A mistake of the file, a question or a missing right is not run; another error has failed.
    """

    def run(run: Run) -> Iterator[Finding]:
        left = [*steps]

        def finding(state: State, evidence: str) -> Finding:
            step = f"{name}-{left.pop(0)}"
            return Finding(check=step, subject=subject, state=state, evidence=evidence)

        try:
            for state, evidence in act(run):
                yield finding(state, evidence)
        except (ConfigError, QuestionError, ClusterError) as error:
            denied = isinstance(error, RefusedError) and error.status == FORBIDDEN
            failed = isinstance(error, ClusterError) and not denied
            yield finding("failed" if failed else "not run", str(error))
        while left:
            yield finding("not run", "a step before it did not pass")

    return Check(
        level=level,
        name=name,
        subject=subject,
        title=title,
        pool=pool,
        run=run,
        costs=held,
        leaves=LEAVES if held else "",
    )


def _job(pool: PoolPlan, nodes: int, run: Run) -> Iterator[Step]:
    refuse_busy(run)
    try:
        first = Trial(run, training_job(run, pool, nodes))
    except ConfigError:
        # Without an engine, a job of several nodes would pay for the first while it waits.
        first = Trial(run, training_job(run, pool, nodes := 1))
    second = Trial(run, training_job(run, pool, nodes, "--steps-this-run=5"))
    note_data(run, pool.name)
    first.send()
    log = first.wait(lambda _, said: last_step(said) >= SOME_STEPS)
    run.kept.logs[f"storage-{pool.name}-first.log"] = log
    yield _start(run, pool, [first.log(index) for index in range(nodes)])
    first.stop()
    second.send()
    second.wait(lambda _, said: _START.search(said) is not None)
    yield resumption(second.log(), last_step(log))
    log = second.wait(lambda status, _: status.state.result == "succeeded")
    run.kept.logs[f"storage-{pool.name}-second.log"] = log
    second.stop()
    delete_data(run, pool.name)
    yield "pass", f"it ended by itself at step {last_step(log)}, and accept/{run.id} is deleted"


def refuse_busy(run: Run) -> None:
    """Refuse a job in queues with quotas that others use: it could take nodes that they borrow."""
    if engine_of(file_of(run.file).cluster.scheduling).quotas:
        queues = read_queues(run.cluster, names.TRAINING_NAMESPACE).queues
        if busy := [queue.name for queue in queues if queue.running or queue.pending]:
            why = f"queues have jobs of others, which it must not preempt: {', '.join(busy)}"
            raise QuestionError([why])


def _start(run: Run, pool: PoolPlan, said: Sequence[str]) -> Step:
    """Return whether all processes met, and each pod wrote and read each volume."""
    places = {*_folders(run.plan, pool, run.id)}
    for index, log in enumerate(said):
        if missing := places - {*_VOLUME.findall(log)}:
            raise ClusterError(f"pod {index} did not write and read {', '.join(sorted(missing))}")
    workers = [int(count) for _, count in _START.findall(said[0])]
    wanted = {len(said) * whole_share(pool, each).processes for each in pool.instance_types}
    words = f"{workers[-1]} workers on {len(said)} nodes met, of {wanted}; each wrote {places}"
    return ("pass" if workers[-1] in wanted else "differs"), words


def last_step(log: str) -> int:
    """Return the last step that a log tells; 0 before one."""
    return max(map(int, _STEP.findall(log)), default=0)


def resumption(log: str, step: int) -> Step:
    """Return whether a job, by its log, went on where it was stopped, after ``step``."""
    at = max((int(start) for start, _ in _START.findall(log)), default=0)
    if not at:
        raise ClusterError(f"it began anew, after step {step}")
    words = f"it got SIGTERM after step {step}, and went on at step {at}"
    return ("pass" if at >= step else "differs"), words


# --- The jobs -------------------------------------------------------------------------------------


@cache
def file_of(path: Path) -> JobCluster:
    """Return the cluster file of a run, read once."""
    return read_cluster(path)


def _folders(plan: ClusterPlan, pool: PoolPlan, run_id: str) -> Mapping[str, ClaimPlan]:
    """Return claims of jobs of a pool by the run's folder, or by their path if they only read."""
    zones, namespace = {*pool.zones}, names.TRAINING_NAMESPACE
    claims = mounted_claims(plan.storage.claims, namespace=namespace, zones=zones)
    own = f"/accept/{run_id}"
    return {f"{claim.mount_path}{'' if claim.read_only else own}": claim for claim in claims}


def _output(plan: ClusterPlan, pool: PoolPlan, run_id: str) -> str | None:
    """Return the place of checkpoints: a mounted bucket renames none."""
    for place, claim in _folders(plan, pool, run_id).items():
        if claim.source == "lustre" and not claim.read_only:
            return f"{place}/output"
    access = plan.storage.output_access
    return None if access is None else f"s3://{access.bucket}/accept/{run_id}/output"


def _image(plan: ClusterPlan, pool: PoolPlan) -> str | None:
    kinds = {catalog.lookup(each).architecture for each in pool.instance_types}
    for build in plan.images.builds:
        if (build.dockerfile, {build.architecture}) == (_BUILDS.get(pool.accelerator), kinds):
            return build.repository
    return None


def _obstacle(plan: ClusterPlan, pool: PoolPlan) -> str:
    """Return why no job of the program runs on a pool; empty where one may."""
    if _image(plan, pool) is None:
        kind = _BUILDS.get(pool.accelerator)
        return f"no image of images.builds, such as {{trainer: {kind}}}, has the program for them"
    place = f"writable file system, and the file no bucket {names.CHECKPOINTS_BUCKET}"
    return "" if _output(plan, pool, "") else f"its jobs have no {place}"


def training_job(
    run: Run,
    pool: PoolPlan,
    nodes: int,
    *args: str,
    queue: str | None = None,
    minutes: float = _MINUTES,
) -> JobManifests:
    """Return a job of the program on whole nodes of a pool, in the lowest priority class."""
    if why := _obstacle(run.plan, pool):
        raise QuestionError([why])
    into, queueing = file_of(run.file), run.plan.part(QueueingPlan)
    if queueing is not None and queue is None:
        fitting = (own.name for own in queueing.queues if pool.pool in own.pools)
        queue = next(fitting, None)
        into = replace(into, beside_queues=queue is None)
    classes = into.cluster.scheduling.priority_classes
    places = _folders(run.plan, pool, run.id).items()
    flags = (f"--{'read-only' if own.read_only else 'folder'}={place}" for place, own in places)
    keys: dict[str, Json] = {
        "name": f"accept-{run.id}",
        "nodes": nodes,
        "image": _image(run.plan, pool),
        "script": "ultrascale_bert.acceptance",
        "args": [*flags, *_FLAGS, f"--device={_DEVICES[_BUILDS[pool.accelerator]]}", *args],
        "output": _output(run.plan, pool, run.id),
        "restarts": {"job": 0, "workers": 0},
        **({"priority": min(classes, key=lambda name: classes[name])} if classes else {}),
        **({"queue": queue} if queue else {}),
    }
    return _prepared(run, pool, into, keys, minutes)


def small_job(run: Run, pool: PoolPlan, keys: Mapping[str, Json], minutes: float) -> JobManifests:
    """Return a job of one pod without accelerators, outside of queues with quotas."""
    into = file_of(run.file)
    if not engine_of(into.cluster.scheduling).gangs:
        into = replace(into, beside_queues=True)
    device = {names.NVIDIA_GPU: "gpu", names.NEURON_DEVICE: "neuron"}.get(pool.accelerator or "")
    resources: Json = {"cpu": "1", "memory": "2Gi", **({device: 0} if device else {})}
    small: dict[str, Json] = {"kind": "batch", "resources": resources, "retries": 0, **keys}
    return _prepared(run, pool, into, small, minutes)


def _prepared(
    run: Run, pool: PoolPlan, into: JobCluster, keys: Mapping[str, Json], minutes: float
) -> JobManifests:
    ends: dict[str, Json] = {"ttl_seconds_after_finished": 600, "deadline_hours": minutes / 60}
    stated = {"pool": pool.pool, **ends, **keys}
    job = labelled(prepare(into, stated, account=run.cluster.account), run.id)
    copied = deepcopy(job.objects)
    for pod, _ in (kind for manifest in copied for kind in pod_kinds(manifest)):
        # Volcano's jobs have no deadline of their own, and a pull that hangs holds a node.
        cast("dict[str, Json]", pod)["activeDeadlineSeconds"] = int(minutes * 60)
    return replace(job, objects=copied)


def labelled(job: JobManifests, run_id: str) -> JobManifests:
    """Return a job whose objects, and those of its checks, have the label of the run.

    Their pods have the job's name, and go with them.
    """

    def mark(manifest: JsonObject) -> JsonObject:
        own = {**mapping(manifest, "metadata", "labels"), RUN_LABEL: run_id}
        return {**manifest, "metadata": {**mapping(manifest, "metadata"), "labels": own}}

    checks = tuple(replace(each, job=labelled(each.job, run_id)) for each in job.checks)
    return replace(job, objects=tuple(map(mark, job.objects)), checks=checks)


class Trial:
    """A job of a run, from its sending until it is gone; each wait takes ``minutes`` at most."""

    def __init__(self, run: Run, job: JobManifests, minutes: float = _MINUTES) -> None:
        self.job = job
        self._run, self._cluster, self._minutes = run, run.cluster, minutes

    def send(self) -> None:
        """Send the job."""
        submission.send(self._cluster, self.job)

    def status(self) -> JobStatus | None:
        """Return its state; None where it is gone."""
        return find_job(self._cluster, self.job.namespace, self.job.name)

    def log(self, index: int = 0) -> str:
        """Return the log of a pod; empty before it has one."""
        job, choice = self.job, logs.Choice(index=index, container=self.job.container)
        try:
            lines = logs.lines(self._cluster, job.namespace, job.name, choice, follow=False)
            return "\n".join(lines)
        except ClusterError:
            return ""

    def wait(self, seen: Callable[[JobStatus, str], bool]) -> str:
        """Wait until ``seen`` holds for its state and first log, and return that log.

        Raises:
            ClusterError: The job ends before, or the time is up.
        """
        said, failed = [""], [""]

        def look() -> str:
            if (status := self.status()) is None:
                failed[0] = "is gone: it was deleted meanwhile"
                return ""
            said[0] = self.log() or said[0]
            if seen(status, said[0]):
                return ""
            state = status.state
            why = "; ".join(filter(None, (state.reason, *(pod.reason for pod in status.pods))))
            words = f"is {state.phase.lower()}: {why or 'no reason is known'}"
            if state.result is not None:
                failed[0] = f"{words} | {' | '.join(said[0].splitlines()[-5:])}"
            return "" if failed[0] else f"job {self.job.name} {words}"

        self._wait(look, self._minutes)
        if failed[0]:
            raise ClusterError(f"job {self.job.name} {failed[0]}")
        return said[0]

    def stop(self) -> None:
        """Delete the job, whose pods get SIGTERM, and wait until they are gone."""
        namespace, job = self.job.namespace, self.job.name
        if self.status() is not None:
            sent = cancellation.objects_of(self._cluster, namespace, job)
            cancellation.cancel(self._cluster, namespace, sent)
        query = {"labelSelector": f"{names.JOB_LABEL}={job}"}

        def look() -> str:
            pods = [*self._cluster.items(POD.path(namespace), query)]
            return f"{job} is deleted, {len(pods)} pods stay" if pods or self.status() else ""

        self._wait(look, _GONE_MINUTES)

    def _wait(self, look: Callable[[], str], minutes: float) -> None:
        wait(self._run.clock, look, minutes=minutes, every=_EVERY, say=self._run.say)


# --- The end of a run -----------------------------------------------------------------------------


def begin(run: Run) -> None:
    """Take the id of a run in the cluster.

    Raises:
        QuestionError: The cluster has a run of this id.
    """
    if not note_data(run):
        todo = f"`ultrascale accept FILE --clean {run.id}`"
        raise QuestionError([f"{RUN_LABEL}: the cluster has a run {run.id} already; {todo}"])


def note_data(run: Run, pool: str = "") -> bool:
    """Record that jobs of a pool may write to volumes; return whether the record is a new one."""
    manifest: Object = {
        "apiVersion": CONFIG_MAP.api_version,
        "kind": CONFIG_MAP.kind,
        "metadata": {"name": f"accept-{run.id}{pool and '-'}{pool}", "labels": {RUN_LABEL: run.id}},
        "data": {"pool": pool},
    }
    try:
        run.cluster.create(CONFIG_MAP, names.TRAINING_NAMESPACE, manifest, dry_run=False)
    except RefusedError as error:
        if error.status != CONFLICT:
            raise
        return False
    return True


def clean(run: Run) -> Sequence[str]:
    """Delete the objects of a run by their UIDs, then its data; return what is left.

    A job that deletes data costs as well: it is tried once.
    """
    left = _objects_left(run)
    for _ in range(_TRIES if left else 0):
        run.clock.sleep(_EVERY)
        if not (left := _objects_left(run)):
            break
    if left:
        return left
    try:
        # The record of the run itself, which names no pool, goes last.
        for record in sorted(_records(run), key=lambda record: not _pool_of(record)):
            if pool := _pool_of(record):
                delete_data(run, pool)
            else:
                run.cluster.delete(CONFIG_MAP, names.TRAINING_NAMESPACE, record)
    except UltrascaleError as error:
        what = f"data in accept/{run.id} of the volumes, or the record of them"
        return [f"{what}: {error}", *_objects_left(run)]
    return ()


def delete_data(run: Run, pool_name: str) -> None:
    """Delete the data that jobs of a pool wrote, and the record of them.

    Raises:
        UltrascaleError: They stay.
    """
    pool = next((pool for pool in run.plan.all_pools if pool.name == pool_name), None)
    if pool is None:
        raise QuestionError([f"the file has no pool {pool_name}"])
    job = training_job(run, pool, 1, "--delete", minutes=_DELETION_MINUTES)
    deletion = Trial(run, job, _DELETION_MINUTES)
    deletion.send()
    deletion.wait(lambda status, _: status.state.result == "succeeded")
    deletion.stop()
    for record in _records(run):
        if _pool_of(record) == pool_name:
            run.cluster.delete(CONFIG_MAP, names.TRAINING_NAMESPACE, record)


def _objects_left(run: Run) -> Sequence[str]:
    """Delete the objects of the run, and return those that were there."""
    left: list[str] = []
    try:
        for namespace in training_namespaces(file_of(run.file).cluster):
            selector = f"{RUN_LABEL}={run.id}"
            sent = tuple(cancellation.labelled(run.cluster, namespace, selector))
            left += (f"{namespace}: {item}" for item in sent)
            cancellation.cancel(run.cluster, namespace, sent)
    except ClusterError as error:
        left.append(f"not known: {error}")
    return left


def _records(run: Run) -> Sequence[Object]:
    query = {"labelSelector": f"{RUN_LABEL}={run.id}"}
    return [*run.cluster.items(CONFIG_MAP.path(names.TRAINING_NAMESPACE), query)]


def _pool_of(record: Object) -> str:
    return text(record, "data", "pool")
