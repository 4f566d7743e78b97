"""Checkpoints of a cluster's jobs: those of its templates, or of one job on each whole pool."""

from collections.abc import Callable, Iterator, Sequence

from ultrascale import config
from ultrascale.core.table import all_parts
from ultrascale.plan.jobs import checkpoints, nodes, output
from ultrascale.plan.jobs.devices import smallest_device
from ultrascale.plan.jobs.nodes import NodeShare
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.restarts import node_hours_between_failures
from ultrascale.plan.model import ClaimPlan, PoolPlan, QueueingPlan
from ultrascale.plan.model.jobs import ProgramPlan, SavesPlan

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
        return JobRequest.of_template(name, job, cluster, pools, claims=claims, queueing=queueing)

    return tuple(_templates(cluster, request)) or tuple(_whole_pools(cluster, pools, request))


def _templates(cluster: config.Cluster, request: _Request) -> Iterator[SavesPlan]:
    for name, job in cluster.jobs.items():
        if not isinstance(job, config.TrainingJob) or job.roles:
            continue
        asked = request(name, job)
        if asked.program() is None or not (pools := asked.nodes):
            continue
        share = nodes.node_share(job, pools)
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
        # Made of values that are right: pydantic need not build what would read such a job.
        job = config.TrainingJob.model_construct(pool=pool.name, nodes=most)
        # Whatever queue leads to it: the job is on all of the pool.
        share = nodes.node_share(job, shards)
        if (device := smallest_device(share, shards)) is None:
            continue
        programs = (part.largest_program(device, most) for part in all_parts())
        if (program := next(filter(None, programs), None)) is None:
            continue
        # No team has this name, in whose namespace the job would be.
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
    place = output.plan_output(request)
    return SavesPlan(
        subject=subject,
        model=program.model,
        nodes=job.nodes,
        place=output.root_of(place) if place is not None else "",
        node_hours=node_hours_between_failures(job),
        size=program.checkpoint_bytes,
        checkpoints=checkpoints.plan_checkpoints(request, job, place, program, share),
    )
