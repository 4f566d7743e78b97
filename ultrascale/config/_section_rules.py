"""What storage, scheduling, HyperPod and jobs must be to the pools and to each other."""

from collections.abc import Iterator

from ultrascale import catalog
from ultrascale.catalog import lustre as fsx
from ultrascale.catalog import volcano
from ultrascale.config._errors import Mistake, near, refuse
from ultrascale.config._reader import Part, lists, values
from ultrascale.config.hyperpod import TaskGovernance
from ultrascale.config.pools import Pool
from ultrascale.config.scheduling import Queue

Mistakes = Iterator[Mistake]

_RENDEZVOUS_REPLICAS = (1, 3)


def lustre_tier_exists(throughput_mbps_per_tib: int) -> Mistakes:
    if throughput_mbps_per_tib not in fsx.THROUGHPUT_TIERS_MBPS_PER_TIB:
        todo = f"use {', '.join(str(tier) for tier in fsx.THROUGHPUT_TIERS_MBPS_PER_TIB)}"
        yield refuse("throughput_mbps_per_tib", "not a throughput tier of FSx for Lustre", todo)


def lustre_size_exists(capacity_gib: int, throughput_mbps_per_tib: int, efa: bool) -> Mistakes:
    tier = throughput_mbps_per_tib
    known = tier in fsx.THROUGHPUT_TIERS_MBPS_PER_TIB
    if known and not fsx.is_capacity(capacity_gib, tier=tier, efa=efa):
        nearest = fsx.nearest_capacities(capacity_gib, tier=tier, efa=efa)
        wrong = f"not a size at {tier} MB/s per TiB{' with EFA' if efa else ''}"
        yield refuse("capacity_gib", wrong, f"nearest: {' or '.join(str(n) for n in nearest)}")


def lustre_zone_has_a_subnet(zone: str, network_zones: tuple[str, ...]) -> Mistakes:
    if zone not in network_zones:
        todo = f"use one of {', '.join(network_zones)}, or add it there"
        yield refuse("zone", "not one of network.zones", todo)


def lustre_efa_has_clients(efa: bool, zone: str, parts: tuple[Part, ...]) -> Mistakes:
    zones = dict(lists(parts, Pool, "zones"))
    provisioners = dict(values(parts, Pool, "provisioner", str))
    for at, types in lists(parts, Pool, "instance_types") if efa else ():
        specs = [catalog.lookup(str(name)) for name in types]
        barred = sorted({spec.family for spec in specs if not fsx.is_efa_client(spec)})
        # EKS Auto Mode runs Bottlerocket, which is no EFA client of FSx for Lustre.
        # Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/efa-file-systems.html
        if provisioners.get(at) == "auto-mode" and any(spec.accelerator for spec in specs):
            barred = ["EKS Auto Mode"]
        if barred and zone in zones.get(at, ()):
            pool = ".".join(str(key) for key in at)
            wrong = f"{barred[0]} nodes of {pool} cannot reach it over EFA"
            yield refuse("efa", wrong, "set efa: false, or put the pool into another zone")


def hyperpod_addon_has_nodes(hyperpod_addon: bool, provisioners: frozenset[str]) -> Mistakes:
    if hyperpod_addon and "hyperpod" not in provisioners:
        wrong = "no pool has provisioner hyperpod"
        yield refuse("hyperpod_addon", wrong, "leave it out, or add such a pool")


def lustre_bucket_exists(bucket: str, storage_buckets: tuple[str, ...]) -> Mistakes:
    if bucket not in storage_buckets:
        yield refuse("bucket", "not one of storage.buckets", near(bucket, storage_buckets))


def queue_is_legal(name: str) -> Mistakes:
    if name in volcano.OWN_QUEUES:
        yield refuse("name", "a queue that Volcano makes itself", "choose another")


def queue_weight_is_legal(weight: int) -> Mistakes:
    least, most = volcano.QUEUE_WEIGHTS
    if not least <= weight <= most:
        yield refuse("weight", "out of range", f"write {least} to {most}")


def replicas_form_a_quorum(replicas: int) -> Mistakes:
    if replicas not in _RENDEZVOUS_REPLICAS:
        yield refuse("replicas", "not a size of an etcd cluster", "write 1 or 3")


def replicas_have_a_use(backend: str, replicas: int) -> Mistakes:
    if backend == "c10d" and replicas != 1 and replicas in _RENDEZVOUS_REPLICAS:
        wrong = "c10d runs in the job and has no replicas"
        yield refuse("replicas", wrong, "leave it out, or use backend: etcd")


def volcano_is_there(
    gang_scheduler: str, queues: tuple[Queue, ...], topology_aware: bool
) -> Mistakes:
    if gang_scheduler != "none":
        return
    if queues:
        yield refuse("queues", "queues without Volcano", "set gang_scheduler: volcano")
    if topology_aware:
        yield refuse("topology_aware", "needs Volcano", "set gang_scheduler: volcano")


def one_scheduler_governs(
    gang_scheduler: str, hyperpod_task_governance: TaskGovernance | None
) -> Mistakes:
    if gang_scheduler == "volcano" and hyperpod_task_governance is not None:
        wrong = "HyperPod task governance schedules this cluster's jobs by itself"
        yield refuse("gang_scheduler", wrong, "use none, or remove hyperpod.task_governance")


def neuron_extension_has_nodes(
    neuron_scheduler_extension: bool, parts: tuple[Part, ...]
) -> Mistakes:
    kinds: set[str] = set()
    for _, types in lists(parts, Pool, "instance_types"):
        accelerators = (catalog.lookup(str(name)).accelerator for name in types)
        kinds |= {found.kind for found in accelerators if found is not None}
    if neuron_scheduler_extension and "neuron" not in kinds:
        wrong = "no pool has Neuron devices"
        yield refuse("neuron_scheduler_extension", wrong, "leave it out")


def toleration_is_legal(operator: str, value: str | None) -> Mistakes:
    if operator == "Exists" and value is not None:
        wrong = "a value, although any value is tolerated"
        yield refuse("value", wrong, "leave it out, or use operator: Equal")
