"""Rules of queues: keys of their engine, and with Kueue the pools and nodes that they share."""

from collections.abc import Iterator, Mapping

from ultrascale import catalog
from ultrascale.catalog import kubernetes, kueue
from ultrascale.config._errors import Mistake, Mistakes, near, refuse
from ultrascale.config._parts import Every, Names
from ultrascale.config._rules import rule
from ultrascale.config.job_rules import most_nodes
from ultrascale.config.pools import Pool
from ultrascale.config.scheduling import Queue, Queueing, Scheduling

_KEYS: Mapping[Queueing, frozenset[str]] = {
    "kueue": frozenset({"guarantee", "prefer", "limit", "topology", "fair_share_weight"}),
    "volcano": frozenset({"weight", "reclaimable", "capability"}),
}
_NAMES: Mapping[Queueing, str] = {"kueue": "Kueue", "volcano": "Volcano"}


@rule
def queue_keys_are_the_engines(queue: Queue, scheduling: Scheduling) -> Mistakes:
    for engine, keys in _KEYS.items():
        if scheduling.engine in {engine, "none"}:
            continue
        for key in sorted(keys & queue.model_fields_set):
            wrong = f"a key of {_NAMES[engine]}'s queues"
            todo = f"leave it out, or set queueing: {engine}"
            yield refuse(key, wrong, todo, got="")


@rule
def queue_name_fits_a_label(queue: Queue, scheduling: Scheduling) -> Mistakes:
    most = kubernetes.LABEL_VALUE_CHARACTERS
    if scheduling.engine == "kueue" and len(queue.name) > most:
        wrong = f"longer than the {most} characters of the label by which a job names its queue"
        yield refuse("name", wrong, "choose a shorter one")


@rule
def queue_pools_exist(queue: Queue, scheduling: Scheduling, names: Names[Pool]) -> Mistakes:
    if scheduling.engine != "kueue":
        return
    for number, name in enumerate(queue.prefer):
        if name not in names:
            yield refuse(f"prefer.{number}", "not one of pools", near(name, names))
    for key, counts in (("guarantee", queue.guarantee), ("limit", queue.limit)):
        for name in counts:
            if name not in names:
                yield Mistake((key, name), "not one of pools", near(name, names), got=name)
            elif queue.prefer and name not in queue.prefer:
                todo = "add it to prefer, or leave it out"
                yield Mistake((key, name), "not one of the pools that it prefers", todo, got=name)


@rule
def queue_pools_run_jobs(queue: Queue, scheduling: Scheduling, pools: Every[Pool]) -> Mistakes:
    if scheduling.engine != "kueue":
        return
    preferred = [(number, pool) for number, pool in _preferred(queue, pools)]
    for number, pool in preferred:
        if pool.role == "system":
            wrong = "the nodes of controllers and add-ons"
            yield refuse(f"prefer.{number}", wrong, "choose a pool of another role")
    kinds = {is_accelerated(pool) for _, pool in preferred if pool.role != "system"}
    if len(kinds) > 1:
        plain = ", ".join(pool.name for _, pool in preferred if not is_accelerated(pool))
        wrong = f"{plain} without accelerators among pools with some, which are counted in devices"
        yield refuse("prefer", wrong, "make a queue of each kind", got="")


@rule
def queue_of_unnamed_jobs_has_accelerators(
    queue: Queue, scheduling: Scheduling, pools: Every[Pool]
) -> Mistakes:
    """Yield the queue of all Jobs that name none, where it holds them to pools by their vCPUs.

    Ours that open file systems to jobs run on system nodes, of which no queue is.

    Source: https://kueue.sigs.k8s.io/docs/tasks/manage/enforce_job_management/setup_default_local_queue/
    """
    if scheduling.engine != "kueue" or queue.name != kueue.DEFAULT_LOCAL_QUEUE:
        return
    if any(not is_accelerated(pool) for _, pool in _preferred(queue, pools)):
        wrong = "the queue of all Jobs that name none, also of those that open file systems, which "
        wrong += "run on no node of its pools"
        yield refuse("name", wrong, "choose another for a queue of pools without accelerators")


@rule
def queue_has_pools(scheduling: Scheduling, pools: Every[Pool]) -> Mistakes:
    if scheduling.engine != "kueue" or any(map(is_accelerated, pools)):
        return
    if not scheduling.queues:
        wrong = "no pool with accelerators, and no queue that prefers another"
        yield refuse("queueing", wrong, "add queues, each with prefer")
    for number, queue in enumerate(scheduling.queues):
        if not queue.prefer:
            wrong = "missing, and no pool has accelerators"
            yield refuse(f"queues.{number}.prefer", wrong, "name its pools", got="")


@rule
def unstated_pools_are_known(queue: Queue, scheduling: Scheduling, pools: Every[Pool]) -> Mistakes:
    """Yield counts of pools that a queue without `prefer` does not have."""
    if scheduling.engine != "kueue" or queue.prefer:
        return
    plain = {pool.name for pool in pools if not is_accelerated(pool)}
    for key, counts in (("guarantee", queue.guarantee), ("limit", queue.limit)):
        for name in sorted(plain & counts.keys()):
            wrong = "a pool without accelerators, which it has only by name"
            yield Mistake((key, name), wrong, "name its pools in prefer", got=name)


@rule
def guarantees_are_there(scheduling: Scheduling, pools: Every[Pool]) -> Mistakes:
    if scheduling.engine != "kueue":
        return
    for pool in pools:
        most = most_nodes(pool)
        said = {
            queue.name: queue.guarantee[pool.name]
            for queue in scheduling.queues
            if queue.guarantee.get(pool.name)
        }
        total = sum(said.values())
        if most is not None and total > most:
            each = " + ".join(f"{name} {count}" for name, count in said.items())
            wrong = f"guarantees of {total} nodes of pool {pool.name}, which has {most}: {each}"
            yield refuse("queues", wrong, "guarantee less, or raise nodes of the pool", got="")


@rule
def queue_may_use_its_pools(queue: Queue, scheduling: Scheduling) -> Mistakes:
    if scheduling.engine != "kueue":
        return
    for name, count in queue.limit.items():
        if count == 0 and not queue.guarantee.get(name):
            wrong = f"no node of pool {name}, neither guaranteed nor borrowed"
            todo = "write more, or leave the pool out of prefer"
            yield Mistake(("limit", name), wrong, todo)


@rule
def flavors_have_a_name_each(pool: Pool, scheduling: Scheduling, names: Names[Pool]) -> Mistakes:
    if scheduling.engine != "kueue" or not pool.name.endswith(kueue.TOPOLOGY_SUFFIX):
        return
    other = pool.name.removesuffix(kueue.TOPOLOGY_SUFFIX)
    if other in names and any(queue.topology for queue in scheduling.queues):
        wrong = f"the name of the nodes of pool {other} that are placed by topology"
        yield refuse("name", wrong, "choose another")


def is_accelerated(pool: Pool) -> bool:
    """Return whether the nodes of ``pool`` have accelerators."""
    return any(catalog.lookup(name).accelerator is not None for name in pool.instance_types)


def has_pool(queue: Queue, pool: Pool) -> bool:
    """Return whether jobs of ``queue`` may run on ``pool``, which a topology may still exclude."""
    return pool.name in queue.prefer if queue.prefer else is_accelerated(pool)


def _preferred(queue: Queue, pools: Every[Pool]) -> Iterator[tuple[int, Pool]]:
    known = {pool.name: pool for pool in pools}
    for number, name in enumerate(queue.prefer):
        if name in known:
            yield number, known[name]
