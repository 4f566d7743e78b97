"""The tiers of a job that prefers some nodes to others, and the choice among them.

A job of several pods runs on one tier as a whole: their EFA traffic cannot pass from one kind of
nodes to another, and workers of unlike speed wait for each other. A single pod is left to the
scheduler, which knows all tiers and their order.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, repeat

from msgspec.structs import replace

from ultrascale import config
from ultrascale.frozen import Frozen
from ultrascale.plan import capacity, names
from ultrascale.plan.jobs.nodes import nodes_of
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model import PoolPlan

# Far apart first: the scheduler adds its scores of a node's free room and of its images.
# Source: https://kubernetes.io/docs/reference/scheduling/config/#scheduling-plugins
_WEIGHTS = (100, 50, 10, 9, 8, 7, 6, 5, 4, 3, 2)
_LEAST_WEIGHT = 1


class Tier(Frozen):
    """One of the node types that a job prefers."""

    name: str  # Value of the label `node-type`
    pools: tuple[PoolPlan, ...]  # Its pools, or their shards

    @property
    def max_nodes(self) -> int:
        """Most nodes that it can ever have."""
        return sum(pool.max_nodes for pool in self.pools)

    @property
    def grows(self) -> bool:
        """Whether nodes are launched because pods wait for them."""
        return any(pool.sized_by in capacity.SIZED_BY_PODS for pool in self.pools)


class Occupancy(Frozen):
    """Nodes of a tier, and the free ones among them."""

    nodes: int  # Nodes of the tier
    free: int  # Ready nodes with room for a whole pod


class Choice(Frozen):
    """The chosen tier of a job."""

    tier: str  # Its name
    why: str  # Reason of the choice, as the end of a sentence


def needs_one(request: JobRequest) -> bool:
    """Return whether one tier must be chosen for a job before it is sent."""
    if request.cluster_queue is not None:
        # Kueue tries the pools of its queue in their order.
        return False
    return bool(request.job.prefer) and request.tier is None and request.pods > 1


def tiers_of(request: JobRequest) -> tuple[Tier, ...]:
    """Return the tiers of a job, best first, that can hold all of its pods.

    Where none can, these are all tiers.
    """
    every = tuple(
        Tier(name=name, pools=nodes_of(request.job, request.pools, tiers=(name,)))
        for name in request.job.prefer
    )
    large = tuple(tier for tier in every if tier.max_nodes >= request.pods)
    return large or every


def on_each_tier(request: JobRequest) -> tuple[JobRequest, ...]:
    """Return the job on each tier that may be chosen for it."""
    if not needs_one(request):
        return (request,)
    return tuple(replace(request, tier=tier.name) for tier in tiers_of(request))


def choose(tiers: Sequence[Tier], pods: int, seen: Mapping[str, Occupancy]) -> Choice:
    """Choose the tier of a job of ``pods`` whole nodes.

    It is the first with enough free nodes; else the first that can launch the missing ones; else
    the first, whose nodes the job waits for.

    Args:
        tiers: Tiers, best first.
        pods: Pods, a node each.
        seen: Nodes of each tier, by its name.
    """
    for tier in tiers:
        free = seen[tier.name].free
        if free >= pods:
            return Choice(tier=tier.name, why=f"{free} of its nodes are free, and it needs {pods}")
    counts = ", ".join(f"{tier.name} has {seen[tier.name].free}" for tier in tiers)
    nowhere = f"no tier has {pods} free nodes ({counts})"
    for tier in tiers:
        room = tier.max_nodes - seen[tier.name].nodes
        missing = pods - seen[tier.name].free
        if tier.grows and room >= missing:
            return Choice(tier=tier.name, why=f"{nowhere}, and {missing} can be launched there")
    why = f"{nowhere}, and none can launch what is missing: the job waits there"
    return Choice(tier=tiers[0].name, why=why)


def weights(tiers: Sequence[str]) -> Mapping[str, int]:
    """Return the scheduler's preference of each of ``tiers``, 1 to 100, falling."""
    return dict(zip(tiers, chain(_WEIGHTS, repeat(_LEAST_WEIGHT)), strict=False))


def lacks_queue(request: JobRequest) -> bool:
    """Return whether a job names no existing queue of Kueue: its nodes are not known then."""
    waits = request.engine.quotas and not isinstance(request.job, config.ServiceJob)
    return waits and not request.is_beside_queues and request.cluster_queue is None


def tiers_of_queue(request: JobRequest) -> tuple[str, ...]:
    """Return the node types of the pools of a job's queue of Kueue, best first.

    Without such a queue there are none.
    """
    if (queue := request.cluster_queue) is None:
        return ()
    types = {pool.pool: pool.labels[names.NODE_TYPE_LABEL] for pool in request.pools}
    return tuple(dict.fromkeys(types[name] for name in queue.pools))


def tiers_to_choose(request: JobRequest) -> tuple[str, ...]:
    """Return the node types to choose from: those that a job prefers, or its queue's."""
    job = request.job
    # Roles have pools of their own.
    if job.prefer or job.pool is not None or request.roles:
        return job.prefer
    return tiers_of_queue(request)


def tier_mistakes(request: JobRequest, tier: str | None) -> Iterator[config.Mistake]:
    """Yield the mistake in the ``tier`` that a user chose for a job."""
    known = tiers_to_choose(request)
    if tier is None or tier in known or lacks_queue(request):
        return
    if not known:
        yield config.refuse("prefer", *_why_no_tier(request), got=tier)
        return
    wrong = "a tier not in the job's prefer"
    if not request.job.prefer:
        wrong = f"a tier that queue {request.quota_queue} does not have"
    yield config.refuse("prefer", wrong, f"use {', '.join(known)}", got=tier)


def _why_no_tier(request: JobRequest) -> tuple[str, str]:
    if request.roles:
        wrong = "each role has its own pool, so a tier chooses nothing"
        return wrong, "leave --tier out, or name pool in each role"
    if request.job.pool is not None:
        return f"a tier for a job that names pool {request.job.pool}", "keep pool or --tier"
    return "a tier for a job that prefers none", "leave --tier out, or name pool"
