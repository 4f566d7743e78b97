"""Rules of Kueue's queues that hang on what the pools become: nodes that exist, their labels."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ultrascale import catalog, config
from ultrascale.catalog import karpenter as karpenter_facts
from ultrascale.catalog import kueue, quantities, volcano
from ultrascale.core.table import all_parts
from ultrascale.plan import capacity
from ultrascale.plan.model import ControllerPlan
from ultrascale.plan.queueing import controllers_for
from ultrascale.plan.rules import rule
from ultrascale.plan.scale import karpenter_scale

Mistakes = Iterator[config.Mistake]


@rule
def topology_has_its_nodes(
    queue: config.Queue, scheduling: config.Scheduling, pools: config.Every[config.Pool]
) -> Mistakes:
    """Yield pools on which Kueue cannot place the pods of a queue by network layer.

    It assigns a job to nodes that exist, and each must have the labels of all layers.

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
        elif not all(map(volcano.is_placed, pool.instance_types)):
            types = ", ".join(pool.instance_types)
            wrong = f"a pool whose nodes may not name their network layers: {types}"
            todo = "choose another pool, or leave topology out"
            yield config.refuse(f"prefer.{number}", wrong, todo)
    if not queue.prefer and not any(map(_is_fixed, pools)):
        wrong = "no pool with accelerators has a fixed number of nodes that name their layers"
        yield config.refuse("topology", wrong, "leave it out")


@rule
def pool_divides_between_queues(
    scheduling: config.Scheduling, pools: config.Every[config.Pool]
) -> Mistakes:
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
            wrong = f"no node of pool {pool.name} for {names}, which {others} has as well"
            todo = f"guarantee nodes of it to {names}"
            yield config.refuse("queues", wrong, todo, got="")
        elif guaranteed >= most:
            wrong = f"no node of pool {pool.name} for {others}: all are guaranteed to {names}"
            todo = f"guarantee fewer, or leave the pool out of {others}"
            yield config.refuse("queues", wrong, todo, got="")


@rule
def queues_fit_kueue(scheduling: config.Scheduling, pools: config.Every[config.Pool]) -> Mistakes:
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
) -> Mistakes:
    """Yield pools with more taints than a flavor tolerates."""
    if scheduling.engine != "kueue":
        return
    for pool in pools:
        most = kueue.FLAVOR_LABELS - _OUR_TAINTS
        if len(pool.taints) > most and _has(queue, pool):
            wrong = f"pool {pool.name} with {len(pool.taints)} taints, of which Kueue takes {most}"
            yield config.refuse("prefer", wrong, "leave taints out, or the pool", got="")


@rule
def kueue_has_room(
    pools: config.Every[config.Pool], scheduling: config.Scheduling
) -> Iterator[config.Mistake]:
    """Judge whether a system node holds Kueue's controller: a deployment waits until it runs."""
    system = [placed for placed in pools.placed if placed.item.role == "system"]
    if scheduling.engine != "kueue" or not system:
        return
    nodes = _most_nodes(pools)
    size = controllers_for(nodes).manager
    if any(_holds(placed.item, size) for placed in system):
        return
    wrong = (
        f"nodes too small for Kueue, which takes {size.cpu} vCPUs and {size.memory} in a cluster "
        f"of {nodes:,} nodes"
    )
    yield config.Mistake((*system[0].at, "instance_types"), wrong, "use larger types")


@rule
def controllers_have_room(
    pools: config.Every[config.Pool],
    scheduling: config.Scheduling,
    karpenter: config.Karpenter | None,
    file: config.Parts,
) -> Iterator[config.Mistake]:
    """Judge whether the system nodes hold all controllers together, at their largest number.

    Helm waits until each runs. What else runs there is not counted: this much is always missing.
    """
    system = [placed for placed in pools.placed if placed.item.role == "system"]
    if not all(one.item.nodes.are_counted for one in system):
        return
    nodes = _most_nodes(pools)
    parts: dict[str, Sequence[ControllerPlan]] = {}
    if scheduling.engine == "kueue":
        own = controllers_for(nodes)
        parts |= {"Kueue": (own.manager,), "JobSet": (own.jobset,)}
    for part in all_parts():
        parts |= part.controllers(file, nodes)
    if not parts:
        return
    each = [one for programs in parts.values() for one in programs]
    millicpu = sum(quantities.millicpu(one.cpu) * one.replicas for one in each)
    mib = sum(quantities.mib(one.memory) * one.replicas for one in each)
    names = [*parts]
    if karpenter is not None:
        launched = _most_nodes(pool for pool in pools if pool.is_karpenter)
        size = karpenter_scale(launched, karpenter)
        millicpu += size.vcpus * 1000 * karpenter_facts.REPLICAS
        mib += size.memory_gib * 1024 * karpenter_facts.REPLICAS
        names.append("Karpenter")
    there = [(_most(placed.item), *_largest(placed.item)) for placed in system]
    vcpus = sum(nodes * each for nodes, each, _ in there)
    memory_mib = sum(nodes * each for nodes, _, each in there)
    if system and (vcpus * 1000 < millicpu or memory_mib < mib):
        wrong = (
            f"too few for the controllers of {_listed(names)}, which take "
            f"{millicpu / 1000:g} vCPUs and {mib / 1024:g} GiB together"
        )
        todo = "add nodes, or use larger types"
        yield config.Mistake((*system[0].at, "nodes"), wrong, todo)


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _most_nodes(pools: Iterable[config.Pool]) -> int:
    return sum(_most(pool) for pool in pools if pool.nodes.are_counted)


def _most(pool: config.Pool) -> int:
    return pool.nodes.highest * pool.shards


def _largest(pool: config.Pool) -> tuple[int, int]:
    """Return the vCPUs and MiB of the largest node of ``pool``."""
    specs = [catalog.lookup(name) for name in pool.instance_types]
    return max(spec.vcpus for spec in specs), max(spec.memory_mib for spec in specs)


def _holds(pool: config.Pool, size: ControllerPlan) -> bool:
    """Return whether a node of ``pool`` has more than ``size``: the kubelet needs some as well."""
    specs = [catalog.lookup(name) for name in pool.instance_types]
    cpu, memory_mib = quantities.millicpu(size.cpu), quantities.mib(size.memory)
    return all(spec.vcpus * 1000 > cpu and spec.memory_mib > memory_mib for spec in specs)


# Of accelerators, and of Spot.
_OUR_TAINTS = 2


def _device(pool: config.Pool) -> str:
    accelerator = catalog.lookup(pool.instance_types[0]).accelerator
    return "vCPUs" if accelerator is None else accelerator.resource_name


def _has(queue: config.Queue, pool: config.Pool) -> bool:
    by_itself = not queue.prefer and queue.topology
    return config.has_pool(queue, pool) and (not by_itself or _is_fixed(pool))


def _is_fixed(pool: config.Pool) -> bool:
    """Return whether a queue with a topology has the pool by itself."""
    if not config.is_accelerated(pool) or not pool.nodes.are_counted:
        return False
    sized_by_pods = capacity.sized_by(pool) in capacity.SIZED_BY_PODS
    return not sized_by_pods and all(map(volcano.is_placed, pool.instance_types))
