"""Checkpoints of a cluster's jobs: those of its templates, or of one job on each whole pool."""

from collections.abc import Callable, Iterator, Sequence

from ultrascale import config
from ultrascale.catalog import recipes
from ultrascale.catalog.recipes import Recipe
from ultrascale.plan.jobs import checkpoints, nodes, output
from ultrascale.plan.jobs.recipes import applied, plan_recipe, smallest_device
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.restarts import node_hours_between_failures
from ultrascale.plan.model import ClaimPlan, PoolPlan, QueueingPlan
from ultrascale.plan.model.jobs import SavesPlan
from ultrascale.plan.recipes import memory
from ultrascale.plan.recipes.devices import Device

_Request = Callable[[str, config.TrainingJob], JobRequest]

_PRE_TRAINED = sorted(
    (each for each in recipes.RECIPES.values() if each.purpose == "pre-train"),
    key=lambda each: each.model.parameters,
    reverse=True,
)


def plan_saves(
    cluster: config.Cluster,
    pools: Sequence[PoolPlan],
    *,
    claims: Sequence[ClaimPlan],
    queueing: QueueingPlan | None,
) -> tuple[SavesPlan, ...]:
    """Return the checkpoints of templates with a recipe.

    A file without such templates does not say what its pools train. For each pool it is then one
    job on all nodes, with the largest model that a recipe pre-trains there, if one does.

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

    found = tuple(_templates(cluster, request))
    return found or tuple(_whole_pools(cluster, pools, request))


def _templates(cluster: config.Cluster, request: _Request) -> Iterator[SavesPlan]:
    for name, job in cluster.jobs.items():
        if not isinstance(job, config.TrainingJob) or job.recipe is None or job.roles:
            continue
        asked = request(name, job)
        pools = asked.nodes
        if not pools:
            continue
        share = nodes.node_share(job, pools)
        recipe = plan_recipe(asked, share, pools)
        if recipe is None or not recipe.checkpoint_bytes:
            continue
        asked = applied(asked, share, pools)
        yield _saves(
            asked,
            job,
            subject=f"job {name}",
            model=recipe.model,
            size=recipe.checkpoint_bytes,
            copied=checkpoints.copied_bytes(recipe),
            processes=job.processes_per_node or share.processes,
        )


def _whole_pools(
    cluster: config.Cluster, pools: Sequence[PoolPlan], request: _Request
) -> Iterator[SavesPlan]:
    for pool in cluster.pools:
        shards = [each for each in pools if each.pool == pool.name]
        most = sum(each.max_nodes for each in shards)
        if pool.role == "system" or not most or all(not each.accelerator for each in shards):
            continue
        # Made of values that are right: pydantic need not build what would read such a job.
        job = config.TrainingJob.model_construct(pool=pool.name, nodes=most, script=recipes.PROGRAM)
        # Whatever queue leads to it: the job is on all of the pool.
        share = nodes.node_share(job, shards)
        device = smallest_device(share, shards)
        largest = _largest(device, most)
        if device is None or largest is None:
            continue
        size = memory.checkpoint_bytes(largest.model, largest.purpose)
        # No team has this name, in whose namespace the job would be.
        asked = request(f"all-of-{pool.name}", job)
        yield _saves(
            asked,
            job,
            subject=f"all of {pool.name}",
            model=largest.model.name,
            size=size,
            copied=None if device.is_neuron else size // (most * share.processes),
            processes=share.processes,
        )


def _largest(device: Device | None, count: int) -> Recipe | None:
    """Return the recipe with the largest model whose states ``count`` nodes hold; None without."""
    if device is None:
        return None
    held = count * device.count * device.memory_bytes
    fitting = (
        each
        for each in _PRE_TRAINED
        if device.name in each.layouts and memory.TRAINED_BYTES * each.model.parameters <= held
    )
    return next(fitting, None)


def _saves(
    request: JobRequest,
    job: config.TrainingJob,
    *,
    subject: str,
    model: str,
    size: int,
    copied: int | None,
    processes: int,
) -> SavesPlan:
    place = output.plan_output(request)
    return SavesPlan(
        subject=subject,
        model=model,
        nodes=job.nodes,
        place=output.root_of(place) if place is not None else "",
        node_hours=node_hours_between_failures(job),
        size=size,
        checkpoints=checkpoints.plan_checkpoints(
            request, place, size=size, copied=copied, processes=processes
        ),
    )
