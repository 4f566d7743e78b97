"""Rules of a job: the pools, queues, volumes and images of the cluster file that it names."""

from collections import Counter
from collections.abc import Iterable, Sequence

from ultrascale import catalog
from ultrascale.catalog import registries, runtime_environment
from ultrascale.config._errors import Mistake, Mistakes, near, refuse
from ultrascale.config._parts import Every, Names, Readable
from ultrascale.config._rules import rule
from ultrascale.config.images import Images
from ultrascale.config.jobs import (
    BatchJob,
    Job,
    Resources,
    Toleration,
    TopologyLayer,
    TrainingJob,
)
from ultrascale.config.pools import NODE_TYPE, Pool
from ultrascale.config.purchase import OnDemand, Spot
from ultrascale.config.scheduling import Rendezvous, Scheduling
from ultrascale.config.storage import Claim
from ultrascale.config.teams import Team, Teams
from ultrascale.core.engine import engine_of

# EC2 warns two minutes ahead.
# Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
_SPOT_NOTICE_SECONDS = 120


@rule
def job_has_one_way_to_nodes(job: Job) -> Mistakes:
    if job.prefer and job.team is not None:
        wrong = "a team's quota has only HyperPod's nodes, and prefer names others"
        yield refuse("prefer", wrong, "keep prefer or team")
    if job.node_selector and job.prefer:
        wrong = "node_selector and prefer both choose the nodes"
        yield refuse("prefer", wrong, "keep node_selector or prefer")
    if job.pool is not None and job.prefer:
        yield refuse("prefer", "pool and prefer both choose the nodes", "keep pool or prefer")
    if job.pool is not None and NODE_TYPE in job.node_selector:
        wrong = "a second way to name the pool"
        yield Mistake(("node_selector", NODE_TYPE), wrong, "keep pool or node-type")


@rule
def job_pool_exists(job: Job, names: Names[Pool]) -> Mistakes:
    if job.pool is not None and job.pool not in names:
        yield refuse("pool", "not one of pools", near(job.pool, names))


@rule
def job_knows_its_nodes(job: Job, pools: Every[Pool]) -> Mistakes:
    known = {pool.node_type for pool in pools}
    if (wanted := job.node_selector.get(NODE_TYPE)) is not None and wanted not in known:
        todo = near(wanted, known)
        yield Mistake(("node_selector", NODE_TYPE), "the node-type of no pool", todo)
    for number, name in enumerate(job.prefer):
        if name not in known:
            yield refuse(f"prefer.{number}", "the node-type of no pool", near(name, known))


@rule
def job_fits_its_nodes(job: Job, pools: Readable[Pool]) -> Mistakes:
    asked: tuple[tuple[str, catalog.AcceleratorKind, int | None], ...] = (
        ("gpu", "nvidia", job.resources.gpu),
        ("neuron", "neuron", job.resources.neuron),
    )
    for pool in chosen_pools(job, pools):
        for key, kind, count in asked:
            has = devices_of(pool, kind)
            if not count or not has:
                continue
            if max(has) < count:
                wrong = f"more than a node of {pool.node_type} has: {max(has)}"
                todo = "ask for less, or choose another pool"
                yield refuse(f"resources.{key}", wrong, todo)
            elif not any(devices and devices % count == 0 for devices in has):
                wrong = f"not a divisor of the {max(has)} devices of a node"
                yield refuse(f"resources.{key}", wrong, f"ask for {_shares(max(has))}")


@rule
def neuron_devices_are_neighbours(job: Job, pools: Readable[Pool]) -> Mistakes:
    """Yield a share of a node that no scheduler would place on neighbouring devices.

    Source:
    https://awsdocs-neuron.readthedocs-hosted.com/en/latest/containers/kubernetes-getting-started.html
    """
    count = job.resources.neuron or 1
    for pool in chosen_pools(job, pools):
        has = max(devices_of(pool, "neuron"), default=0)
        if 1 < count < has and has % count == 0:
            wrong = f"{count} of the {has} devices of a node may not be neighbours"
            yield refuse("resources.neuron", wrong, f"ask for 1 or {has}")


@rule
def job_has_the_nodes(job: TrainingJob, pools: Readable[Pool]) -> Mistakes:
    chosen = chosen_pools(job, pools)
    counts: Counter[str] = Counter()
    for pool in chosen:
        # A job with an order of preference lands on nodes of one type as a whole.
        counts[pool.node_type if job.prefer else ""] += most_nodes(pool) or 0
    most = max(counts.values(), default=0)
    known = all(most_nodes(pool) is not None for pool in chosen)
    if chosen and known and job.nodes > most:
        names = ", ".join(pool.name for pool in chosen)
        todo = f"ask for at most {most}, or raise nodes in pool {names}"
        yield refuse("nodes", f"more than the {most} nodes of {names}", todo, got=str(job.nodes))


@rule
def job_starts_with_enough(job: TrainingJob) -> Mistakes:
    if job.roles:
        return  # each role has nodes of its own, and refuses min_nodes
    if job.min_nodes is not None and job.min_nodes > job.nodes:
        yield refuse("min_nodes", f"more than nodes, which is {job.nodes}", "write less")


@rule
def processes_share_the_devices(job: TrainingJob, pools: Readable[Pool]) -> Mistakes:
    processes = job.processes_per_node
    for pool in chosen_pools(job, pools) if processes is not None else ():
        has = processes_of(pool, job.resources)
        if processes and has and (processes > has or has % processes):
            wrong = f"not a divisor of the {has} GPUs or NeuronCores of a pod"
            yield refuse("processes_per_node", wrong, f"write {_shares(has)}")


@rule
def training_keeps_off_controllers(job: TrainingJob, pools: Readable[Pool]) -> Mistakes:
    for pool in chosen_pools(job, pools):
        if pool.role == "system":
            key = "pool" if job.pool else "prefer" if job.prefer else "node_selector"
            wrong = "the nodes of controllers and add-ons"
            yield refuse(key, wrong, "choose a pool of another role")


@rule
def job_priority_exists(job: Job, scheduling: Scheduling) -> Mistakes:
    if job.priority is not None and job.priority not in scheduling.priority_classes:
        todo = near(job.priority, scheduling.priority_classes)
        yield refuse("priority", "not one of scheduling.priority_classes", todo)


@rule
def job_team_exists(job: Job, governance: Teams | None, names: Names[Team]) -> Mistakes:
    if job.team is not None and job.team not in names:
        todo = near(job.team, names)
        yield refuse("team", "not one of hyperpod.task_governance.teams", todo)


@rule
def job_queue_exists(job: Job, scheduling: Scheduling) -> Mistakes:
    if job.queue is None:
        return
    if scheduling.engine == "none":
        todo = "leave it out, or set scheduling.queueing: kueue, or volcano"
        yield refuse("queue", "no engine has queues here", todo)
        return
    known = engine_of(scheduling).known_queues([queue.name for queue in scheduling.queues])
    if job.queue not in known:
        yield refuse("queue", "not one of scheduling.queues", near(job.queue, known))


@rule
def job_meets_where_a_server_is(job: TrainingJob, rendezvous: Rendezvous) -> Mistakes:
    served = {None, "static", "c10d", rendezvous.backend}
    if rendezvous.backend == "etcd-v2":
        served.add("etcd")  # such a server speaks both versions of the API
    if job.rendezvous not in served:
        todo = f"use static or c10d, or set scheduling.rendezvous.backend: {job.rendezvous}"
        yield refuse("rendezvous", "no server of that kind runs in the cluster", todo)


@rule
def static_ranks_are_whole(job: TrainingJob) -> Mistakes:
    if job.rendezvous != "static":
        return
    if job.min_nodes is not None:
        wrong = "static fixes the ranks, and min_nodes lets them change"
        yield refuse("rendezvous", wrong, "leave it out, or write etcd")
    if job.restarts.workers:
        wrong = "with static, no other pod learns of a restart within a pod"
        todo = "write 0, or rendezvous: c10d or etcd"
        yield refuse("restarts.workers", wrong, todo)


@rule
def mounts_have_a_path_each(job: Job) -> Mistakes:
    seen: set[str] = set()
    for number, volume in enumerate(job.volumes or ()):
        if volume.mount_path in seen:
            wrong = "another volume is mounted at this path"
            yield refuse(f"volumes.{number}.mount_path", wrong, "choose another")
        seen.add(volume.mount_path)


@rule
def job_namespace_exists(job: Job, claims: Every[Claim]) -> Mistakes:
    known = {"training", *(claim.namespace for claim in claims)}
    if job.namespace not in known:
        todo = f"{near(job.namespace, known)}; a claim under storage can make another namespace"
        yield refuse("namespace", "not one that the cluster file makes", todo)


@rule
def job_image_is_known(job: Job, images: Images) -> Mistakes:
    if job.image is None:
        return
    reference = registries.parse_reference(job.image)
    if reference is None or reference.host is not None:
        return
    if reference.repository not in images.repositories:
        todo = near(reference.repository, images.repositories)
        todo += "; for another registry write its host too, as docker.io/…"
        yield refuse("image", "not one of images.repositories", todo)


@rule
def array_can_end(job: BatchJob) -> Mistakes:
    if job.array is None:
        return
    size, most = job.array.size, job.array.max_failed
    if most > size:
        todo = f"write at most {size}"
        yield refuse("array.max_failed", f"more than the {size} pods of the array", todo)


@rule
def topology_names_one_layer(job: TrainingJob) -> Mistakes:
    if not isinstance(job.topology, TopologyLayer):
        return
    named = (job.topology.required, job.topology.preferred)
    if sum(layer is not None for layer in named) != 1:
        wrong = "required and preferred at once" if all(named) else "no layer"
        yield refuse(
            "topology", wrong, "write {required: layer-2}, or {preferred: layer-2}", got=""
        )


@rule
def job_has_one_program(job: TrainingJob) -> Mistakes:
    if job.script is not None and job.command:
        wrong = "script and command both name the program"
        yield refuse("command", wrong, "keep script or command")


@rule
def cache_has_a_compiler(job: TrainingJob, pools: Readable[Pool]) -> Mistakes:
    if job.compile_cache is None:
        return
    if any(not all(devices_of(pool, "neuron")) for pool in chosen_pools(job, pools)):
        wrong = "compiled graphs are for Neuron devices, and the pool has none"
        yield refuse("compile_cache", wrong, "leave it out", got="")
    if job.command:
        yield refuse("compile_cache", "only torchrun compiles graphs", "name a script", got="")


@rule
def spot_notice_is_long_enough(job: Job, pools: Readable[Pool]) -> Mistakes:
    for pool in chosen_pools(job, pools):
        if "spot" in capacity_of(pool) and job.grace_period_seconds > _SPOT_NOTICE_SECONDS:
            wrong = f"longer than a Spot notice, {_SPOT_NOTICE_SECONDS} seconds"
            yield refuse("grace_period_seconds", wrong, "write 110, and save checkpoints by then")


@rule
def variables_do_no_harm(job: Job) -> Mistakes:
    for name, value in job.env.items():
        if name in job.allow_env and runtime_environment.is_allowable(name, value):
            continue
        if (why := runtime_environment.why_not(name, value)) is not None:
            yield Mistake(("env", name), why.wrong, why.todo)


@rule
def job_uses_one_accelerator(resources: Resources) -> Mistakes:
    if resources.gpu is not None and resources.neuron is not None:
        yield refuse("neuron", "GPUs and Neuron devices in one pod", "keep gpu or neuron")


@rule
def toleration_is_legal(toleration: Toleration) -> Mistakes:
    if toleration.operator == "Exists" and toleration.value is not None:
        wrong = "operator: Exists tolerates any value"
        yield refuse("value", wrong, "leave it out, or use operator: Equal")


def chosen_pools(job: Job, pools: Iterable[Pool]) -> Sequence[Pool]:
    """Return the pools that a job names; none where it names none."""
    if job.pool is not None:
        return [pool for pool in pools if pool.name == job.pool]
    wanted = {*job.prefer, job.node_selector.get(NODE_TYPE)}
    return [pool for pool in pools if pool.node_type in wanted]


def devices_of(pool: Pool, kind: catalog.AcceleratorKind) -> Sequence[int]:
    """Return the number of ``kind`` accelerators on a node of each type.

    Raises:
        CatalogError: No source states how many a type has.
    """
    accelerators = (spec.accelerator for spec in pool.specs)
    return [
        accelerator.count if accelerator is not None and accelerator.kind == kind else 0
        for accelerator in accelerators
    ]


def processes_of(pool: Pool, resources: Resources) -> int | None:
    """Return the GPUs or NeuronCores of a pod; None where it has none."""
    accelerators = (spec.accelerator for spec in pool.specs)
    return min(
        (_processes(accelerator, resources) for accelerator in accelerators if accelerator),
        default=None,
    )


def most_nodes(pool: Pool) -> int | None:
    """Return the most nodes of a pool with all of its shards; None where it states no count."""
    return pool.nodes.highest * pool.shards if pool.nodes.are_counted else None


def capacity_of(pool: Pool) -> Sequence[str]:
    """Return which of `reserved`, `spot` and `on-demand` the nodes of a pool are."""
    if isinstance(pool.purchase, Spot):
        fallback = pool.purchase.fallback
        return ("spot",) if fallback == "none" else ("spot", fallback)
    return ("on-demand",) if isinstance(pool.purchase, OnDemand) else ("reserved",)


def _processes(accelerator: catalog.Accelerator, resources: Resources) -> int:
    if accelerator.kind == "nvidia":
        return accelerator.count if resources.gpu is None else resources.gpu
    devices = accelerator.count if resources.neuron is None else resources.neuron
    return devices * accelerator.neuron_cores_logical // accelerator.count


def _shares(count: int) -> str:
    return ", ".join(str(share) for share in range(1, count + 1) if count % share == 0)
