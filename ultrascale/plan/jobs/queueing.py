"""Jobs in queues of Kueue: their possible pools, room in the queue, and the cost of a try.

Kueue gives each kind of pods of a job nodes of one flavor, the first of the queue's order that has
quota. It knows no free nodes: those of a pool that grows are launched after it has admitted the
job.

Sources:
    https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/pkg/scheduler/flavorassigner/flavorassigner.go
    https://kueue.sigs.k8s.io/docs/tasks/manage/setup_wait_for_pods_ready/
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from msgspec.structs import replace

from ultrascale import config
from ultrascale.catalog.prices import catalog_prices
from ultrascale.catalog.quantities import amount
from ultrascale.frozen import Frozen
from ultrascale.plan import capacity, names, namespaces
from ultrascale.plan.jobs import tiers
from ultrascale.plan.jobs.namespaces import says_where
from ultrascale.plan.jobs.nodes import NodeShare, may_have, node_share, requests_of, values_of
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.rules import Fitting, Nodes, Requests, Roles, rule
from ultrascale.plan.model import (
    ClusterQueuePlan,
    FlavorPlan,
    LocalQueuePlan,
    PoolPlan,
    QueueingPlan,
)
from ultrascale.plan.needs.pools import is_capped, price_as_bought

Mistakes = Iterator[config.Mistake]


_MINUTE, _HOUR = 60, 3600


def local_queue_of(request: JobRequest) -> LocalQueuePlan | None:
    """Return the queue of Kueue, or of task governance, that a job waits in; None without."""
    if (queue := request.quota_queue) is not None:
        return LocalQueuePlan(name=queue, priority=request.job.priority)
    team, priority = request.team, request.job.priority
    if team is None:
        return None
    placed = None if priority is None else names.queue_priority(priority)
    return LocalQueuePlan(name=names.team_queue(team.name), priority=placed, on_pods=True)


@rule
def queue_is_named(request: JobRequest) -> Mistakes:
    """Yield a job that no queue of Kueue would take."""
    if isinstance(request.job, config.ServiceJob) or not request.engine.quotas:
        return
    if request.quota_queue is None and not request.is_beside_queues:
        queues = request.queueing.queues if request.queueing is not None else ()
        known = ", ".join(queue.name for queue in queues)
        wrong = "missing, and scheduling.queues has several"
        yield config.refuse("queue", wrong, f"name one of {known}", got="", kind="missing")


@rule
def queue_gives_its_nodes(request: JobRequest, queue: ClusterQueuePlan) -> Mistakes:
    """Yield keys for nodes that the job's queue does not give it."""
    job = request.job
    if request.namespace not in queue.namespaces:
        wrong = "no queue takes jobs of this namespace: it is for services"
        todo = f"use {' or '.join(queue.namespaces)}"
        yield config.refuse("namespace", wrong, todo)
    if job.pool is not None and job.pool not in queue.pools:
        wrong = f"not in queue {queue.name}, which has {', '.join(queue.pools)}"
        todo = f"use one of these pools, or add yours to scheduling.queues[{queue.name}].prefer"
        yield config.refuse("pool", wrong, todo)
    known = tiers.tiers_of_queue(request)
    for tier in job.prefer:
        if tier not in known:
            wrong = f"not a node type of queue {queue.name}, which has {', '.join(known)}"
            yield config.refuse("prefer", wrong, "leave it out, or use another queue", got=tier)
    own = [tier for tier in known if tier in job.prefer]
    if own != [tier for tier in job.prefer if tier in known]:
        wrong = f"Kueue tries the pools of queue {queue.name} in another order"
        todo = f"write prefer: [{', '.join(own)}], or use a queue of that order"
        yield config.refuse("prefer", wrong, todo)


@rule(after=(queue_gives_its_nodes,))
def nodes_are_named(request: JobRequest, pools: Fitting) -> Mistakes:
    """Yield keys for nodes that fit no pool, or more than one.

    Args:
        request: The job.
        pools: The pools that fit.
    """
    job, every = request.job, request.pools
    fitting = sorted({pool.pool for pool in pools})
    if not fitting:
        unknown = [*_labels_of_no_pool(job, every)]
        none = config.refuse(
            "pool", f"no pool{_queue_words(request)} fits", "name a pool to see why", got=""
        )
        yield from unknown or [none]
    if request.cluster_queue is not None:
        # Kueue gives each kind of pods nodes of one pool.
        return
    # The sender of a template may name a pool; a role's stands in the template.
    kind = "missing" if request.role is None else "wrong"
    named = job.pool is not None or bool(job.node_selector) or bool(job.prefer)
    anywhere = isinstance(job, config.ServiceJob) and job.capacity is not None
    if len(fitting) > 1 and not named and not anywhere:
        wrong = "missing, and several pools have what the job asks for"
        todo = f"name one of {', '.join(fitting)}"
        yield config.refuse("pool", wrong, todo, got="", kind="missing")
    kinds = sorted({pool.accelerator or "none" for pool in pools})
    if len(kinds) > 1 and (named or anywhere):
        wrong = f"nodes with unlike accelerators: {', '.join(kinds)}"
        if job.prefer:
            todo = "keep tiers of one kind, or say in resources what each pod asks for"
            yield config.refuse("prefer", wrong, todo, got="", kind=kind)
        else:
            yield config.refuse("pool", wrong, "name one pool", got="", kind=kind)


def _queue_words(request: JobRequest) -> str:
    queue = request.cluster_queue
    return "" if queue is None else f" of queue {queue.name}, {', '.join(queue.pools)},"


def _labels_of_no_pool(job: config.Job, pools: Sequence[PoolPlan]) -> Mistakes:
    stated = frozenset(key for pool in pools for key in pool.labels)
    for key, value in job.node_selector.items():
        if not any(may_have(pool, key, value, stated) for pool in pools):
            known = sorted({value for pool in pools for value in values_of(pool, key)})
            yield config.Mistake(
                ("node_selector", key), "a label of no pool's nodes", config.near(value, known)
            )


@rule
def service_stays_beside_queues(
    request: JobRequest,
    job: config.ServiceJob,
    queueing: QueueingPlan,
    pools: Nodes,
    requests: Requests,
) -> Mistakes:
    """Yield a service without a queue whose pods are refused, or take nodes that queues count."""
    if job.queue is not None:
        return
    gated = sorted({*queueing.gated_resources} & requests.keys())
    if gated and request.namespace in queueing.namespaces:
        wrong = f"a service that asks for {gated[0]} in namespace {request.namespace}, where only "
        wrong += "jobs of queues get accelerators"
        if queued := namespaces.queued_jobs(request.cluster, request.namespace):
            wrong += f", since {' and '.join(queued)} {'run' if queued[1:] else 'runs'} there"
        todo = "name a namespace whose jobs are all services, which a claim under storage makes, "
        todo += "or a queue"
        yield config.refuse("namespace", wrong, todo, got="")
    counted = {flavor.pool for flavor in queueing.flavors if flavor.resource in requests}
    for name in sorted({pool.pool for pool in pools} & counted):
        owners = ", ".join(queue.name for queue in queueing.queues if name in queue.pools)
        wrong = f"all nodes of pool {name} count for jobs of {owners}, and a service takes some"
        todo = "name one of these queues, whose quota it then holds, or give services a pool that "
        todo += "no queue prefers"
        yield config.refuse("pool", wrong, todo, got="")


@rule
def takes_nothing_reserved(request: JobRequest, share: NodeShare) -> Mistakes:
    """Yield a service on reserved nodes of training, which only Kueue's quotas divide."""
    if not isinstance(request.job, config.ServiceJob):
        return
    # Task governance divides the nodes of its teams.
    if request.engine.quotas or request.teams or not share.accelerators:
        return
    reserved = {pool.pool for pool in request.nodes if pool.role == "reserved"}
    for name in sorted(reserved):
        training = [
            other
            for other, template in request.cluster.jobs.items()
            if isinstance(template, config.TrainingJob)
            and _trains_on(
                name, replace(request, name=other, job=template, template=None, tier=None)
            )
        ]
        if training:
            wrong = (
                f"{' and '.join(training)} {'train' if training[1:] else 'trains'} on the reserved "
                f"nodes of pool {name}, and no quota limits a service there"
            )
            todo = "give services a pool of their own, or set scheduling.queueing: kueue and name "
            todo += "a queue"
            yield config.refuse("pool", wrong, todo, got="")


def _trains_on(pool: str, training: JobRequest) -> bool:
    """Return whether a template names ``pool`` for training, or fits no other."""
    own = {node.pool for node in training.nodes}
    said = says_where(training.job) or bool(training.roles)
    return pool in own and (said or len(own) == 1)


@rule
def pools_of_queue_are_alike(
    request: JobRequest, queue: ClusterQueuePlan, pools: Nodes
) -> Mistakes:
    """Yield pools whose nodes differ in what a program is built or set up for."""
    job = request.job
    named = sorted({pool.pool for pool in pools})
    if len(named) == 1:
        return
    processors = {spec.architecture for pool in pools for spec in pool.specs}
    interfaces = {pool.efa_interfaces for pool in pools}
    differing = {
        "accelerators": len({pool.accelerator for pool in pools}) > 1,
        "processors": len(processors) > 1,
        # Pods ask for the same number on every node: none, where one pool has none.
        "EFA interfaces": request.pods > 1 and job.resources.efa != 0 and len(interfaces) > 1,
    }
    unlike = [words for words, differs in differing.items() if differs]
    if unlike:
        wrong = f"several pools in queue {queue.name} whose {' and '.join(unlike)} differ"
        yield config.refuse("pool", wrong, f"name one of {', '.join(named)}", got="")


@rule
def queue_counts_the_pods(
    queueing: QueueingPlan, queue: ClusterQueuePlan, pools: Nodes, requests: Requests
) -> Mistakes:
    """Yield pods without any resource that their queue counts.

    Kueue admits a job of such pods at once, on nodes that it gives to others as well. Of several
    roles it then does not look at those behind, admits the job in part, and cannot start it.

    Source: `assignFlavors` of
    https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/pkg/scheduler/flavorassigner/flavorassigner.go
    """
    flavors = [*_flavors(queueing, queue, pools)]
    if flavors and not any(flavor.resource in requests for flavor in flavors):
        counted = " or ".join(dict.fromkeys(flavor.resource for flavor in flavors))
        wrong = f"queue {queue.name} counts only {counted}, which the job does not ask for"
        todo = f"ask for {counted}, or use a queue of nodes without accelerators"
        yield config.refuse("resources", wrong, todo, got="")


@rule
def queue_can_admit_the_pods(
    request: JobRequest,
    queueing: QueueingPlan,
    queue: ClusterQueuePlan,
    pools: Nodes,
    requests: Requests,
) -> Mistakes:
    """Yield pods that no flavor of the queue can hold together, whatever else runs."""
    pods = request.admitted_pods
    if isinstance(request.job, config.ServiceJob):
        pods *= request.job.least_replicas
    needed = {
        flavor.pool: (pods * amount(requests[flavor.resource]), _most(queue, flavor))
        for flavor in _flavors(queueing, queue, pools)
        if flavor.resource in requests
    }
    if not needed or any(asked <= most for asked, most in needed.values()):
        return
    limits = ", ".join(f"{most} of {pool}" for pool, (_, most) in needed.items())
    (asked, _), *_ = needed.values()
    resource = next(flavor.resource for flavor in _flavors(queueing, queue, pools))
    wrong = (
        f"{asked.normalize():f} {resource} at once, more than queue {queue.name} ever has in one "
        f"pool ({limits})"
    )
    fitting = max(int(pods * most // asked) for asked, most in needed.values())
    if isinstance(request.job, config.ServiceJob):
        yield config.refuse("queue", wrong, "ask for less, or use another queue")
        return
    if fitting and pods != request.pods:
        todo = f"write at most {fitting}: the other pods wait until these end"
        yield config.refuse("array.parallelism", wrong, todo, got=str(pods))
        return
    less = f"at most {fitting} nodes" if fitting else "less"
    yield config.refuse("queue", wrong, f"ask for {less}, or use another queue", got="")


@rule
def roles_have_a_pool_each(
    queue: ClusterQueuePlan, queueing: QueueingPlan, roles: Roles
) -> Mistakes:
    """Yield roles among whose pools Kueue chooses: such a job holds up all others of its queue.

    Kueue remembers for each kind of pods which pool it tried last. Two kinds then change places
    without end, at the head of the queue, and jobs that fit are not looked at. A kind of one pool
    has nothing to remember. `borrowWithinCohort: Never` ends it for pools beyond the guarantee
    alone, at the price of priority there.

    Sources:
        https://github.com/kubernetes-sigs/kueue/issues/3710
        https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/pkg/scheduler/flavorassigner/flavorassigner.go
    """
    free = {
        role.role or "": [flavor.pool for flavor in _flavors(queueing, queue, role.nodes)]
        for role in roles
    }
    unnamed = {role: pools for role, pools in free.items() if len(pools) > 1}
    if len(free) > 1 and unnamed:
        pools = dict.fromkeys(pool for own in unnamed.values() for pool in own)
        wrong = (
            f"{' and '.join(unnamed)} may get nodes of {' or '.join(pools)}: while such a job of "
            f"several roles waits, Kueue looks at no job behind it in queue {queue.name} "
            "(kueue#3710)"
        )
        todo = "name a pool in each role, or one for the job"
        yield config.refuse("roles", wrong, todo, got="")


@rule(after=(roles_have_a_pool_each,))
def queue_can_admit_the_roles(
    queueing: QueueingPlan, queue: ClusterQueuePlan, roles: Roles
) -> Mistakes:
    """Yield roles that the queue never has nodes for together, even with nothing else in it.

    Raises:
        CatalogError: No source states a value of an instance type.
    """
    used: dict[str, Decimal] = {}
    asked: dict[str, dict[str, Decimal]] = {}
    for role in roles:
        requests = requests_of(role.job, node_share(role.job, role.nodes))
        flavors = [
            flavor
            for flavor in _flavors(queueing, queue, role.nodes)
            if flavor.resource in requests
        ]
        own = {flavor.pool: role.pods * amount(requests[flavor.resource]) for flavor in flavors}
        limits = {flavor.pool: _most(queue, flavor) for flavor in flavors}
        asked[role.role or ""] = own
        if own and all(used.get(pool, 0) + more > limits[pool] for pool, more in own.items()):
            yield _roles_do_not_fit(queue, flavors[0].resource, asked, own, limits)
            return
        if len(own) == 1:
            used.update({pool: used.get(pool, Decimal()) + more for pool, more in own.items()})


def _roles_do_not_fit(
    queue: ClusterQueuePlan,
    resource: str,
    asked: Mapping[str, Mapping[str, Decimal]],
    last: Mapping[str, Decimal],
    limits: Mapping[str, int],
) -> config.Mistake:
    rivals = {role: own for role, own in asked.items() if own.keys() & last.keys()}
    pools = list(dict.fromkeys(pool for own in rivals.values() for pool in own))
    total = sum((max(own.values()) for own in rivals.values()), Decimal())
    most = " and ".join(f"{limits[pool]} of {pool}" for pool in pools)
    if len(pools) == 1:
        most = str(limits[pools[0]])
    of_roles = ", one pool for each role" if len(pools) > 1 else ""
    wrong = (
        f"{' and '.join(rivals)} take {total.normalize():f} {resource} of {' and '.join(pools)} "
        f"at once, more than queue {queue.name} ever has: {most}{of_roles}"
    )
    todo = "ask for less, name other pools in the roles, or use another queue"
    return config.refuse("queue", wrong, todo, got="")


def _most(queue: ClusterQueuePlan, flavor: FlavorPlan) -> int:
    """Return the most that a queue may use of a flavor, in units of its resource."""
    quota = queue.quota_of(flavor)
    return 0 if quota is None else quota.most


def _flavors(
    queueing: QueueingPlan, queue: ClusterQueuePlan, pools: Sequence[PoolPlan]
) -> Iterator[FlavorPlan]:
    """Yield the flavors that a job on ``pools`` may get, in the order in which they are tried."""
    fitting = {pool.pool for pool in pools}
    own = {quota.flavor for group in queue.groups for quota in group.quotas}
    by_pool = {flavor.pool: flavor for flavor in queueing.flavors if flavor.name in own}
    yield from (by_pool[name] for name in queue.pools if name in by_pool and name in fitting)


def starts_in_time(request: JobRequest, startup_seconds: int) -> Mistakes:
    """Yield a service whose replicas Kueue would evict while they load their model.

    Args:
        request: The service.
        startup_seconds: Time that its program may take before it is ready.
    """
    if request.queueing is None or request.cluster_queue is None:
        return
    most = request.queueing.readiness.timeout_seconds
    if startup_seconds >= most:
        wrong = (
            f"a service that may take {startup_seconds} seconds to start, in a queue of Kueue, "
            f"which evicts pods that are not ready after {most}, the launch of nodes included"
        )
        todo = "lower startup_seconds, or leave queue out and use a pool of no queue"
        yield config.refuse("queue", wrong, todo)


def notes_of_init(request: JobRequest) -> Iterator[str]:
    """Yield the longest time of the command before a job's program."""
    if request.queueing is None or request.cluster_queue is None or not request.job.init:
        return
    minutes = request.queueing.readiness.timeout_seconds // _MINUTE
    yield (
        f"init has to end within {minutes} minutes, with the start of the nodes and the pull of "
        "the image: until then no pod is ready, and Kueue deletes pods that are not all ready by "
        "then. What takes longer belongs into the program, or into a batch job before it."
    )


def notes_of(request: JobRequest) -> Iterator[str]:
    """Yield the longest wait of a job for the nodes of its pods, and its cost.

    Raises:
        CatalogError: No source states a value of an instance type.
    """
    if request.queueing is None or (queue := request.cluster_queue) is None:
        return
    waits = [wait for part in request.roles or (request,) if (wait := _wait(part)) is not None]
    if not waits:
        return
    if request.admitted_pods > 1:
        ready = request.queueing.readiness
        where = " and ".join(dict.fromkeys(name for wait in waits for name in wait.pools))
        yield (
            f"Nodes of {where} are launched once Kueue has admitted it. Where they are not all "
            f"ready after {ready.timeout_seconds // _MINUTE} minutes, it goes back into queue "
            f"{queue.name} and is tried again, {ready.backoff_limit} times at most; "
            f"{_cost(waits, ready.timeout_seconds)}."
        )
        if _waits_on_for_lost_nodes(request.job):
            yield (
                "Once all of its pods have run, nothing ends its wait for nodes that it loses "
                "then, and the others are paid for meanwhile; deadline_hours bounds that."
            )
    fitting = {pool.pool for pool in request.nodes}
    order = [name for name in queue.pools if name in fitting]
    choices = ", ".join(tiers.tiers_to_choose(request))
    if len(order) > 1 and choices:
        yield (
            f"Kueue tries {', '.join(order)} in this order, at each try from the first: where EC2 "
            "has no nodes of a pool that has quota, the same pool comes again. To move the job, "
            f"cancel it and submit it with --tier ({choices})."
        )


def _waits_on_for_lost_nodes(job: config.Job) -> bool:
    """Return whether nodes of a job idle for as long as one of them is missing.

    Kueue's limit of that wait is off: jobs that it ended kept their quota.

    Source: https://github.com/kubernetes-sigs/kueue/issues/14811
    """
    whole = isinstance(job, config.TrainingJob) and job.min_nodes is None
    return whole and job.deadline_hours is None


class _Wait(Frozen):
    """Nodes that are launched for pods of one kind."""

    pools: tuple[str, ...]  # Their possible pools
    nodes: int  # Their most number
    # Price of one of the dearest, in US dollars; None where one is not known.
    usd_per_hour: float | None
    is_capped: bool  # Whether that is the On-Demand price of Spot nodes


def _wait(part: JobRequest) -> _Wait | None:
    """Return the nodes that are launched for a job of one role; None where all are there."""
    growing = [pool for pool in part.nodes if pool.sized_by in capacity.SIZED_BY_PODS]
    if not growing:
        return None
    share = node_share(part.job, part.nodes)
    known = catalog_prices()
    prices = [price_as_bought(pool, part.cluster.region, known) for pool in growing]
    # A fee is paid whether a node is launched or not.
    values = [price.price.price for price in prices if price.price is not None]
    on_a_node = 1
    if share.accelerators:
        # Of the smallest node: a larger one holds more pods, and fewer are launched.
        on_a_node = max(
            1, min(pool.accelerators_per_node for pool in growing) // share.accelerators
        )
    # All pods of a kind get nodes of one pool, which has no more than these.
    most = Counter[str]()
    for pool in growing:
        most[pool.pool] += pool.max_nodes
    return _Wait(
        pools=tuple(most),
        nodes=min(math.ceil(part.admitted_pods / on_a_node), max(most.values())),
        usd_per_hour=max(values) if len(values) == len(prices) else None,
        is_capped=all(map(is_capped, growing, prices)),
    )


def _cost(waits: Sequence[_Wait], seconds: int) -> str:
    """Return the cost of a try's nodes where the last node never comes."""
    known = [wait.nodes * wait.usd_per_hour for wait in waits if wait.usd_per_hour is not None]
    nodes = sum(wait.nodes for wait in waits)
    if len(known) < len(waits):
        return f"such a try is paid for up to {nodes} nodes, the price of some of which is unknown"
    words = ", at the On-Demand price" if all(wait.is_capped for wait in waits) else ""
    cost = sum(known) * seconds / _HOUR
    return (
        f"such a try costs at most ${cost:,.0f} ({nodes} nodes, ${sum(known):,.2f} an hour{words})"
    )
