"""Notes on a job that its user reads before its nodes are paid for."""

import re
from collections.abc import Iterable, Iterator, Sequence

from ultrascale import config
from ultrascale.core.table import all_parts
from ultrascale.plan import capacity
from ultrascale.plan.jobs import nodes, output, queueing, scratch
from ultrascale.plan.jobs.controllers import JobController
from ultrascale.plan.jobs.nodes import NodeShare
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.topology import topology_of
from ultrascale.plan.model import PoolPlan

_SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh"})
# A shell becomes a single program by itself.
_SEVERAL = re.compile(r"[;&|\n]")
_HANDS_ON = re.compile(r"(?:^|[;&|\n(]|\bthen|\bdo)\s*(?:exec|trap)\s")


def notes_of(
    request: JobRequest, pools: Sequence[PoolPlan], share: NodeShare, controller: JobController
) -> Iterator[str]:
    """Yield the notes of a job, each a sentence.

    Args:
        request: The job.
        pools: Its possible pools.
        share: The share of a node for each of its pods.
        controller: The controller of its pods.
    """
    for part in all_parts():
        yield from part.job_notes(request)
    yield from _label_notes(request)
    yield from _bucket_notes(request)
    yield from scratch.notes_of(request, pools)
    yield from _init_notes(request)
    yield from _shell_notes(request.job)
    yield from queueing.notes_of_init(request)
    if isinstance(request.job, config.TrainingJob):
        for part in all_parts():
            yield from part.restart_notes(request, pools, controller)
        yield from _network_notes(request.job, pools, share)
        yield from _spot_notes(request, request.job, pools, controller)
        yield from _elastic_notes(request, request.job, controller)
        yield from _launch_notes(request, request.job, pools)
        yield from _placement_notes(request, pools)
        yield from output.notes_of(request)
    if request.role is None:
        yield from queueing.notes_of(request)


def _placement_notes(request: JobRequest, pools: Sequence[PoolPlan]) -> Iterator[str]:
    """Yield the group that a gang waits for, and the scheduler's time for it."""
    # Roles share a layer, and one note.
    asked = topology_of(request, pools) if request.role is None else None
    if asked is not None and asked.level is not None and asked.mode == "hard":
        yield (
            f"Kueue admits it once the nodes of one group ({asked.level}) have room for all of its "
            "pods, and spreads it over no other."
        )
    yield from request.engine.placement_notes(request, pools)


def _label_notes(request: JobRequest) -> Iterator[str]:
    given = {key for pool in request.pools for key in pool.labels}
    for key in request.job.node_selector:
        if key not in given and config.owner_of_domain(key.rpartition("/")[0]) is None:
            yield (
                f"No pool of the cluster file gives its nodes the label {key}: the job waits until "
                "somebody adds it to one that is there, and none is launched for it."
            )


def _bucket_notes(request: JobRequest) -> Iterator[str]:
    """Yield the mounted claims that take no file that is renamed or written twice.

    Source: https://github.com/awslabs/mountpoint-s3/blob/main/doc/SEMANTICS.md
    """
    for claim in request.mounted_claims:
        if claim.source == "bucket" and not claim.read_only:
            yield (
                f"{claim.mount_path} is a bucket ({claim.name}): files are written there once, "
                "from their start to their end, and none is renamed, so a program that saves a "
                "checkpoint under another name first fails; such a one belongs on Lustre."
            )


def _init_notes(request: JobRequest) -> Iterator[str]:
    job = request.job
    if job.init and isinstance(job, config.TrainingJob) and request.pods > 1:
        yield (
            f"init runs on each of its {request.pods:,} pods and again at each restart: what one "
            "pod alone is to prepare belongs into a batch job before it."
        )


def _shell_notes(job: config.Job) -> Iterator[str]:
    """Yield a shell that a drain stops in place of its program."""
    shell, *words = (*job.command, *job.args) or ("",)
    script = next((word for word in words if not word.startswith("-")), "")
    runs = shell.rpartition("/")[2] in _SHELLS and len(words) > 1 and words[0].endswith("c")
    if runs and _SEVERAL.search(script.strip()) and not _HANDS_ON.search(script):
        yield (
            f"Its first process is {shell}, which hands SIGTERM on to nobody: a drain kills the "
            "program without a last checkpoint or answer. Write `exec` before the last program."
        )


def _network_notes(
    job: config.TrainingJob, pools: Sequence[PoolPlan], share: NodeShare
) -> Iterator[str]:
    if job.nodes > 1 and share.accelerators and not nodes.efa_of(job, share):
        why = next((pool.without_efa for pool in pools if pool.without_efa), "none is asked for")
        yield (
            f"Pods on {_names_of(pools)} have no EFA interface ({why}): what they tell each other "
            "goes over TCP, many times slower."
        )


def _spot_notes(
    request: JobRequest,
    job: config.TrainingJob,
    pools: Sequence[PoolPlan],
    controller: JobController,
) -> Iterator[str]:
    spot = _names_of(pool for pool in pools if pool.capacity_type == "spot")
    together = job.nodes > 1 or request.role is not None
    if not job.min_nodes and spot and together and not request.restarts_alone:
        can_shrink = request.engine.queues_jobs or controller.runs_processes
        elastic = "; min_nodes lets it go on with fewer" if can_shrink else ""
        if request.role is not None:
            elastic = f"; when_lost: restart-role of {request.role} keeps the others running"
        yield f"EC2 takes Spot nodes of {spot} one by one, and the job restarts with each{elastic}."


def _elastic_notes(
    request: JobRequest, job: config.TrainingJob, controller: JobController
) -> Iterator[str]:
    if job.min_nodes is None:
        return
    if request.engine.quotas:
        yield (
            f"Kueue admits it once there is quota for all {job.nodes} nodes, and it keeps that; "
            f"once all have started, it goes on with {job.min_nodes}."
        )
    if job.script is not None and request.backend == "c10d" and not controller.runs_processes:
        yield (
            "With c10d the nodes meet at the pod of index 0: when its node is lost, the others end "
            "too and wait for a new one; rendezvous: etcd lets them go on."
        )


def _launch_notes(
    request: JobRequest, job: config.TrainingJob, pools: Sequence[PoolPlan]
) -> Iterator[str]:
    launched = any(pool.sized_by in capacity.SIZED_BY_PODS for pool in pools)
    if job.prefer and job.nodes > 1 and launched and not request.engine.queues_jobs:
        yield (
            f"Nodes of {_names_of(pools)} are launched one by one, and those that come first are "
            "paid for while the job waits for the others: nothing starts its pods together there."
        )


def _names_of(pools: Iterable[PoolPlan]) -> str:
    return " and ".join(sorted({pool.pool for pool in pools}))
