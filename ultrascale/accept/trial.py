"""Jobs of an acceptance: small, labelled, with a deadline of their own."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import cast

from msgspec.structs import replace

from ultrascale import catalog
from ultrascale.accept.model import RUN_LABEL, Run
from ultrascale.cluster_api.objects import POD
from ultrascale.core.engine import engine_of
from ultrascale.documents import Json, JsonObject
from ultrascale.errors import ClusterError, QuestionError
from ultrascale.jobs import cancellation, logs, submission
from ultrascale.jobs.checked_file import JobCluster, read_cluster
from ultrascale.jobs.manifests import JobManifests
from ultrascale.jobs.preparation import prepare
from ultrascale.jobs.status import JobStatus, find_job
from ultrascale.operate.clock import wait
from ultrascale.plan import names
from ultrascale.plan.model import ClaimPlan, PoolPlan
from ultrascale.plan.volumes import mounted_claims

PROGRAM = "ultrascale_bert.acceptance"
"""The job's program, in the images that a file builds."""

TRIAL_MINUTES, DELETION_MINUTES = 25, 10
"""Most minutes of a training job, and of one that deletes its data: they wait for a node too."""

_BUILDS = {names.NVIDIA_GPU: "nvidia", names.NEURON_DEVICE: "neuron", None: "cpu"}
KEPT_SECONDS = 600
"""Time for which Kubernetes keeps an ended job."""

_EVERY = 5.0
# Kubernetes deletes pods of an ended job after the grace period of ours, and of a lost node later.
_GONE_MINUTES = 5
_LAST_LINES = 5
_FOLDER = "accept"


@cache
def file_of(path: Path) -> JobCluster:
    """Return the cluster file of a run, read once."""
    return read_cluster(path)


def folders(run: Run, pool: PoolPlan) -> Mapping[str, ClaimPlan]:
    """Return the folder of the run on each volume that jobs of a pool mount."""
    claims = mounted_claims(
        run.plan.storage.claims, namespace=names.TRAINING_NAMESPACE, zones={*pool.zones}
    )
    return {
        claim.mount_path if claim.read_only else f"{claim.mount_path}/{_FOLDER}/{run.id}": claim
        for claim in claims
    }


def training_job(run: Run, pool: PoolPlan, nodes: int, *args: str, **keys: Json) -> JobManifests:
    """Return a job of the program on whole nodes of a pool.

    Args:
        run: The run.
        pool: The pool.
        nodes: Nodes of the job.
        args: Arguments of the program beside the usual ones.
        keys: Keys of the job beside the usual ones.

    Raises:
        QuestionError: The file has no image, or no volume, for it.
        ConfigError: The file refuses such a job.
    """
    into = file_of(run.file)
    places = folders(run, pool)
    outputs = [place for place, claim in places.items() if _keeps_checkpoints(claim)]
    if not outputs:
        raise QuestionError(
            [f"jobs of pool {pool.pool} have no writable file system for a checkpoint"]
        )
    classes = into.cluster.scheduling.priority_classes
    lowest = min(classes, key=lambda name: classes[name], default=None)
    flags = (
        (f"--read-only={place}" if claim.read_only else f"--folder={place}")
        for place, claim in places.items()
    )
    stated: dict[str, Json] = {
        **_stated(run, pool, into, minutes=TRIAL_MINUTES),
        "name": f"accept-{run.id}",
        "nodes": nodes,
        "script": PROGRAM,
        "args": [*flags, *_TRAINING, *args],
        "output": f"{outputs[0]}/output",
        "restarts": {"job": 0, "workers": 0},
        **({} if lowest is None else {"priority": lowest}),
        **keys,
    }
    return labelled(prepare(into, stated, account=run.cluster.account), run.id)


_TRAINING = (
    *("--model=tiny", "--batch-size=2", "--max-steps=1000000", "--warmup-steps=5"),
    *("--log-every=1", "--checkpoint-every=5"),
)


def _keeps_checkpoints(claim: ClaimPlan) -> bool:
    return claim.source == "lustre" and not claim.read_only


def deletion_job(run: Run, pool: PoolPlan) -> JobManifests:
    """Return a job that deletes the run's folders of all volumes.

    Raises:
        QuestionError: The file has no image for it.
        ConfigError: The file refuses such a job.
    """
    written = (place for place, claim in folders(run, pool).items() if not claim.read_only)
    command = ("python3", "-m", PROGRAM, "--delete", *(f"--folder={place}" for place in written))
    stated = _stated(run, pool, file_of(run.file), minutes=DELETION_MINUTES)
    return small_job(run, pool, {**stated, "name": f"clean-{run.id}", "command": [*command]})


def small_job(run: Run, pool: PoolPlan, stated: Mapping[str, Json]) -> JobManifests:
    """Return a job of one pod without accelerators, outside of queues with quotas.

    Args:
        run: The run.
        pool: Its pool.
        stated: Its keys beside the usual ones.

    Raises:
        ConfigError: The file refuses such a job.
    """
    into = file_of(run.file)
    device = {names.NVIDIA_GPU: "gpu", names.NEURON_DEVICE: "neuron"}.get(pool.accelerator or "")
    if not engine_of(into.cluster.scheduling).gangs:
        into = replace(into, beside_queues=True)
    job: dict[str, Json] = {
        "kind": "batch",
        "pool": pool.pool,
        "resources": {"cpu": "1", "memory": "2Gi", **({device: 0} if device else {})},
        "retries": 0,
        **stated,
    }
    return labelled(prepare(into, job, account=run.cluster.account), run.id)


def _stated(run: Run, pool: PoolPlan, into: JobCluster, *, minutes: int) -> dict[str, Json]:
    architectures = {catalog.lookup(name).architecture for name in pool.instance_types}
    wanted = _BUILDS.get(pool.accelerator)
    fitting = (
        build.repository
        for build in into.plan.images.builds
        if build.dockerfile == wanted and {build.architecture} == architectures
    )
    if (image := next(fitting, None)) is None:
        kinds = " and ".join(sorted(architectures))
        raise QuestionError(
            [
                f"no image of images.builds has the program for nodes of pool {pool.pool}; "
                f"{{NAME: {wanted}}} builds one for {kinds}"
            ]
        )
    return {
        "pool": pool.pool,
        "image": image,
        "deadline_hours": minutes / 60,
        "ttl_seconds_after_finished": KEPT_SECONDS,
    }


def labelled(job: JobManifests, run_id: str) -> JobManifests:
    """Return a job whose objects and pods have the label of the run."""
    marked = cast("tuple[JsonObject, ...]", tuple(_marked(each, run_id) for each in job.objects))
    checks = tuple(replace(check, job=labelled(check.job, run_id)) for check in job.checks)
    return replace(job, objects=marked, checks=checks)


def _marked(value: Json, run_id: str) -> Json:
    if isinstance(value, Mapping):
        fields = {key: _marked(child, run_id) for key, child in value.items()}
        own = fields.get("metadata")
        if isinstance(own, dict):
            given = own.get("labels")
            own["labels"] = {**(given if isinstance(given, Mapping) else {}), RUN_LABEL: run_id}
        return fields
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_marked(child, run_id) for child in value]
    return value


def scaled(job: JobManifests, pods: int) -> JobManifests:
    """Return a job of the same pods, ``pods`` of them: more than any rule of the file lets be."""

    def grown(value: Json) -> Json:
        if isinstance(value, Mapping):
            fields = {key: grown(child) for key, child in value.items()}
            counts = fields.keys() & {"parallelism", "completions"}
            return {**fields, **dict.fromkeys(counts, pods)}
        if isinstance(value, Sequence) and not isinstance(value, str):
            return [grown(child) for child in value]
        return value

    made = cast("tuple[JsonObject, ...]", tuple(grown(each) for each in job.objects))
    return replace(job, objects=made, pods=pods)


class Trial:
    """A job that was sent, until it is gone.

    Args:
        run: The run.
        job: The job.
        minutes: Most minutes until each thing that is waited for.
    """

    def __init__(self, run: Run, job: JobManifests, minutes: float = TRIAL_MINUTES) -> None:
        self._run = run
        self.job = job
        self._minutes = minutes

    def send(self) -> None:
        """Send the job.

        Raises:
            ClusterError: It is refused.
        """
        submission.send(self._run.cluster, self.job)

    def status(self) -> JobStatus:
        """Return its state.

        Raises:
            ClusterError: It is gone.
        """
        status = find_job(self._run.cluster, self.job.namespace, self.job.name)
        if status is None:
            raise ClusterError(f"job {self.job.name} is gone: it was deleted meanwhile")
        return status

    def log(self, index: int = 0) -> str:
        """Return the log of a pod; empty before it has one."""
        choice = logs.Choice(index=index, container=self.job.container)
        try:
            job = self.job
            lines = logs.lines(self._run.cluster, job.namespace, job.name, choice, follow=False)
            return "\n".join(lines)
        except ClusterError:
            return ""

    def wait(self, seen: Callable[[JobStatus, str], bool]) -> str:
        """Wait until ``seen`` holds for the job's state and its first log, and return the log.

        Raises:
            ClusterError: It ends before, or the time is up.
        """
        said: list[str] = [""]
        failed: list[str] = []

        def look() -> str:
            status = find_job(self._run.cluster, self.job.namespace, self.job.name)
            if status is None:
                failed.append("it was deleted meanwhile")
                return ""
            said[0] = self.log() or said[0]
            if seen(status, said[0]):
                return ""
            if status.state.result is not None:
                last = " | ".join(said[0].splitlines()[-_LAST_LINES:])
                why = status.state.reason or "no reason given"
                failed.append(f"{status.state.phase.lower()}: {why}; {last}")
                return ""
            reasons = dict.fromkeys(pod.reason for pod in status.pods if pod.reason)
            why = "; ".join(filter(None, (status.state.reason, *reasons)))
            return f"job {self.job.name} is {status.state.phase.lower()}: {why}".rstrip(": ")

        run = self._run
        wait(run.clock, look, minutes=self._minutes, every=_EVERY, say=run.say)
        if failed:
            raise ClusterError(f"job {self.job.name} {failed[0]}")
        return said[0]

    def stop(self) -> None:
        """Delete the job, whose pods get SIGTERM, and wait until they are gone.

        Raises:
            ClusterError: It is not deleted, or pods stay.
        """
        cluster, job = self._run.cluster, self.job
        if find_job(cluster, job.namespace, job.name) is not None:
            sent = cancellation.objects_of(cluster, job.namespace, job.name)
            cancellation.cancel(cluster, job.namespace, sent)
        query = {"labelSelector": f"{names.JOB_LABEL}={job.name}"}

        def look() -> str:
            gone = find_job(cluster, job.namespace, job.name) is None
            pods = [*cluster.items(POD.path(job.namespace), query)]
            return "" if gone and not pods else f"{job.name} is deleted, {len(pods)} pods stay"

        run = self._run
        wait(run.clock, look, minutes=_GONE_MINUTES, every=_EVERY, say=run.say)


_START = re.compile(r"starts at step (\d+) of \d+ with (\d+) workers")
_STEP = re.compile(r"^progress step=(\d+)/", re.MULTILINE)
_VOLUME = re.compile(r"^volume (\S+): \d+ (?:bytes written and read|entries read)", re.MULTILINE)


def start_in(log: str) -> tuple[int, int] | None:
    """Return the first step and the workers of the last start in a log; None before one."""
    starts = _START.findall(log)
    return (int(starts[-1][0]), int(starts[-1][1])) if starts else None


def last_step(log: str) -> int:
    """Return the last step that a log tells; 0 before one."""
    steps = _STEP.findall(log)
    return int(steps[-1]) if steps else 0


def volumes_in(log: str) -> Iterator[str]:
    """Yield the folders of volumes that a log says were written and read."""
    yield from _VOLUME.findall(log)
