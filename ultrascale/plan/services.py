"""Services of a cluster: their replicas, and the replicas' nodes."""

import math
from collections.abc import Iterator, Mapping, Sequence

from ultrascale import config
from ultrascale.catalog import quantities
from ultrascale.plan.jobs import nodes
from ultrascale.plan.jobs.nodes import NodeShare
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.service import startup_seconds
from ultrascale.plan.model import (
    ClaimPlan,
    ClusterPlan,
    NodePart,
    PoolPlan,
    QueueingPlan,
    ServiceDemandPlan,
)
from ultrascale.plan.rules import rule


def plan_services(
    cluster: config.Cluster,
    pools: Sequence[PoolPlan],
    *,
    claims: Sequence[ClaimPlan],
    queueing: QueueingPlan | None,
    ignores_preferences: bool,
) -> tuple[ServiceDemandPlan, ...]:
    """Return the services of a cluster file, in its order.

    A service without a possible pool is left out.

    Args:
        cluster: The cluster file.
        pools: Plans of all pools.
        claims: Claims that the file makes.
        queueing: Queues with quotas; None where the engine has none.
        ignores_preferences: Whether Karpenter launches nodes without regard to the zones that
            pods prefer.

    Raises:
        CatalogError: No source states a value of an instance type.
    """
    zones = {pool.pool: _zones(pool, ignores_preferences) for pool in pools}
    return tuple(_services(cluster, pools, claims, queueing, zones))


def _zones(pool: PoolPlan, ignores_preferences: bool) -> int:
    """Return how many zones get nodes of their own for pods that one node would hold."""
    # Karpenter places pods that wait together as if a preferred spread had to be kept, and drops it
    # for a pod that gets no node otherwise. Nothing else launches nodes for a preference.
    # Source: https://karpenter.sh/docs/reference/settings/ (PREFERENCE_POLICY)
    keeps = pool.sized_by == "provisioner" and (pool.is_auto_mode or not ignores_preferences)
    return min(len(pool.zones), pool.max_nodes) if keeps else 1


@rule(severity="warning")
def services_share_their_pool(
    cluster: config.Cluster, plan: ClusterPlan
) -> Iterator[config.Mistake]:
    """Yield the pools whose accelerators are too few for all of their services together.

    A service with several possible pools, or in a queue, does not count.

    Raises:
        CatalogError: No source states a value of an instance type.
    """
    for number, pool in enumerate(cluster.pools):
        shards = [shard for shard in plan.all_pools if shard.pool == pool.name]
        counted = (
            (service, _accelerators_on(service, cluster, shards)) for service in plan.services
        )
        taken = [(service, devices) for service, devices in counted if devices > 0]
        if len(taken) < 2:
            continue
        there = sum(shard.max_nodes * _most_accelerators(shard) for shard in shards)
        fewest = sum(service.least * devices for service, devices in taken)
        most = sum(service.most * devices for service, devices in taken)
        names = " and ".join(service.name for service, _ in taken)
        if fewest > there:
            wrong = f"services {names} take {fewest:,} accelerators, of the pool's {there:,}: "
            wrong += "replicas wait for ever"
            todo = "raise nodes.max, or lower replicas or autoscale.min"
        elif most > there:
            wrong = f"services {names} grow to {most:,} accelerators, of the pool's {there:,}: "
            wrong += "replicas wait where all are at their most"
            todo = "raise nodes.max, or lower replicas or autoscale.max"
        else:
            continue
        yield config.refuse(f"pools.{number}.nodes", wrong, todo, got="")


def _accelerators_on(
    service: ServiceDemandPlan, cluster: config.Cluster, shards: Sequence[PoolPlan]
) -> int:
    """Return the accelerators of a replica that runs on this pool alone; 0 of another."""
    job = cluster.jobs[service.name]
    assert isinstance(job, config.ServiceJob)
    if job.queue is not None or {part.pool for part in service.parts} != {shards[0].pool}:
        return 0
    return nodes.node_share(job, shards).accelerators * service.nodes


def _most_accelerators(pool: PoolPlan) -> int:
    return max(nodes.whole_share(pool, name).accelerators for name in pool.instance_types)


def _services(
    cluster: config.Cluster,
    pools: Sequence[PoolPlan],
    claims: Sequence[ClaimPlan],
    queueing: QueueingPlan | None,
    zones: Mapping[str, int],
) -> Iterator[ServiceDemandPlan]:
    for name, job in cluster.jobs.items():
        if not isinstance(job, config.ServiceJob):
            continue
        request = JobRequest.for_template(
            name, job, cluster, pools, claims=claims, queueing=queueing
        )
        own = request.nodes
        share = nodes.node_share(job, own) if own else None
        # Nodes whose add-ons leave no room are a mistake of the job, which its rules name.
        if share is not None and share.millicpu > 0 and share.memory_mib > 0:
            model = request.model(share)
            yield ServiceDemandPlan(
                name=name,
                namespace=request.namespace,
                server=config.server_of(job),
                startup_seconds=startup_seconds(job, share, model),
                least=job.least_replicas,
                most=job.most_replicas,
                nodes=job.nodes,
                tokens_per_second=job.tokens_per_second,
                parts=tuple(_parts(job, share, own, zones)),
                model=model,
            )


def _parts(
    job: config.ServiceJob,
    share: NodeShare,
    pools: Sequence[PoolPlan],
    zones: Mapping[str, int],
) -> Iterator[NodePart]:
    """Yield a pod's part of a node of each type, each pool and type once."""
    requests = nodes.requests_of(job, share)
    millicpu = quantities.millicpu(requests["cpu"])
    memory = quantities.mib(requests["memory"])
    for pool in {pool.pool: pool for pool in pools}.values():
        for name in nodes.types_of(job, pool):
            whole = nodes.whole_share(pool, name)
            if whole.accelerators < share.accelerators:
                continue
            yield NodePart(
                pool=pool.pool,
                instance_type=name,
                share=_share(whole, share, millicpu, memory),
                pods=_pods(whole, share, millicpu, memory),
                zones=zones[pool.pool],
            )


def _share(whole: NodeShare, share: NodeShare, millicpu: int, memory_mib: int) -> float:
    """Return the largest part of any resource that a pod takes: no other pod gets the rest."""
    parts = [millicpu / whole.millicpu, memory_mib / whole.memory_mib]
    if share.accelerators:
        # A pod may ask for all CPUs of a node beside few of its accelerators, and for more than a
        # smaller type has, on which it never lands.
        parts.append(share.accelerators / whole.accelerators)
    return min(max(parts), 1)


def _pods(whole: NodeShare, share: NodeShare, millicpu: int, memory_mib: int) -> int:
    fitting = [whole.millicpu / max(millicpu, 1), whole.memory_mib / max(memory_mib, 1)]
    if share.accelerators:
        fitting.append(whole.accelerators / share.accelerators)
    return max(math.floor(min(fitting)), 1)
