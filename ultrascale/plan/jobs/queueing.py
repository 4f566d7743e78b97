"""Jobs in queues of Kueue: pools that they may have, room in the queue, and what a try costs.

Kueue gives each kind of pods of a job nodes of one flavor, the first of the queue's order that has
quota. It knows no free nodes: those of a pool that grows are launched after it has admitted the
job.

Sources:
    https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/pkg/scheduler/flavorassigner/flavorassigner.go
    https://kueue.sigs.k8s.io/docs/tasks/manage/setup_wait_for_pods_ready/
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from ultrascale import catalog, config
from ultrascale.catalog.price_list import catalog_prices
from ultrascale.catalog.quantities import amount
from ultrascale.plan import capacity
from ultrascale.plan.jobs import tiers
from ultrascale.plan.jobs.nodes import NodeShare, efa_of
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model import ClusterQueuePlan, FlavorPlan, KueuePlan, PoolPlan
from ultrascale.plan.needs.pools import is_capped, price_as_bought
from ultrascale.plan.queueing import quota_of

Mistakes = Iterator[config.Mistake]

_MINUTE, _HOUR = 60, 3600


def mistakes_of(request: JobRequest) -> Mistakes:
    """Yield what a job says of its nodes that its queue does not give it."""
    queue, job = request.cluster_queue, request.job
    if queue is None:
        return
    if request.namespace not in queue.namespaces:
        wrong = "a namespace of services, of which no queue takes jobs"
        todo = f"use {' or '.join(queue.namespaces)}"
        yield config.refuse("namespace", wrong, todo)
    if job.pool is not None and job.pool not in queue.pools:
        wrong = f"not a pool of queue {queue.name}, which has {', '.join(queue.pools)}"
        todo = f"choose one of them, or add it to prefer of scheduling.queues[{queue.name}]"
        yield config.refuse("pool", wrong, todo)
    known = tiers.tiers_of_queue(request)
    for tier in job.prefer:
        if tier not in known:
            wrong = f"not a node type of queue {queue.name}, which has {', '.join(known)}"
            yield config.refuse("prefer", wrong, "leave it out, or use another queue", got=tier)
    own = [tier for tier in known if tier in job.prefer]
    if own != [tier for tier in job.prefer if tier in known]:
        wrong = f"another order than that of queue {queue.name}, by which Kueue tries its pools"
        todo = f"write prefer: [{', '.join(own)}], or use a queue of that order"
        yield config.refuse("prefer", wrong, todo)


def mistakes_on(
    request: JobRequest,
    pools: Sequence[PoolPlan],
    share: NodeShare,
    requests: Mapping[str, str],
) -> Mistakes:
    """Yield pools of a queue that no job suits together, and pods that it can never admit.

    Args:
        request: The job.
        pools: Pools that its pods may run on.
        share: What each of them may have of a node.
        requests: What each of them requests.
    """
    if request.kueue is None:
        return
    if isinstance(request.job, config.ServiceJob):
        yield from _beside_queues(request, request.kueue, pools, requests)
    if (queue := request.cluster_queue) is None:
        return
    yield from _unlike(request, queue, pools, share)
    yield from _beyond(request.kueue, queue, pools, requests, request.admitted_pods)


def _beside_queues(
    request: JobRequest,
    kueue: KueuePlan,
    pools: Sequence[PoolPlan],
    requests: Mapping[str, str],
) -> Mistakes:
    """Yield a service whose pods are refused, or take nodes that queues count.

    A service would hold quota for good, so it is in no queue.
    """
    gated = sorted({*kueue.gated_resources} & requests.keys())
    if gated and request.namespace in kueue.namespaces:
        wrong = f"a service that asks for {gated[0]} in namespace {request.namespace}, whose "
        wrong += "accelerators go to jobs of queues alone"
        todo = "give services a namespace of their own, such as one in which a claim is"
        yield config.refuse("namespace", wrong, todo, got="")
    counted = {flavor.pool for flavor in kueue.flavors if flavor.resource in requests}
    for name in sorted({pool.pool for pool in pools} & counted):
        owners = ", ".join(queue.name for queue in kueue.queues if name in queue.pools)
        wrong = f"a service on nodes of pool {name}, all of which count for jobs of {owners}"
        todo = "give services a pool that no queue prefers"
        yield config.refuse("pool", wrong, todo, got="")


def _unlike(
    request: JobRequest, queue: ClusterQueuePlan, pools: Sequence[PoolPlan], share: NodeShare
) -> Mistakes:
    """Yield pools whose nodes differ in what a program is built or set up for."""
    job = request.job
    named = sorted({pool.pool for pool in pools})
    if len(named) == 1:
        return
    processors = {
        catalog.lookup(name).architecture for pool in pools for name in pool.instance_types
    }
    interfaces = {pool.efa_interfaces for pool in pools}
    differing = {
        "accelerators": len({pool.accelerator for pool in pools}) > 1,
        "processors": len(processors) > 1,
        # Pods ask for as many on whichever node they land.
        "EFA interfaces": request.pods > 1 and bool(efa_of(job, share)) and len(interfaces) > 1,
    }
    unlike = [words for words, differs in differing.items() if differs]
    if unlike:
        wrong = f"several pools in queue {queue.name} whose {' and '.join(unlike)} differ"
        yield config.refuse("pool", wrong, f"name one of {', '.join(named)}", got="")


def _beyond(
    kueue: KueuePlan,
    queue: ClusterQueuePlan,
    pools: Sequence[PoolPlan],
    requests: Mapping[str, str],
    pods: int,
) -> Mistakes:
    """Yield pods that no flavor of the queue can hold together, whatever else runs."""
    most = {
        flavor.pool: (flavor, quota.most)
        for flavor in _flavors(kueue, queue, pools)
        if (quota := quota_of(queue, flavor)) is not None
    }
    needed = {
        pool: pods * amount(requests[flavor.resource])
        for pool, (flavor, _) in most.items()
        if flavor.resource in requests
    }
    if not needed or any(most[pool][1] >= asked for pool, asked in needed.items()):
        return
    limits = ", ".join(f"{most[pool][1]} of {pool}" for pool in needed)
    asked = max(needed.values(), default=Decimal())
    wrong = (
        f"{asked.normalize():f} {most[next(iter(needed))][0].resource} at once, which queue "
        f"{queue.name} never has in one pool ({limits})"
    )
    yield config.refuse("queue", wrong, "ask for less, or use another queue", got="")


def _flavors(
    kueue: KueuePlan, queue: ClusterQueuePlan, pools: Sequence[PoolPlan]
) -> Iterator[FlavorPlan]:
    """Yield the flavors that a job on ``pools`` may get, in the order in which they are tried."""
    fitting = {pool.pool for pool in pools}
    own = {quota.flavor for group in queue.groups for quota in group.quotas}
    by_pool = {flavor.pool: flavor for flavor in kueue.flavors if flavor.name in own}
    yield from (by_pool[name] for name in queue.pools if name in by_pool and name in fitting)


def notes_of(request: JobRequest, pools: Sequence[PoolPlan]) -> Iterator[str]:
    """Yield how long a job of several nodes waits for them, and what that costs at most."""
    if request.kueue is None or (queue := request.cluster_queue) is None or request.pods == 1:
        return
    growing = [pool for pool in pools if pool.sized_by in capacity.SIZED_BY_PODS]
    if not growing:
        return
    ready = request.kueue.readiness
    minutes = ready.timeout_seconds // _MINUTE
    where = " and ".join(dict.fromkeys(pool.pool for pool in growing))
    yield (
        f"Nodes of {where} are launched once Kueue has admitted it. Where they are not all ready "
        f"after {minutes} minutes, it goes back into queue {queue.name} and is tried again, "
        f"{ready.backoff_limit} times at most; {_cost(request, growing, ready.timeout_seconds)}."
    )
    fitting = {pool.pool for pool in pools}
    order = [name for name in queue.pools if name in fitting]
    if len(order) > 1:
        choices = ", ".join(tiers.tiers_to_choose(request))
        yield (
            f"Kueue tries {', '.join(order)} in this order, at each try from the first: where EC2 "
            "has no nodes of a pool that has quota, the same pool comes again. To move the job, "
            f"cancel it and submit it with --tier ({choices})."
        )


def _cost(request: JobRequest, growing: Sequence[PoolPlan], seconds: int) -> str:
    """Return what the nodes of one try cost that ends without its last node."""
    known = catalog_prices()
    prices = {pool.pool: price_as_bought(pool, request.cluster.region, known) for pool in growing}
    values = [price.value for price in prices.values() if price.value is not None]
    if not values:
        return "what such a try costs is not known, as no price of these nodes is"
    dearest = max(values)
    cost = dearest * request.pods * seconds / _HOUR
    capped = all(is_capped(pool, prices[pool.pool]) for pool in growing)
    words = ", the On-Demand price" if capped else ""
    return (
        f"such a try costs at most ${cost:,.0f} ({request.pods} nodes at ${dearest:,.2f} an hour"
        f"{words})"
    )
