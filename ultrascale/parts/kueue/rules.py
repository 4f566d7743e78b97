"""Rules of Kueue's queues: their pools and nodes, and the flavors made of the pools."""

from collections import Counter
from collections.abc import Iterable, Iterator

from ultrascale import config
from ultrascale.catalog import kubernetes, network_layers, quantities
from ultrascale.core.engine import engine_of
from ultrascale.parts.kueue import facts as kueue
from ultrascale.parts.kueue.plan import controllers_for
from ultrascale.plan import capacity
from ultrascale.plan.model import ControllerPlan
from ultrascale.plan.rules import rule


@config.rule
def roles_fit_one_workload(
    job: config.TrainingJob, scheduling: config.Scheduling
) -> config.Mistakes:
    most = kueue.POD_SETS
    if scheduling.engine == "kueue" and len(job.roles) > most:
        wrong = f"{len(job.roles)} roles, and Kueue admits at most {most} kinds of pods as one"
        yield config.refuse("roles", wrong, "unite some", got="")


@config.rule
def service_queues_are_kueues(
    job: config.ServiceJob, scheduling: config.Scheduling
) -> config.Mistakes:
    engine = engine_of(scheduling)
    if job.queue is not None and engine.gangs:
        wrong = f"queues of {engine.word} admit no service"
        todo = "leave it out, or set scheduling.queueing: kueue"
        yield config.refuse("queue", wrong, todo)


@config.rule
def queue_name_fits_a_label(queue: config.Queue, scheduling: config.Scheduling) -> config.Mistakes:
    most = kubernetes.LABEL_VALUE_CHARACTERS
    if scheduling.engine == "kueue" and len(queue.name) > most:
        wrong = f"longer than the {most} characters of the label by which a job names its queue"
        yield config.refuse("name", wrong, "choose a shorter one")


@config.rule
def queue_pools_exist(
    queue: config.Queue, scheduling: config.Scheduling, names: config.Names[config.Pool]
) -> config.Mistakes:
    if scheduling.engine != "kueue":
        return
    for number, name in enumerate(queue.prefer):
        if name not in names:
            yield config.refuse(f"prefer.{number}", "not one of pools", config.near(name, names))
    for key, counts in (("guarantee", queue.guarantee), ("limit", queue.limit)):
        for name in counts:
            if name not in names:
                yield config.Mistake(
                    (key, name), "not one of pools", config.near(name, names), got=name
                )
            elif queue.prefer and name not in queue.prefer:
                todo = "add it to prefer, or leave it out"
                yield config.Mistake(
                    (key, name), "not one of the pools that it prefers", todo, got=name
                )


@config.rule
def queue_pools_run_jobs(
    queue: config.Queue, scheduling: config.Scheduling, pools: config.Every[config.Pool]
) -> config.Mistakes:
    if scheduling.engine != "kueue":
        return
    preferred = [(number, pool) for number, pool in _preferred(queue, pools)]
    for number, pool in preferred:
        if pool.role == "system":
            wrong = "the nodes of controllers and add-ons"
            yield config.refuse(f"prefer.{number}", wrong, "choose a pool of another role")
    kinds = {_is_accelerated(pool) for _, pool in preferred if pool.role != "system"}
    if len(kinds) > 1:
        plain = ", ".join(pool.name for _, pool in preferred if not _is_accelerated(pool))
        wrong = f"pools with accelerators and without ({plain}) in one queue"
        yield config.refuse("prefer", wrong, "make a queue of each kind", got="")


@config.rule
def queue_of_unnamed_jobs_has_accelerators(
    queue: config.Queue, scheduling: config.Scheduling, pools: config.Every[config.Pool]
) -> config.Mistakes:
    """Yield the queue of all Jobs that name none, where it holds them to pools by their vCPUs.

    Ours that open file systems to jobs run on system nodes, which are in no queue.

    Source:
    https://kueue.sigs.k8s.io/docs/tasks/manage/enforce_job_management/setup_default_local_queue/
    """
    if scheduling.engine != "kueue" or queue.name != kueue.DEFAULT_LOCAL_QUEUE:
        return
    if any(not _is_accelerated(pool) for _, pool in _preferred(queue, pools)):
        wrong = (
            "Jobs that open file systems get the queue of this name, and do not run on CPU pools"
        )
        yield config.refuse("name", wrong, f"choose another name than {queue.name}")


@config.rule
def queue_has_pools(
    scheduling: config.Scheduling, pools: config.Every[config.Pool]
) -> config.Mistakes:
    if scheduling.engine != "kueue" or any(map(_is_accelerated, pools)):
        return
    if not scheduling.queues:
        wrong = "no pool has accelerators, and no queue names its pools by prefer"
        yield config.refuse("queueing", wrong, "add queues, each with prefer")
    for number, queue in enumerate(scheduling.queues):
        if not queue.prefer:
            wrong = "missing, and no pool has accelerators"
            yield config.refuse(f"queues.{number}.prefer", wrong, "name its pools", got="")


@config.rule
def unstated_pools_are_known(
    queue: config.Queue, scheduling: config.Scheduling, pools: config.Every[config.Pool]
) -> config.Mistakes:
    """Yield counts of pools that a queue without `prefer` does not have."""
    if scheduling.engine != "kueue" or queue.prefer:
        return
    plain = {pool.name for pool in pools if not _is_accelerated(pool)}
    for key, counts in (("guarantee", queue.guarantee), ("limit", queue.limit)):
        for name in sorted(plain & counts.keys()):
            wrong = "without prefer a queue has only pools with accelerators"
            yield config.Mistake((key, name), wrong, "name its pools in prefer", got=name)


@config.rule
def guarantees_are_there(
    scheduling: config.Scheduling, pools: config.Every[config.Pool]
) -> config.Mistakes:
    if scheduling.engine != "kueue":
        return
    for pool in pools:
        most = pool.nodes.highest * pool.shards if pool.nodes.are_counted else None
        said = {
            queue.name: queue.guarantee[pool.name]
            for queue in scheduling.queues
            if queue.guarantee.get(pool.name)
        }
        total = sum(said.values())
        if most is not None and total > most:
            sum_ = " + ".join(f"{name} {count}" for name, count in said.items())
            wrong = f"guarantees of {total} nodes of pool {pool.name}, which has {most}: {sum_}"
            yield config.refuse(
                "queues", wrong, "guarantee less, or raise nodes of the pool", got=""
            )


@config.rule
def queue_may_use_its_pools(queue: config.Queue, scheduling: config.Scheduling) -> config.Mistakes:
    if scheduling.engine != "kueue":
        return
    for name, count in queue.limit.items():
        if count == 0 and not queue.guarantee.get(name):
            wrong = f"no node of pool {name}, neither guaranteed nor borrowed"
            todo = "write more, or leave the pool out of prefer"
            yield config.Mistake(("limit", name), wrong, todo)


@config.rule
def flavors_have_a_name_each(
    pool: config.Pool, scheduling: config.Scheduling, names: config.Names[config.Pool]
) -> config.Mistakes:
    if scheduling.engine != "kueue" or not pool.name.endswith(kueue.TOPOLOGY_SUFFIX):
        return
    other = pool.name.removesuffix(kueue.TOPOLOGY_SUFFIX)
    if other in names and any(queue.topology for queue in scheduling.queues):
        wrong = f"Kueue gives this name to nodes of pool {other} placed by topology"
        yield config.refuse("name", wrong, "choose another")


@config.rule(severity="warning")
def reserved_nodes_are_in_no_queue(
    pool: config.Pool, scheduling: config.Scheduling
) -> config.Mistakes:
    if scheduling.engine != "kueue" or not pool.is_reserved or not _is_accelerated(pool):
        return
    if scheduling.queues and not any(_has_pool(queue, pool) for queue in scheduling.queues):
        yield config.note(
            "name",
            "no queue has this pool, so only services run on its nodes, which are paid for "
            "also when unused; name it in prefer of a queue",
        )


@config.rule(severity="warning")
def windows_are_told_to_kueue(
    queue: config.Queue, scheduling: config.Scheduling, pools: config.Readable[config.Pool]
) -> config.Mistakes:
    """Warn of nodes that Kueue counts before their window and after it.

    It evicts a job that waits for them, tries again from the first pool of the queue, and gives up
    after some tries. With a topology it admits no job before the nodes exist.
    """
    if scheduling.engine != "kueue" or queue.topology:
        return
    for pool in pools:
        if isinstance(pool.purchase, config.CapacityBlock | config.TrainingPlan) and _has_pool(
            queue, pool
        ):
            yield config.note(
                "prefer",
                f"Kueue admits jobs to pool {pool.name} outside its window too, and retries them "
                "for hours; give the pool a queue of its own with topology: true, which waits "
                "for the nodes",
            )


@config.rule(severity="warning")
def spot_is_no_guarantee(
    queue: config.Queue, scheduling: config.Scheduling, pools: config.Readable[config.Pool]
) -> config.Mistakes:
    if scheduling.engine != "kueue":
        return
    for pool in pools:
        if isinstance(pool.purchase, config.Spot) and queue.guarantee.get(pool.name):
            wrong = "Spot is guaranteed against other queues only: EC2 may have none"
            at = ("guarantee", pool.name)
            yield config.Mistake(at, wrong, "guarantee nodes that are reserved", got="")


@rule
def topology_has_its_nodes(
    queue: config.Queue, scheduling: config.Scheduling, pools: config.Every[config.Pool]
) -> config.Mistakes:
    """Yield pools on which Kueue cannot place the pods of a queue by network layer.

    It assigns a job to existing nodes, and each must have the labels of all layers.

    Source: https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling/
    """
    if scheduling.engine != "kueue" or not queue.topology:
        return
    known = {pool.name: pool for pool in pools}
    for number, name in enumerate(queue.prefer):
        pool = known.get(name)
        if pool is None or not pool.nodes.are_counted or pool.role == "system":
            continue  # a mistake of its own
        if capacity.sized_by(pool) in capacity.SIZED_BY_PODS:
            wrong = "a pool that grows: Kueue places by topology on nodes that exist"
            todo = "name pools of a fixed size, or leave topology out"
            yield config.refuse(f"prefer.{number}", wrong, todo)
        elif not all(map(network_layers.is_placed, pool.instance_types)):
            types = ", ".join(pool.instance_types)
            wrong = f"a pool whose nodes may have no network layers: {types}"
            todo = "choose another pool, or leave topology out"
            yield config.refuse(f"prefer.{number}", wrong, todo)
    if not queue.prefer and not any(map(_is_fixed, pools)):
        wrong = "topology needs a pool with accelerators, a fixed size and known network layers"
        yield config.refuse("topology", wrong, "leave it out")


@rule
def pool_divides_between_queues(
    scheduling: config.Scheduling, pools: config.Every[config.Pool]
) -> config.Mistakes:
    """Yield pools of which queues with a topology, or those without, have no node.

    Nodes of a pool count for the first as far as they are guaranteed to them, and else for the
    others.
    """
    if scheduling.engine != "kueue":
        return
    for pool in pools:
        most = pool.nodes.highest * pool.shards if pool.nodes.are_counted else 0
        own = [queue for queue in scheduling.queues if _has(queue, pool)]
        placed = [queue for queue in own if queue.topology]
        if not most or not placed or len(placed) == len(own):
            continue
        guaranteed = sum(queue.guarantee.get(pool.name, 0) for queue in placed)
        names = ", ".join(queue.name for queue in placed)
        others = ", ".join(queue.name for queue in own if not queue.topology)
        if guaranteed == 0:
            wrong = (
                f"{others} may take all of pool {pool.name}, which guarantees no node to {names}"
            )
            todo = f"guarantee nodes of it to {names}"
            yield config.refuse("queues", wrong, todo, got="")
        elif guaranteed >= most:
            wrong = f"pool {pool.name} leaves no node to {others}: all are guaranteed to {names}"
            todo = f"guarantee fewer, or leave the pool out of {others}"
            yield config.refuse("queues", wrong, todo, got="")


@rule
def queues_fit_kueue(
    scheduling: config.Scheduling, pools: config.Every[config.Pool]
) -> config.Mistakes:
    """Yield more flavors of a resource than queues and their cohort hold."""
    if scheduling.engine != "kueue":
        return
    queues = scheduling.queues or (config.Queue(name=kueue.DEFAULT_LOCAL_QUEUE),)
    counted: Counter[str] = Counter()
    for pool in pools:
        # A pool in queues of both kinds is two.
        counted[_device(pool)] += len({queue.topology for queue in queues if _has(queue, pool)})
    for device, flavors in counted.items():
        if flavors > kueue.FLAVORS_OF_A_GROUP:
            wrong = f"{flavors} kinds of nodes with {device}, more than {kueue.FLAVORS_OF_A_GROUP}"
            todo = "make shards of one pool, or leave pools out of the queues"
            yield config.refuse("queues", wrong, todo, got="")


@rule
def flavors_hold_the_taints(
    queue: config.Queue, scheduling: config.Scheduling, pools: config.Every[config.Pool]
) -> config.Mistakes:
    """Yield pools with more taints than a flavor tolerates."""
    if scheduling.engine != "kueue":
        return
    for pool in pools:
        most = kueue.FLAVOR_LABELS - _OUR_TAINTS
        if len(pool.taints) > most and _has(queue, pool):
            wrong = f"pool {pool.name} has {len(pool.taints)} taints, and Kueue takes {most}"
            yield config.refuse("prefer", wrong, "leave taints out, or the pool", got="")


@rule
def kueue_has_room(
    pools: config.Every[config.Pool], scheduling: config.Scheduling
) -> config.Mistakes:
    """Yield system nodes too small for Kueue's controller: a deployment waits until it runs."""
    system = [placed for placed in pools.placed if placed.item.role == "system"]
    if scheduling.engine != "kueue" or not system:
        return
    nodes = _most_nodes(pools)
    size = controllers_for(nodes).manager
    if any(_has_more_than(placed.item, size) for placed in system):
        return
    wrong = (
        f"nodes too small for Kueue, which takes {size.cpu} vCPUs and {size.memory} in a cluster "
        f"of {nodes:,} nodes"
    )
    yield config.Mistake((*system[0].at, "instance_types"), wrong, "use larger types")


def _most_nodes(pools: Iterable[config.Pool]) -> int:
    return sum(_most(pool) for pool in pools if pool.nodes.are_counted)


def _most(pool: config.Pool) -> int:
    return pool.nodes.highest * pool.shards


def _has_more_than(pool: config.Pool, size: ControllerPlan) -> bool:
    """Return whether a node of ``pool`` has more than ``size``: the kubelet needs some as well."""
    specs = pool.specs
    cpu, memory_mib = quantities.millicpu(size.cpu), quantities.mib(size.memory)
    return all(spec.vcpus * 1000 > cpu and spec.memory_mib > memory_mib for spec in specs)


# Taints of accelerators, and of Spot.
_OUR_TAINTS = 2


def _device(pool: config.Pool) -> str:
    accelerator = pool.specs[0].accelerator
    return "vCPUs" if accelerator is None else accelerator.resource_name


def _has(queue: config.Queue, pool: config.Pool) -> bool:
    by_itself = not queue.prefer and queue.topology
    return _has_pool(queue, pool) and (not by_itself or _is_fixed(pool))


def _is_fixed(pool: config.Pool) -> bool:
    """Return whether a queue with a topology has the pool by itself."""
    if not _is_accelerated(pool) or not pool.nodes.are_counted:
        return False
    sized_by_pods = capacity.sized_by(pool) in capacity.SIZED_BY_PODS
    return not sized_by_pods and all(map(network_layers.is_placed, pool.instance_types))


def _is_accelerated(pool: config.Pool) -> bool:
    return any(spec.accelerator is not None for spec in pool.specs)


def _has_pool(queue: config.Queue, pool: config.Pool) -> bool:
    """Return whether jobs of ``queue`` may run on ``pool``, which a topology may still exclude."""
    return pool.name in queue.prefer if queue.prefer else _is_accelerated(pool)


def _preferred(
    queue: config.Queue, pools: config.Every[config.Pool]
) -> Iterator[tuple[int, config.Pool]]:
    known = {pool.name: pool for pool in pools}
    for number, name in enumerate(queue.prefer):
        if name in known:
            yield number, known[name]
