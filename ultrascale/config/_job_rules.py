"""What jobs must be to the pools, queues, volumes and images of the cluster file."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import cast

from ultrascale.catalog import runtime_environment, volcano
from ultrascale.config._errors import Mistake, near, refuse
from ultrascale.config._job_nodes import (
    capacity_of,
    chosen_pools,
    devices_of,
    most_nodes,
    names_of,
    node_types_of,
    processes_of,
)
from ultrascale.config._reader import Fields, Part
from ultrascale.config.hyperpod import TaskGovernance
from ultrascale.config.jobs import CompileCache, Resources, Volume
from ultrascale.config.pools import NODE_TYPE, Pool
from ultrascale.config.scheduling import Queue
from ultrascale.config.storage import Claim

Mistakes = Iterator[Mistake]

# Volcano mounts its list of hosts there.
_TAKEN_PATHS = ("/dev/shm", "/etc/volcano")
# EC2 warns two minutes ahead.
# Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
_SPOT_NOTICE_SECONDS = 120


def job_has_one_way_to_nodes(
    pool: str | None,
    node_selector: Mapping[str, str],
    prefer: tuple[str, ...],
    team: str | None,
) -> Mistakes:
    if prefer and team is not None:
        wrong = "an order of preference in a team's job, whose quota is of HyperPod's nodes alone"
        yield refuse("prefer", wrong, "keep prefer or team")
    if node_selector and prefer:
        wrong = "a strict selector and an order of preference"
        yield refuse("prefer", wrong, "keep node_selector or prefer")
    if pool is not None and prefer:
        yield refuse("prefer", "a pool and an order of preference", "keep pool or prefer")
    if pool is not None and NODE_TYPE in node_selector:
        wrong = "a second way to name the pool"
        yield Mistake(("node_selector", NODE_TYPE), wrong, "keep pool or node-type")


def job_pool_exists(pool: str | None, parts: tuple[Part, ...]) -> Mistakes:
    known = names_of(parts)
    if pool is not None and pool not in known:
        yield refuse("pool", "not one of pools", near(pool, known))


def job_knows_its_nodes(
    node_selector: Mapping[str, str], prefer: tuple[str, ...], node_types: frozenset[str]
) -> Mistakes:
    if (wanted := node_selector.get(NODE_TYPE)) is not None and wanted not in node_types:
        todo = near(wanted, node_types)
        yield Mistake(("node_selector", NODE_TYPE), "the node-type of no pool", todo)
    for number, name in enumerate(prefer):
        if name not in node_types:
            yield refuse(f"prefer.{number}", "the node-type of no pool", near(name, node_types))


def job_fits_its_nodes(resources: Resources, fields: Fields, parts: tuple[Part, ...]) -> Mistakes:
    node_types = node_types_of(parts)
    for at, part in chosen_pools(fields, parts).items():
        for key, kind in (("gpu", "nvidia"), ("neuron", "neuron")):
            count = cast("int | None", getattr(resources, key))
            has = devices_of(part, kind)
            if not count or not has:
                continue
            if max(has) < count:
                wrong = f"more than a node of {node_types[at]} has: {max(has)}"
                todo = "ask for less, or choose another pool"
                yield refuse(f"resources.{key}", wrong, todo)
            elif not any(each and each % count == 0 for each in has):
                wrong = f"no even share of the {max(has)} of a node: the rest would fit nobody"
                yield refuse(f"resources.{key}", wrong, f"ask for {_shares(max(has))}")


def neuron_devices_are_neighbours(
    resources: Resources, fields: Fields, parts: tuple[Part, ...]
) -> Mistakes:
    """Yield a share of a node whose devices nothing would choose next to each other.

    Source: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/containers/kubernetes-getting-started.html
    """
    count = resources.neuron or 1
    for part in chosen_pools(fields, parts).values():
        has = max(devices_of(part, "neuron"), default=0)
        if 1 < count < has and has % count == 0:
            wrong = f"a part of the {has} devices of a node, which may not be neighbours"
            yield refuse("resources.neuron", wrong, f"ask for 1 or {has}")


def job_has_the_nodes(
    nodes: int,
    min_nodes: int | None,
    fields: Fields,
    parts: tuple[Part, ...],
) -> Mistakes:
    chosen = chosen_pools(fields, parts)
    types = node_types_of(parts)
    counts: Counter[str] = Counter()
    unknown = False
    for at, part in chosen.items():
        count = most_nodes(part)
        unknown = unknown or count is None
        # A job with an order of preference lands on nodes of one type as a whole.
        counts[types[at] if fields.get("prefer") else ""] += count or 0
    most = max(counts.values(), default=0)
    if chosen and not unknown and nodes > most:
        names = ", ".join(str(part.fields.get("name")) for part in chosen.values())
        todo = f"ask for at most {most}, or raise nodes in pool {names}"
        yield refuse("nodes", f"more than the {most} nodes of {names}", todo, got=str(nodes))
    if min_nodes is not None and min_nodes > nodes:
        yield refuse("min_nodes", f"more than nodes, which is {nodes}", "write less")


def processes_share_the_devices(
    processes_per_node: int | None,
    resources: Resources,
    fields: Fields,
    parts: tuple[Part, ...],
) -> Mistakes:
    if processes_per_node is None:
        return
    for part in chosen_pools(fields, parts).values():
        has = processes_of(part, resources)
        if has and (processes_per_node > has or has % processes_per_node):
            wrong = f"not an even share of the {has} GPUs or NeuronCores of a pod"
            yield refuse("processes_per_node", wrong, f"write {_shares(has)}")


def training_keeps_off_controllers(nodes: int, fields: Fields, parts: tuple[Part, ...]) -> Mistakes:
    for part in chosen_pools(fields, parts).values():
        if part.fields.get("role") == "system":
            ways = ("pool", "prefer")
            key = next((each for each in ways if fields.get(each)), "node_selector")
            wrong = "the nodes of controllers and add-ons"
            yield refuse(key, wrong, "choose a pool of another role")


def job_priority_exists(
    priority: str | None, scheduling_priority_classes: Mapping[str, int]
) -> Mistakes:
    if priority is not None and priority not in scheduling_priority_classes:
        todo = near(priority, scheduling_priority_classes)
        yield refuse("priority", "not one of scheduling.priority_classes", todo)


def job_team_exists(team: str | None, hyperpod_task_governance: TaskGovernance | None) -> Mistakes:
    known = hyperpod_task_governance.teams if hyperpod_task_governance else ()
    if team is not None and team not in {each.name for each in known}:
        todo = near(team, [each.name for each in known])
        yield refuse("team", "not one of hyperpod.task_governance.teams", todo)


def job_queue_exists(
    queue: str | None, scheduling_gang_scheduler: str, scheduling_queues: tuple[Queue, ...]
) -> Mistakes:
    if queue is None:
        return
    if scheduling_gang_scheduler != "volcano":
        todo = "leave it out, or set scheduling.gang_scheduler: volcano"
        yield refuse("queue", "queues are Volcano's, which is not installed", todo)
        return
    # Volcano's own `root` takes no jobs.
    known = {volcano.DEFAULT_QUEUE, *(each.name for each in scheduling_queues)}
    if queue not in known:
        yield refuse("queue", "not one of scheduling.queues", near(queue, known))


def job_meets_where_a_server_is(
    rendezvous: str | None, scheduling_rendezvous_backend: str
) -> Mistakes:
    served = {None, "c10d", scheduling_rendezvous_backend}
    if scheduling_rendezvous_backend == "etcd-v2":
        served.add("etcd")  # such a server speaks both versions of the API
    if rendezvous not in served:
        todo = f"use c10d, or set scheduling.rendezvous.backend: {rendezvous}"
        yield refuse("rendezvous", "no server of that kind runs in the cluster", todo)


def mounts_have_a_path_each(volumes: tuple[Volume, ...] | None) -> Mistakes:
    seen: set[str] = set()
    for number, volume in enumerate(volumes or ()):
        if volume.mount_path in seen or volume.mount_path in _TAKEN_PATHS:
            wrong = "a path at which something else is mounted"
            yield refuse(f"volumes.{number}.mount_path", wrong, "choose another")
        seen.add(volume.mount_path)


def job_namespace_exists(namespace: str, parts: tuple[Part, ...]) -> Mistakes:
    known = {"training"} | {
        str(part.fields["namespace"])
        for part in parts
        if part.kind is Claim and "namespace" in part.fields
    }
    if namespace not in known:
        yield refuse("namespace", "not one that the cluster file makes", near(namespace, known))


def job_image_is_known(image: str | None, images_repositories: tuple[str, ...]) -> Mistakes:
    if image is None:
        return
    repository = image.partition("@")[0].partition(":")[0]
    host, slash, _ = image.partition("/")
    if slash and ("." in host or ":" in host):
        return
    if repository not in images_repositories:
        todo = near(repository, images_repositories)
        todo += "; for another registry write its host too, as docker.io/…"
        yield refuse("image", "not one of images.repositories", todo)


def job_has_one_program(script: str | None, command: tuple[str, ...]) -> Mistakes:
    if script is not None and command:
        wrong = "a script for torchrun and a command beside it"
        yield refuse("command", wrong, "keep script or command")


def cache_has_a_compiler(
    compile_cache: CompileCache | None,
    fields: Fields,
    parts: tuple[Part, ...],
) -> Mistakes:
    if compile_cache is None:
        return
    chosen = chosen_pools(fields, parts).values()
    if any(not all(devices_of(part, "neuron")) for part in chosen):
        wrong = "compiled graphs are for Neuron devices, which the pool has none of"
        yield refuse("compile_cache", wrong, "leave it out", got="")
    if fields.get("command"):
        yield refuse("compile_cache", "a command starts no torchrun", "name a script", got="")


def spot_notice_is_long_enough(
    grace_period_seconds: int,
    fields: Fields,
    parts: tuple[Part, ...],
) -> Mistakes:
    for part in chosen_pools(fields, parts).values():
        if "spot" in capacity_of(part) and grace_period_seconds > _SPOT_NOTICE_SECONDS:
            wrong = f"longer than the {_SPOT_NOTICE_SECONDS} seconds of a Spot notice"
            yield refuse("grace_period_seconds", wrong, "save the checkpoint in less: write 110")


def capacity_is_the_pools(
    capacity: str | None,
    fields: Fields,
    parts: tuple[Part, ...],
) -> Mistakes:
    if capacity is None:
        return
    chosen = chosen_pools(fields, parts)
    pools = chosen or {part.at: part for part in parts if part.kind is Pool}
    offered = {each for part in pools.values() for each in capacity_of(part)}
    if offered and capacity not in offered:
        known = sorted(offered)
        yield refuse("capacity", "capacity of no pool that it may run on", near(capacity, known))


def variables_do_no_harm(env: Mapping[str, str]) -> Mistakes:
    for name, value in env.items():
        if (why := runtime_environment.why_not(name, value)) is not None:
            yield Mistake(("env", name), why.wrong, why.todo)


def job_uses_one_accelerator(gpu: int | None, neuron: int | None) -> Mistakes:
    if gpu is not None and neuron is not None:
        yield refuse("neuron", "GPUs and Neuron devices in one pod", "keep gpu or neuron")


def _shares(count: int) -> str:
    return ", ".join(str(share) for share in range(1, count + 1) if count % share == 0)
