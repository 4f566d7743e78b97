"""Placement of a job by the layers of AWS's network, in its engine's terms.

Volcano counts tiers from the lowest layer up, and holds gangs to a tier. Kueue places pods by the
label of a layer, on the fixed pools of a queue with `topology`.

Sources:
    https://volcano.sh/en/docs/network_topology_aware_scheduling/
    https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling/
"""

from collections.abc import Iterator, Sequence

from ultrascale import config
from ultrascale.core.table import all_parts
from ultrascale.plan import names
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.rules import Nodes, rule
from ultrascale.plan.model import PoolPlan
from ultrascale.plan.model.jobs import TopologyPlan
from ultrascale.plan.namespaces import FEWEST_ORDERED
from ultrascale.plan.network.layers import (
    known_nodes,
    pools_with_layers,
    smallest_tier,
    topology_layers,
)

Mistakes = Iterator[config.Mistake]


def topology_of(request: JobRequest, pools: Sequence[PoolPlan]) -> TopologyPlan | None:
    """Return the topology asked for a job's nodes; None where the job asks for none.

    Args:
        request: The job.
        pools: Its possible pools.
    """
    job = request.job
    if isinstance(job, config.ServiceJob):
        return _replica_topology(request, job, pools)
    if not isinstance(job, config.TrainingJob) or job.nodes == 1 or job.topology == "any":
        return None
    if request.team is not None:
        asked = (part.topology_of(job) for part in all_parts())
        return next((plan for plan in asked if plan is not None), None)
    if request.engine.gangs:
        return request.engine.topology_of(request, pools)
    mode = "hard" if is_required(job) else "soft"
    if request.cluster_queue is None or not request.cluster_queue.topology:
        return None
    return TopologyPlan(mode=mode, level=names.network_layer_label(_layer(job, pools)))


def _replica_topology(
    request: JobRequest, job: config.ServiceJob, pools: Sequence[PoolPlan]
) -> TopologyPlan | None:
    if job.nodes == 1 or request.cluster_queue is None or not request.cluster_queue.topology:
        return None
    return TopologyPlan(mode="soft", level=names.network_layer_label(_lowest(job.nodes, pools)))


def ranks_by_labels(request: JobRequest, pools: Sequence[PoolPlan]) -> bool:
    """Return whether pods compute the order of their ranks from the labels of their nodes.

    Where Kueue places by topology it does so in the order of the pods' indexes.

    Source:
    https://github.com/kubernetes-sigs/kueue/blob/v0.20.7/pkg/controller/tas/topology_ungater.go

    Args:
        request: The job.
        pools: Its possible pools.
    """
    job, queue = request.job, request.cluster_queue
    if not isinstance(job, config.TrainingJob) or job.nodes < FEWEST_ORDERED:
        return False
    if request.backend != "static" or not request.engine.queues_jobs or job.script is None:
        return False
    by_scheduler = queue is not None and queue.topology
    asked = request.cluster.scheduling.rendezvous.ranks == "topology"
    return asked and not by_scheduler and len(pools_with_layers(pools)) == len(pools)


def is_required(job: config.TrainingJob) -> bool:
    """Return whether a job waits for nodes of one group."""
    if isinstance(job.topology, config.TopologyLayer):
        return job.topology.required is not None
    return job.topology == "required"


@rule
def closeness_is_given(request: JobRequest, pools: Nodes) -> Mistakes:
    """Yield a topology that no engine gives the job on ``pools``, or that never comes about."""
    job = request.job
    if not isinstance(job, config.TrainingJob) or job.topology in (None, "any"):
        return
    if job.nodes == 1:
        yield config.refuse("topology", "one node needs no topology", "leave it out")
        return
    for part in all_parts():
        if (mistakes := part.closeness_mistakes(request, job, pools)) is not None:
            yield from mistakes
            return
    missing = [*_engine_places(request)]
    yield from missing
    if missing:
        return
    unknown = [*_layer_is_there(request, job, pools)]
    yield from unknown
    if not unknown:
        yield from request.engine.closeness_mistakes(request, pools)


def _engine_places(request: JobRequest) -> Mistakes:
    if request.engine.quotas:
        queue = request.cluster_queue
        if queue is not None and not queue.topology:
            queues = request.queueing.queues if request.queueing is not None else ()
            placing = ", ".join(queue.name for queue in queues if queue.topology)
            wrong = f"queue {queue.name} does not place pods by the network"
            todo = (
                f"use queue {placing}" if placing else "give a queue of fixed pools topology: true"
            )
            yield config.refuse("topology", wrong, f"{todo}, or leave it out")
    elif not request.cluster.scheduling.topology_aware:
        wrong = "no engine of this cluster places pods by the network"
        todo = (
            "set scheduling.topology_aware: true with Volcano, use a queue of Kueue with "
            "topology: true, or leave it out"
        )
        yield config.refuse("topology", wrong, todo)


def _layer_is_there(
    request: JobRequest, job: config.TrainingJob, pools: Sequence[PoolPlan]
) -> Mistakes:
    """Yield a layer without labels on nodes of the job's pools, or of all of a gang scheduler."""
    layer = layer_of(job)
    among = request.pools if request.engine.gangs else pools
    known = topology_layers(among)
    if layer is not None and layer > known:
        where = "every pool" if among is request.pools else pool_names(pools)
        key = "topology.required" if is_required(job) else "topology.preferred"
        wrong = f"nodes of {where} name only layers 1 to {known}"
        yield config.refuse(key, wrong, f"use layer-{known}, the closest, or a broader one")


def _layer(job: config.TrainingJob, pools: Sequence[PoolPlan]) -> int:
    """Return the layer that a job names, or the lowest that holds it by the plan; 1 is broadest."""
    named = layer_of(job)
    if named is not None:
        return named
    return _lowest(job.nodes, pools)


def _lowest(nodes: int, pools: Sequence[PoolPlan]) -> int:
    return max(1, topology_layers(pools) - smallest_tier(nodes, known_nodes(pools)) + 1)


def layer_of(job: config.TrainingJob) -> int | None:
    """Return the layer of the network that a job names, 1 the broadest; None without."""
    if not isinstance(job.topology, config.TopologyLayer):
        return None
    named = job.topology.required or job.topology.preferred
    return None if named is None else int(named.removeprefix("layer-"))


def pool_names(pools: Sequence[PoolPlan]) -> str:
    """Return the names of pools in a sentence."""
    return ", ".join(sorted({pool.pool for pool in pools}))
