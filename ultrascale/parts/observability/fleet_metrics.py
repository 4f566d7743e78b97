"""The function that measures the fleet, and its input."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from ultrascale import config
from ultrascale.catalog import addons, eks, karpenter, kubernetes, mountpoint, prices
from ultrascale.core.table import all_parts
from ultrascale.lambdas.fleet_metrics.settings import (
    Exporters,
    Initialization,
    LedgerSettings,
    Settings,
    Topology,
    Window,
)
from ultrascale.parts.observability.model import FleetMetricsPlan, LedgerPlan
from ultrascale.plan import names, retention
from ultrascale.plan.metrics import METRICS, NAMESPACE
from ultrascale.plan.model import (
    ManagedNodes,
    NodeHealth,
    PlacedNodes,
    PoolPlan,
    QueuedObjects,
    Watch,
)
from ultrascale.plan.namespaces import plan_namespaces
from ultrascale.plan.needs.pools import price_as_bought
from ultrascale.plan.platform import plan_dcgm_exporter

# Above it, all nodes and pods take the API server longer than a minute should cost. At 100,000
# nodes a run parses some 1.5 GB of JSON, page by page: half a minute of a processor, and 90 MB for
# the names of the nodes.
_LARGE_FLEET_NODES = 5_000
_SMALL = {"interval_minutes": 1, "memory_mib": 512, "timeout_seconds": 60}
# Lambda gives a whole processor from 1,769 MiB on.
# Source: https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
_LARGE = {"interval_minutes": 5, "memory_mib": 1_769, "timeout_seconds": 270}
START_MINUTES = 15
"""Age from which a node that takes no work is broken: plugins and drivers start within a few."""
MOST_EXPORTERS = 256
"""The most exporters that the function asks in a call."""
_EXPORTER = "dcgm-exporter"
_EXPORTER_PORT = 9400
# DCGM's share of time goes from 0 to 100, its profiling counters from 0 to 1.
_EXPORTED: Mapping[str, tuple[str, float]] = {
    "DCGM_FI_DEV_GPU_UTIL": ("gpu_utilization", 1),
    "DCGM_FI_PROF_SM_ACTIVE": ("sm_activity", 100),
}
LOOK_AGAIN = "ultrascale-look-again"
"""Name of the object of a group of nodes that the function makes and deletes where others are
missing, so that their controller looks at all nodes again.
"""
_NO_HEALTH = NodeHealth(label="", healthy="", checking="")
_NO_PLACES = PlacedNodes(pools=(), effect="")


def plan_fleet_metrics(
    cluster: config.Cluster,
    pools: Sequence[PoolPlan],
    watches: Sequence[Watch],
    ledger: LedgerPlan | None,
) -> FleetMetricsPlan:
    """Return the function that measures ``cluster``."""
    queued, placed = queued_objects(watches), placed_nodes(watches)
    scraped = [name for watch in watches if watch.scraped for name in watch.scraped.namespaces]
    of_teams = {name for watch in watches for name in watch.teams}
    return FleetMetricsPlan(
        input=asdict(_settings(cluster, pools, watches, ledger and ledger.settings)),
        group=names.FLEET_METRICS_GROUP,
        queue_kinds={} if queued is None else {queued.group: queued.kind},
        service_namespaces=tuple(name for name in scraped if name not in of_teams),
        team_namespaces=tuple(name for name in scraped if name in of_teams),
        touched_group=None if placed is None or placed.objects is None else LOOK_AGAIN,
        job_namespaces=tuple(space.name for space in plan_namespaces(cluster) if space.training),
        log_retention_days=retention.METRIC_EVENT_DAYS,
        **_size(pools),
    )


def seconds_between(pools: Sequence[PoolPlan]) -> int:
    """Return the time between two measurements, in seconds."""
    return _size(pools)["interval_minutes"] * 60


def _size(pools: Sequence[PoolPlan]) -> Mapping[str, int]:
    return _LARGE if sum(pool.max_nodes for pool in pools) > _LARGE_FLEET_NODES else _SMALL


def queued_objects(watches: Sequence[Watch]) -> QueuedObjects | None:
    """Return the objects of queued jobs; of several engines, those of the last."""
    return next((watch.queued for watch in reversed(watches) if watch.queued is not None), None)


def queue_names(watches: Sequence[Watch]) -> tuple[str, ...]:
    """Return the queues that jobs wait in."""
    queued = queued_objects(watches)
    return () if queued is None else queued.queues


def placed_nodes(watches: Sequence[Watch]) -> PlacedNodes | None:
    """Return the pools whose nodes need labels of their place in AWS's network."""
    return next((watch.placed for watch in watches if watch.placed is not None), None)


def managed_nodes(watches: Sequence[Watch]) -> Sequence[ManagedNodes]:
    """Return the kinds of nodes that services of AWS manage."""
    return [watch.nodes for watch in watches if watch.nodes is not None]


def teams(cluster: config.Cluster, watches: Sequence[Watch]) -> Mapping[str, str]:
    """Return the name of each namespace of jobs in metrics: its team, or its own name."""
    own = {plan.name: plan.name for plan in plan_namespaces(cluster) if plan.training}
    shared = {name: team for watch in watches for name, team in watch.teams.items()}
    return {**own, **shared}


def rates(cluster: config.Cluster, pools: Sequence[PoolPlan]) -> Mapping[str, float]:
    """Return the price of a node-hour of each pool as it was bought, where it is known."""
    known = prices.catalog_prices()
    listed = {pool.pool: price_as_bought(pool, cluster.region, known).value for pool in pools}
    return {name: value for name, value in listed.items() if value is not None}


def node_types(pools: Sequence[PoolPlan]) -> tuple[str, ...]:
    """Return the node types of pools, each once."""
    return tuple(dict.fromkeys(pool.labels[names.NODE_TYPE_LABEL] for pool in pools))


def _settings(
    cluster: config.Cluster,
    pools: Sequence[PoolPlan],
    watches: Sequence[Watch],
    ledger: LedgerSettings | None,
) -> Settings:
    health = next((pool.health for pool in managed_nodes(watches) if pool.health), _NO_HEALTH)
    queued, placed = queued_objects(watches), placed_nodes(watches) or _NO_PLACES
    services = [watch.scraped.settings for watch in watches if watch.scraped is not None]
    return Settings(
        cluster=cluster.name,
        namespace=NAMESPACE,
        metrics=METRICS,
        node_type_label=names.NODE_TYPE_LABEL,
        role_label=names.ROLE_LABEL,
        capacity_label=names.CAPACITY_LABEL,
        instance_type_label=names.INSTANCE_TYPE_LABEL,
        pool_label=names.POOL_LABEL,
        job_label=names.JOB_LABEL,
        health_label=health.label,
        healthy=health.healthy,
        checking=health.checking,
        conditions=eks.NODE_CONDITIONS,
        node_types={pool.pool: pool.labels[names.NODE_TYPE_LABEL] for pool in pools},
        capacities=sorted({pool.purchase for pool in pools}),
        accelerators=(names.NVIDIA_GPU, names.NEURON_DEVICE),
        parts=_parts(pools),
        teams=teams(cluster, watches),
        left_out=_left_out(),
        rates=rates(cluster, pools),
        queues=queued and _path(queued.group, queued.version, queued.kind),
        queue_names=queue_names(watches),
        exporters=_exporters(pools),
        services=next(iter(services), None),
        windows=[*_windows(pools)],
        initialization=Initialization(
            seconds=START_MINUTES * 60,
            taint_suffix=kubernetes.STARTUP_TAINT_SUFFIX,
            taints=(kubernetes.UNINITIALIZED_TAINT, karpenter.UNREGISTERED_TAINT),
            launched=karpenter.NODE_POOL_LABEL,
            initialized=karpenter.INITIALIZED_LABEL,
            offers={pool.pool: _offers(pool) for pool in pools},
        ),
        topology=Topology(
            label=names.network_layer_label(1),
            pools=placed.pools,
            labels=placed.layers,
            hyper_nodes=_path(*placed.objects) if placed.objects is not None else "",
            touched=LOOK_AGAIN,
        ),
        ledger=ledger,
    )


def _offers(pool: PoolPlan) -> list[str]:
    """Return the resources that plugins offer on each node of a pool."""
    devices = [] if pool.accelerator is None else [pool.accelerator]
    return [*devices, names.EFA_INTERFACE] if pool.efa_interfaces else devices


def _path(group: str, version: str, kind: str) -> str:
    return f"/apis/{group}/{version}/{kind}"


def _left_out() -> list[str]:
    own = {
        names.SYSTEM_NAMESPACE,
        mountpoint.NAMESPACE,
        # Each of these belongs in the part of its subject.
    }
    own |= {name for part in all_parts() for name in part.controller_namespaces}
    return sorted({*own, *(addon.namespace for addon in addons.known_addons().values())})


def _windows(pools: Sequence[PoolPlan]) -> Iterator[Window]:
    """Yield the times of paid nodes; an On-Demand Capacity Reservation has no end in the file."""
    owed = owed_pools(pools)
    for name, pool in {pool.pool: pool for pool in owed}.items():
        window = pool.window
        yield Window(
            pool=name,
            starts=None if window is None else window.starts.timestamp(),
            until=None if window is None else window.usable_until.timestamp(),
            nodes=sum(pool.initial_nodes for pool in owed if pool.pool == name),
        )


def owed_pools(pools: Sequence[PoolPlan]) -> list[PoolPlan]:
    """Return the pools whose fixed number of nodes is paid for, and has to exist.

    Calendars of Capacity Blocks report theirs, and the number in a pool sized by pods is unknown.
    """
    return [
        pool
        for pool in pools
        if (pool.facts.is_fixed and pool.window)
        or (pool.purchase == "odcr" and pool.sized_by == "file")
    ]


def _parts(pools: Sequence[PoolPlan]) -> Mapping[str, float]:
    """Return each resource's part of a whole accelerator.

    A pod may ask for NeuronCores instead of devices. Where the types of a cluster have different
    numbers of them, those of the first type count.
    """
    whole = {names.NVIDIA_GPU: 1.0, names.NEURON_DEVICE: 1.0}
    for pool in pools:
        accelerator = pool.specs[0].accelerator
        known = accelerator is not None and accelerator.knows("neuron_cores_logical")
        if accelerator is not None and accelerator.kind == "neuron" and known:
            return {
                **whole,
                names.NEURON_CORE: accelerator.count / accelerator.neuron_cores_logical,
            }
    return whole


def _exporters(pools: Sequence[PoolPlan]) -> Exporters | None:
    """Return our own GPU exporters; those of managed nodes send to CloudWatch themselves."""
    if plan_dcgm_exporter(pools) is None:
        return None
    return Exporters(
        path=f"/api/v1/namespaces/{names.SYSTEM_NAMESPACE}/pods",
        selector=f"app.kubernetes.io/name={_EXPORTER}",
        port=_EXPORTER_PORT,
        most=MOST_EXPORTERS,
        metrics=_EXPORTED,
    )


def measured_gpu_pools(pools: Sequence[PoolPlan]) -> list[PoolPlan]:
    """Return the pools whose GPUs the function reads: those with an exporter of ours."""
    return [pool for pool in pools if plan_dcgm_exporter([pool]) is not None]


def is_reserved(pool: PoolPlan) -> bool:
    """Return whether a pool's idle accelerators are paid for."""
    return pool.role == "reserved" and pool.accelerator is not None
