"""The function that measures the fleet: what its metrics are called, and what it is told."""

from collections.abc import Iterator, Mapping, Sequence

from ultrascale import catalog, config
from ultrascale.catalog import (
    addons,
    eks,
    hyperpod,
    kueue,
    leaderworkerset,
    mountpoint,
    prices,
    vllm,
    volcano,
)
from ultrascale.core.table import all_parts
from ultrascale.plan import names, retention
from ultrascale.plan.jobs.namespaces import namespace_of
from ultrascale.plan.jobs.vllm import options_of
from ultrascale.plan.model import FleetMetricsPlan, MetricPlan, PoolPlan
from ultrascale.plan.namespaces import plan_namespaces
from ultrascale.plan.placement import topology_layers
from ultrascale.plan.platform import plan_dcgm_exporter
from ultrascale.plan.queueing import queued_pools, queues_of

NAMESPACE = "Ultrascale"

# Name and unit of each measure; the dollar is none of CloudWatch's units.
METRICS: Mapping[str, tuple[str, str]] = {
    "nodes": ("Nodes", "Count"),
    "accelerators": ("Accelerators", "Count"),
    "accelerators_in_use": ("AcceleratorsInUse", "Count"),
    "burst_nodes": ("BurstNodes", "Count"),
    "reserved_idle": ("ReservedIdleAccelerators", "Count"),
    "reserved_idle_beside_burst": ("ReservedIdleBesideBurst", "Count"),
    "broken_nodes": ("BrokenNodes", "Count"),
    "nodes_without_topology": ("NodesWithoutTopology", "Count"),
    "hyper_nodes_missing": ("HyperNodesMissing", "Count"),
    "nodes_missing": ("ReservedNodesMissing", "Count"),
    "spend": ("SpendPerHour", "None"),
    "unpriced_nodes": ("UnpricedNodes", "Count"),
    "nodes_in_recovery": ("HyperPodNodesInRecovery", "Count"),
    "nodes_in_checks": ("HyperPodNodesInHealthChecks", "Count"),
    "running_pods": ("RunningPods", "Count"),
    "pending_pods": ("PendingPods", "Count"),
    "running_jobs": ("RunningJobs", "Count"),
    "waiting_jobs": ("WaitingJobs", "Count"),
    "queue_running": ("QueueRunning", "Count"),
    "queue_waiting": ("QueueWaiting", "Count"),
    "gpu_utilization": ("GpuUtilization", "Percent"),
    "sm_activity": ("GpuSmActivity", "Percent"),
    "gpu_nodes_measured": ("GpuNodesMeasured", "Count"),
    "service_replicas": ("ServiceReplicas", "Count"),
    "service_waiting": ("ServiceRequestsWaiting", "Count"),
    "service_running": ("ServiceRequestsRunning", "Count"),
    "service_prompt_tokens": ("ServicePromptTokens", "Count/Second"),
    "service_generated_tokens": ("ServiceGeneratedTokens", "Count/Second"),
    "service_cache": ("ServiceKvCache", "Percent"),
    "service_first_token_half": ("ServiceFirstTokenP50", "Seconds"),
    "service_first_token_most": ("ServiceFirstTokenP95", "Seconds"),
}

# Beyond it, all nodes and pods take the API server longer than a minute should be spent on. At
# 100,000 nodes a run parses some 1.5 GB of JSON, page by page: half a minute of a processor, and
# 90 MB for the names of the nodes.
_LARGE_FLEET_NODES = 5_000
_SMALL = {"interval_minutes": 1, "memory_mib": 512, "timeout_seconds": 60}
# Lambda gives a whole processor from 1,769 MiB on.
# Source: https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
_LARGE = {"interval_minutes": 5, "memory_mib": 1_769, "timeout_seconds": 270}
_MOST_EXPORTERS = 256
_EXPORTER = "dcgm-exporter"
_SERVER: config.Server = "vllm"
_EXPORTER_PORT = 9400
# DCGM's share of time goes from 0 to 100, its profiling counters from 0 to 1.
_EXPORTED: Mapping[str, Mapping[str, object]] = {
    "DCGM_FI_DEV_GPU_UTIL": {"Measure": "gpu_utilization", "Times": 1},
    "DCGM_FI_PROF_SM_ACTIVE": {"Measure": "sm_activity", "Times": 100},
}
# Each list holds what waits and what runs, also while it has no pods.
_KUEUE = ("kueue.x-k8s.io", "v1beta2", "workloads")
_VOLCANO = ("scheduling.volcano.sh", "v1beta1", "podgroups")
_HYPER_NODES = ("topology.volcano.sh", "v1alpha1", "hypernodes")
HYPER_NODE_WITHOUT_NODES = "ultrascale-look-again"
"""Name of the HyperNode that is made and deleted, so that Volcano looks at all nodes again."""


def plan_fleet_metrics(cluster: config.Cluster, pools: Sequence[PoolPlan]) -> FleetMetricsPlan:
    """Return the function that measures ``cluster``."""
    queues = _queues(cluster)
    large = sum(pool.max_nodes for pool in pools) > _LARGE_FLEET_NODES
    return FleetMetricsPlan(
        input=_input(cluster, pools, queues),
        group=names.FLEET_METRICS_GROUP,
        queue_kinds={queues[0]: queues[2]} if queues else {},
        service_namespaces=_service_namespaces(cluster),
        touched_hyper_node=HYPER_NODE_WITHOUT_NODES if cluster.scheduling.topology_aware else None,
        log_retention_days=retention.METRIC_EVENT_DAYS,
        **(_LARGE if large else _SMALL),
    )


def metric(cluster: str, measure: str, **dimension: str) -> MetricPlan:
    """Return the metric of a measure.

    Args:
        cluster: Name of the cluster.
        measure: Key of `METRICS`.
        dimension: At most one more dimension, with its value.
    """
    name, _ = METRICS[measure]
    return MetricPlan(namespace=NAMESPACE, name=name, dimensions={"Cluster": cluster, **dimension})


def teams(cluster: config.Cluster) -> Mapping[str, str]:
    """Return what each namespace of jobs is called in metrics: its team, or its own name."""
    governance = cluster.hyperpod.task_governance
    own = {plan.name: plan.name for plan in plan_namespaces(cluster) if plan.training}
    shared = {
        names.team_namespace(team.name): team.name
        for team in (governance.teams if governance else ())
    }
    return {**own, **shared}


def queue_names(cluster: config.Cluster) -> tuple[str, ...]:
    """Return the queues that jobs wait in."""
    governance = cluster.hyperpod.task_governance
    if governance is not None:
        return tuple(names.team_queue(team.name) for team in governance.teams)
    scheduling = cluster.scheduling
    if scheduling.engine == "kueue" and not scheduling.queues:
        return (kueue.DEFAULT_LOCAL_QUEUE,)
    return tuple(queue.name for queue in scheduling.queues)


def node_types(pools: Sequence[PoolPlan]) -> tuple[str, ...]:
    """Return the node types of pools, each once."""
    return tuple(dict.fromkeys(pool.labels[names.NODE_TYPE_LABEL] for pool in pools))


def _queues(cluster: config.Cluster) -> tuple[str, str, str] | None:
    engine = cluster.scheduling.engine
    if cluster.hyperpod.task_governance is not None or engine == "kueue":
        return _KUEUE
    return _VOLCANO if engine == "volcano" else None


def _input(
    cluster: config.Cluster, pools: Sequence[PoolPlan], queues: tuple[str, str, str] | None
) -> Mapping[str, object]:
    types = {name for pool in pools for name in pool.instance_types}
    return {
        "Cluster": cluster.name,
        "Namespace": NAMESPACE,
        "Metrics": {key: {"Name": name, "Unit": unit} for key, (name, unit) in METRICS.items()},
        "Labels": {
            "NodeType": names.NODE_TYPE_LABEL,
            "Role": names.ROLE_LABEL,
            "Capacity": names.CAPACITY_LABEL,
            "InstanceType": names.INSTANCE_TYPE_LABEL,
            "Pool": names.POOL_LABEL,
            "Job": names.JOB_LABEL,
            "Health": hyperpod.HEALTH_STATUS,
        },
        "Healthy": hyperpod.HEALTHY,
        "Checking": hyperpod.UNDER_CHECKS,
        "Conditions": list(eks.NODE_CONDITIONS),
        "NodeTypes": {pool.pool: pool.labels[names.NODE_TYPE_LABEL] for pool in pools},
        "Capacities": sorted({pool.purchase for pool in pools}),
        "Accelerators": [names.NVIDIA_GPU, names.NEURON_DEVICE],
        "Parts": _parts(pools),
        "Teams": teams(cluster),
        "LeftOut": _left_out(),
        "Prices": prices.on_demand(cluster.region, sorted(types)),
        "Queues": "/apis/{}/{}/{}".format(*queues) if queues else None,
        "QueueNames": list(queue_names(cluster)),
        "Exporters": _exporters(pools),
        "Services": _services(cluster),
        "Windows": [*_windows(pools)],
        "Topology": {
            "Label": names.network_layer_label(1),
            "Pools": sorted({pool.pool for pool in placed_pools(cluster, pools)}),
            "Labels": [*_layers_from_the_lowest(cluster, pools)],
            "HyperNodes": "/apis/{}/{}/{}".format(*_HYPER_NODES)
            if cluster.scheduling.topology_aware
            else "",
            "Touched": HYPER_NODE_WITHOUT_NODES,
        },
    }


def _layers_from_the_lowest(cluster: config.Cluster, pools: Sequence[PoolPlan]) -> Iterator[str]:
    if cluster.scheduling.topology_aware:
        yield from map(names.network_layer_label, range(topology_layers(pools), 0, -1))


def placed_pools(cluster: config.Cluster, pools: Sequence[PoolPlan]) -> list[PoolPlan]:
    """Return the pools whose nodes have to say where in AWS's network they are."""
    if cluster.scheduling.engine == "kueue":
        queues = queues_of(cluster.scheduling, queued_pools(pools))
        placing = {name for queue in queues if queue.topology for name in queue.prefer}
        return [pool for pool in pools if pool.pool in placing]
    if not cluster.scheduling.topology_aware:
        return []
    return [pool for pool in pools if all(map(volcano.is_placed, pool.instance_types))]


def _windows(pools: Sequence[PoolPlan]) -> Iterator[Mapping[str, object]]:
    """Yield when nodes are paid for; an On-Demand Capacity Reservation has no end in the file."""
    owed = owed_pools(pools)
    for name, pool in {pool.pool: pool for pool in owed}.items():
        window = pool.window
        yield {
            "Pool": name,
            "Starts": None if window is None else window.starts.isoformat(),
            "Until": None if window is None else window.usable_until.isoformat(),
            "Nodes": sum(each.initial_nodes for each in owed if each.pool == name),
        }


def owed_pools(pools: Sequence[PoolPlan]) -> list[PoolPlan]:
    """Return the pools whose nodes are paid for, as many as the file says, and so have to be there.

    Calendars of Capacity Blocks tell of theirs, and of a pool that pods size nobody knows how many.
    """
    return [
        pool
        for pool in pools
        if (pool.is_hyperpod and pool.window)
        or (pool.purchase == "odcr" and pool.sized_by == "file")
    ]


def _parts(pools: Sequence[PoolPlan]) -> Mapping[str, float]:
    """Return what each resource is of a whole accelerator.

    A pod may ask for NeuronCores instead of devices. Where the types of a cluster have different
    numbers of them, those of the first type count.
    """
    whole = {names.NVIDIA_GPU: 1.0, names.NEURON_DEVICE: 1.0}
    for pool in pools:
        accelerator = catalog.lookup(pool.instance_types[0]).accelerator
        known = accelerator is not None and accelerator.knows("neuron_cores_logical")
        if accelerator is not None and accelerator.kind == "neuron" and known:
            return {
                **whole,
                names.NEURON_CORE: accelerator.count / accelerator.neuron_cores_logical,
            }
    return whole


def _left_out() -> list[str]:
    """Return the namespaces that hold nothing but the parts of the platform."""
    own = {
        names.SYSTEM_NAMESPACE,
        names.VOLCANO_NAMESPACE,
        names.JOBSET_NAMESPACE,
        names.KEDA_NAMESPACE,
        names.LWS_NAMESPACE,
        names.KUEUE_NAMESPACE,
        mountpoint.NAMESPACE,
    }
    own |= {name for part in all_parts() for name in part.controller_namespaces}
    return sorted({*own, *(addon.namespace for addon in addons.known_addons().values())})


def _exporters(pools: Sequence[PoolPlan]) -> Mapping[str, object] | None:
    """Return our own GPU exporters; those of HyperPod's nodes send to CloudWatch themselves."""
    if plan_dcgm_exporter(pools) is None:
        return None
    return {
        "Path": f"/api/v1/namespaces/{names.SYSTEM_NAMESPACE}/pods",
        "Selector": f"app.kubernetes.io/name={_EXPORTER}",
        "Port": _EXPORTER_PORT,
        "Most": _MOST_EXPORTERS,
        "Metrics": _EXPORTED,
    }


def measured_services(cluster: config.Cluster) -> Mapping[str, config.ServiceJob]:
    """Return the services whose server tells its metrics, by their names in metrics."""
    return {
        f"{namespace_of(cluster, name, job)}/{name}": job
        for name, job in cluster.jobs.items()
        if isinstance(job, config.ServiceJob) and _tells_metrics(job)
    }


def _tells_metrics(job: config.ServiceJob) -> bool:
    if config.server_of(job) != _SERVER:
        return False
    return not options_of(job).disable_log_stats


def _service_namespaces(cluster: config.Cluster) -> tuple[str, ...]:
    return tuple(sorted({name.partition("/")[0] for name in measured_services(cluster)}))


def _services(cluster: config.Cluster) -> Mapping[str, object] | None:
    """Return how the metrics of services are read, those of jobs beside the file's among them."""
    namespaces = _service_namespaces(cluster)
    if not namespaces:
        return None
    return {
        "Namespaces": list(namespaces),
        "ServerLabel": names.SERVER_LABEL,
        "Server": _SERVER,
        "LeaderLabel": leaderworkerset.WORKER_LABEL,
        "Port": names.SERVING_PORT,
        "Path": vllm.METRICS_PATH,
        "Most": _MOST_EXPORTERS,
        "Names": {
            "Waiting": vllm.WAITING,
            "Running": vllm.RUNNING,
            "Cache": vllm.KV_CACHE_USAGE,
            "PromptTokens": vllm.PROMPT_TOKENS,
            "GeneratedTokens": vllm.GENERATION_TOKENS,
            "FirstToken": vllm.TIME_TO_FIRST_TOKEN,
        },
    }


def measured_gpu_pools(pools: Sequence[PoolPlan]) -> list[PoolPlan]:
    """Return the pools whose GPUs the function reads: those with an exporter of ours."""
    return [pool for pool in pools if plan_dcgm_exporter([pool]) is not None]


def is_reserved(pool: PoolPlan) -> bool:
    """Return whether a pool's idle accelerators are paid for."""
    return pool.role == "reserved" and pool.accelerator is not None
