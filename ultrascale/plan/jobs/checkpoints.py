"""Time that checkpoints of a job take, and the interval at which they cost least.

Source: https://doi.org/10.1016/j.future.2004.11.016 (J. T. Daly, "A higher order estimate of the
optimum checkpoint interval for restart dumps"; its first term is Young's of 1974)
"""

import math
from collections.abc import Callable, Collection, Iterator, Sequence

from ultrascale import config
from ultrascale.catalog import checkpoint_bandwidth as rates
from ultrascale.catalog.checkpoint_bandwidth import HELD_SECONDS_PER_GB
from ultrascale.core.table import all_parts
from ultrascale.plan.jobs.devices import smallest_device
from ultrascale.plan.jobs.nodes import NodeShare, node_share
from ultrascale.plan.jobs.output import PROGRAMS, plan_output, root_of
from ultrascale.plan.jobs.pods import SHUTDOWN_SHARE, shutdown_seconds
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.restarts import node_hours_between_failures
from ultrascale.plan.model import ClaimPlan, PoolPlan, QueueingPlan
from ultrascale.plan.model.jobs import (
    BandwidthPlan,
    CheckpointPlan,
    OutputPlan,
    ProgramPlan,
    SavesPlan,
)
from ultrascale.plan.retention import OBJECT_VERSION_DAYS

_HOUR, _DAY = 3600.0, 86_400.0
LONGEST_SECONDS = _HOUR / 2
"""Longest interval: a node that seldom fails would lose hours when it does."""
# A job that fails less often has no interval that anybody would notice.
_RARE_SECONDS = 30 * _DAY


def interval_seconds(*, held_seconds: float, seconds_between_failures: float) -> float:
    """Return the seconds of training between two checkpoints at which least time is lost.

    Args:
        held_seconds: Time for which a checkpoint keeps training waiting.
        seconds_between_failures: Mean time between two failures of the whole job.
    """
    if held_seconds >= 2 * seconds_between_failures:
        return seconds_between_failures
    ratio = held_seconds / (2 * seconds_between_failures)
    young = math.sqrt(2 * held_seconds * seconds_between_failures)
    return young * (1 + math.sqrt(ratio) / 3 + ratio / 9) - held_seconds


def lost_share(
    *, interval: float, held_seconds: float, save_seconds: float, seconds_between_failures: float
) -> float:
    """Return the share of time that checkpoints and repeated steps take, at most 1.

    A failure repeats half a cycle on average, and the steps during an incomplete write. Times of
    restarts do not count.
    """
    saving = held_seconds / (interval + held_seconds)
    repeated = (interval + held_seconds) / 2 + save_seconds - held_seconds
    return min(1.0, saving + repeated / seconds_between_failures)


def too_small_file_system(request: JobRequest, program: ProgramPlan) -> Iterator[config.Mistake]:
    """Yield a file system that is smaller than the checkpoints that a run keeps on it."""
    lustre = _file_system_of(request, plan_output(request.with_program(program)))
    if not program.kept or lustre is None or lustre.capacity_gib is None:
        return
    # One more is written before the oldest goes.
    needed, held = (program.kept + 1) * program.checkpoint_bytes, lustre.capacity_gib * 2**30
    if needed > held:
        wrong = (
            f"{lustre.name} holds {held / 1e9:,.0f} GB, and {program.kept} checkpoints of "
            f"{program.checkpoint_bytes / 1e9:,.0f} GB stay beside the one being written"
        )
        todo = "enlarge it, keep fewer, or write to a bucket"
        yield config.refuse("volumes", wrong, todo, got="")


def plan_checkpoints(
    request: JobRequest,
    job: config.TrainingJob,
    output: OutputPlan | None,
    program: ProgramPlan | None,
    share: NodeShare,
) -> CheckpointPlan | None:
    """Return the checkpoints of a job; None where nothing says how large or how fast they are.

    Args:
        request: The job.
        job: Its keys.
        output: Place of its output.
        program: The program that a part gives it; None without.
        share: What each pod may have of a node; each process writes its own part.
    """
    if program is None or output is None or not program.checkpoint_bytes:
        return None
    size, processes = program.checkpoint_bytes, job.processes_per_node or share.processes
    rate = bandwidth_of(request, output, nodes=job.nodes, processes=processes, size=size)
    if rate is None:
        return None
    return checkpoints_of(
        size,
        rate,
        copied=program.copied_bytes,
        nodes=job.nodes,
        node_hours=node_hours_between_failures(job),
    )


def checkpoints_of(
    size: int, rate: BandwidthPlan, *, copied: int | None, nodes: int, node_hours: float
) -> CheckpointPlan:
    """Return the time of a checkpoint, and the interval at which the job loses least.

    Args:
        size: Bytes of a checkpoint.
        rate: Bandwidth of its place.
        copied: Bytes that a process copies while training waits; None if it waits for the write.
        nodes: Nodes of the job.
        node_hours: Node-hours between two failures of a node.
    """
    save = size / rate.gb_per_second / 1e9
    held = save if copied is None else min(save, copied / 1e9 * HELD_SECONDS_PER_GB)
    between = node_hours / nodes * _HOUR
    best = interval_seconds(held_seconds=held, seconds_between_failures=between)
    # A checkpoint waits until the write of the one before has ended.
    interval = max(min(best, LONGEST_SECONDS), save)
    return CheckpointPlan(
        size=size,
        bandwidth=rate,
        copied=copied,
        save_seconds=save,
        held_seconds=held,
        seconds_between_failures=between,
        interval_seconds=interval,
        lost_share=lost_share(
            interval=interval,
            held_seconds=held,
            save_seconds=save,
            seconds_between_failures=between,
        ),
    )


def bandwidth_of(
    request: JobRequest, output: OutputPlan, *, nodes: int, processes: int, size: int
) -> BandwidthPlan | None:
    """Return the bandwidth of a place for a job's nodes; None where no source states it.

    Args:
        request: The job.
        output: The place.
        nodes: Nodes.
        processes: Processes of a node.
        size: Bytes of a checkpoint.
    """
    if output.source == "s3":
        return bucket_bandwidth(nodes=nodes, processes=processes, size=size)
    lustre = _file_system_of(request, output)
    return None if lustre is None else lustre_bandwidth(lustre, nodes=nodes)


def _file_system_of(request: JobRequest, output: OutputPlan | None) -> config.Lustre | None:
    """Return the file system of the cluster file that holds an output; None for another place."""
    if output is None or output.source != "lustre":
        return None
    claimed = next((claim for claim in request.mounted_claims if claim.name == output.claim), None)
    name = None if claimed is None else claimed.file_system
    return next((item for item in request.cluster.storage.lustre if item.name == name), None)


def with_interval(
    job: config.TrainingJob, program: ProgramPlan | None, plan: CheckpointPlan | None
) -> config.TrainingJob:
    """Return a job whose program saves at the interval of ``plan``, unless its arguments say when.

    Args:
        job: The job, with the arguments of its program.
        program: The program that a part gives it; None without.
        plan: Its checkpoints; None where their time is not known.
    """
    if program is None or plan is None or not program.step_seconds:
        return job
    if any(word.partition("=")[0] == program.interval_option for word in job.args):
        return job
    nearest = round(plan.interval_seconds / program.step_seconds)
    # A checkpoint waits until the write of the one before has ended.
    written = math.ceil(plan.save_seconds / program.step_seconds)
    steps = max(1, min(program.steps, max(nearest, written)))
    return job.model_copy(update={"args": (f"{program.interval_option}={steps}", *job.args)})


def notes_of(
    plan: CheckpointPlan | None,
    job: config.TrainingJob,
    output: OutputPlan | None,
    *,
    existing_buckets: Collection[str] = (),
) -> Iterator[str]:
    """Yield the cost and best interval of a job's checkpoints, and whether a last one succeeds.

    Args:
        plan: Its checkpoints.
        job: The job.
        output: Place of its output.
        existing_buckets: Buckets that the stacks do not make, by their names in the cluster file.
    """
    if plan is None:
        return
    nodes = job.nodes
    rare = plan.seconds_between_failures > _RARE_SECONDS
    fleet = "its node fails" if nodes == 1 else f"one of its {nodes:,} nodes fails"
    often = "less than once a month" if rare else f"every {span(plan.seconds_between_failures)}"
    hours = plan.seconds_between_failures * nodes / _HOUR
    share = f"{plan.lost_share:.1%} of the time is lost"
    if plan.lost_share >= 1:
        share = "the job fails sooner than it has saved: take fewer nodes"
    rate = f"{plan.bandwidth.gb_per_second:,.1f} GB/s = {plan.bandwidth.formula}"
    held = "all of it" if plan.copied is None else f"at most {span(plan.held_seconds)} of it"
    yield (
        f"A checkpoint of {plan.size / 1e9:,.0f} GB takes at least {span(plan.save_seconds)} "
        f"({rate}); training waits for {held}. With a failure each {hours:,.0f} node-hours {fleet} "
        f"{often}: with one checkpoint each {span(plan.interval_seconds)} {share}."
    )
    bucket = output.bucket if output is not None and output.source == "s3" else None
    deleted = _DAY / plan.interval_seconds * plan.size / 1e12
    if bucket in existing_buckets:
        yield (
            f"Each checkpoint replaces one: up to {deleted:,.1f} TB a day at that interval are "
            f"deleted from {bucket}, whose owner decides how long it keeps and pays for them."
        )
    elif bucket is not None:
        yield (
            f"Its bucket keeps what is deleted for {OBJECT_VERSION_DAYS} days, and each checkpoint "
            f"replaces one: up to {OBJECT_VERSION_DAYS * deleted:,.0f} TB at that interval are "
            "paid for beside those that the program keeps."
        )
    given = shutdown_seconds(job)
    if job.script in PROGRAMS and plan.save_seconds > given:
        enough = math.ceil(plan.save_seconds / SHUTDOWN_SHARE)
        yield (
            f"A last checkpoint after SIGTERM does not succeed: its processes have {given} s for "
            "it, so that a drain loses the steps since the one before. Write "
            f"grace_period_seconds: {enough} or more; EC2 gives Spot nodes 120 at most."
        )


def span(seconds: float) -> str:
    """Return a time in the unit that suits its size."""
    if seconds < 100:
        return f"{seconds:.0f} s" if seconds >= 1 else "1 s"
    if seconds < 2 * _HOUR:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / _HOUR:.1f} h" if seconds < 2 * _DAY else f"{seconds / _DAY:.1f} days"


_BITS, _MB_PER_GB, _GIB_PER_TIB = 8, 1000, 1024
_NODE = rates.NODE_GBPS / _BITS


def bucket_bandwidth(*, nodes: int, processes: int, size: int) -> BandwidthPlan:
    """Return the bandwidth of a bucket: that of nodes, processes and one prefix.

    Args:
        nodes: Nodes.
        processes: Processes of a node, each of which writes its own objects.
        size: Bytes of a checkpoint.
    """
    process = rates.S3_GBPS_PER_PROCESS / _BITS
    sent = nodes * min(processes * process, _NODE)
    # A process with less than one part sends it in one request.
    part = min(rates.S3_PART_BYTES, size / (nodes * processes))
    taken = rates.S3_WRITES_PER_SECOND * part / 1e9
    return BandwidthPlan(
        gb_per_second=min(sent, taken),
        formula=(
            f"min({_count(nodes)} * min({processes} processes * {process:g} GB/s, {_NODE:g} GB/s), "
            f"{rates.S3_WRITES_PER_SECOND:,} requests/s of a prefix * {part / 1e6:.1f} MB)"
        ),
        sources=(rates.CONNECTOR_SOURCE, rates.NODE_SOURCE, rates.S3_RATE_SOURCE),
    )


def lustre_bandwidth(lustre: config.Lustre, *, nodes: int) -> BandwidthPlan | None:
    """Return the bandwidth of a file system: that of its size and tier, and of the nodes' TCP.

    None for an existing one, whose size and tier the cluster file does not state.

    Args:
        lustre: The file system.
        nodes: Nodes.
    """
    tier, gib = lustre.throughput_mbps_per_tib, lustre.capacity_gib
    if tier is None or gib is None:
        return None
    tib = gib / _GIB_PER_TIB
    return BandwidthPlan(
        gb_per_second=min(tib * tier / _MB_PER_GB, nodes * _NODE),
        formula=(
            f"min({tib:.1f} TiB * {tier} MB/s of {lustre.name}, {_count(nodes)} * {_NODE:g} GB/s)"
        ),
        sources=(rates.LUSTRE_SOURCE,),
    )


def _count(nodes: int) -> str:
    return "1 node" if nodes == 1 else f"{nodes:,} nodes"


# --- Checkpoints of templates, or of one job on each whole pool -----------------------------------


_Request = Callable[[str, config.TrainingJob], JobRequest]


def plan_saves(
    cluster: config.Cluster,
    pools: Sequence[PoolPlan],
    *,
    claims: Sequence[ClaimPlan],
    queueing: QueueingPlan | None,
) -> tuple[SavesPlan, ...]:
    """Return the checkpoints of templates whose program a part gives.

    A file without such templates does not say what its pools train. For each pool it is then one
    job on all nodes, with the largest model that a part's program trains there, if one does.

    Args:
        cluster: The cluster file.
        pools: Plans of all pools.
        claims: Claims that the file makes.
        queueing: Queues with quotas; None where the engine has none.

    Raises:
        CatalogError: No source states a value of an instance type.
    """

    def request(name: str, job: config.TrainingJob) -> JobRequest:
        return JobRequest.for_template(name, job, cluster, pools, claims=claims, queueing=queueing)

    return tuple(_templates(cluster, request)) or tuple(_whole_pools(cluster, pools, request))


def _templates(cluster: config.Cluster, request: _Request) -> Iterator[SavesPlan]:
    for name, job in cluster.jobs.items():
        if not isinstance(job, config.TrainingJob) or job.roles:
            continue
        asked = request(name, job)
        if asked.program() is None or not (pools := asked.nodes):
            continue
        share = node_share(job, pools)
        program = asked.program(share)
        if program is None or not program.checkpoint_bytes:
            continue
        yield _saves(asked.with_program(program), job, program, share, subject=f"job {name}")


def _whole_pools(
    cluster: config.Cluster, pools: Sequence[PoolPlan], request: _Request
) -> Iterator[SavesPlan]:
    for pool in cluster.pools:
        shards = [shard for shard in pools if shard.pool == pool.name]
        most = sum(shard.max_nodes for shard in shards)
        if pool.role == "system" or not most or all(not shard.accelerator for shard in shards):
            continue
        # Built from valid values: pydantic need not build the schema of such a job.
        job = config.TrainingJob.model_construct(pool=pool.name, nodes=most)
        # The job is on all of the pool, by whatever queue.
        share = node_share(job, shards)
        if (device := smallest_device(share, shards)) is None:
            continue
        programs = (part.largest_program(device, most) for part in all_parts())
        if (program := next(filter(None, programs), None)) is None:
            continue
        # No team has this name, or the job would be in the team's namespace.
        asked = request(f"all-of-{pool.name}", job).with_program(program)
        yield _saves(asked, job, program, share, subject=f"all of {pool.name}")


def _saves(
    request: JobRequest,
    job: config.TrainingJob,
    program: ProgramPlan,
    share: NodeShare,
    *,
    subject: str,
) -> SavesPlan:
    place = plan_output(request)
    return SavesPlan(
        subject=subject,
        model=program.model,
        nodes=job.nodes,
        place=root_of(place) if place is not None else "",
        node_hours=node_hours_between_failures(job),
        size=program.checkpoint_bytes,
        checkpoints=plan_checkpoints(request, job, place, program, share),
    )
