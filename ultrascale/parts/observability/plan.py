"""Metrics, dashboard and alarms of a cluster, and the configuration of CloudWatch's add-on."""

from collections.abc import Iterator, Mapping, Sequence

from ultrascale import catalog, config
from ultrascale.catalog import addons, cloudwatch
from ultrascale.core.table import all_parts
from ultrascale.parts.observability import fleet_metrics
from ultrascale.parts.observability.alerts import plan_alerts
from ultrascale.parts.observability.dashboard import Dashboard
from ultrascale.parts.observability.ledger import plan_ledger
from ultrascale.parts.observability.model import Plan
from ultrascale.parts.observability.section import Observability
from ultrascale.parts.observability.services import watch_services
from ultrascale.parts.observability.write_latency import plan_write_latency
from ultrascale.plan import names, retention
from ultrascale.plan.addons import ON_SYSTEM_NODES, installed_addon
from ultrascale.plan.model import (
    AddonPlan,
    ClusterPlan,
    ManagedNodes,
    PoolPlan,
    ServiceDemandPlan,
    Watch,
)
from ultrascale.plan.scale import plan_scale

# --- Configuration of CloudWatch's add-on: one exporter of each kind on a node --------------------


_EVERY_TAINT = [{"operator": "Exists"}]
ON_SAMPLED_NODES: Mapping[str, object] = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
                for key, value in (
                    (names.ROLE_LABEL, names.SYSTEM_ROLE),
                    (names.SAMPLED_LABEL, "true"),
                )
            ]
        }
    }
}
"""Affinity of agents that need not run on every node."""


def plan_container_insights(
    cluster: config.Cluster,
    pools: Sequence[PoolPlan],
    managed: Sequence[ManagedNodes],
    *,
    insights: bool,
    logs: bool,
) -> AddonPlan:
    """Return CloudWatch's add-on.

    On a large fleet its DaemonSets run on system nodes and on labelled ones, and Container
    Insights, whose agent on each node asks the API server, is off.

    Args:
        cluster: The cluster file.
        pools: Its pools.
        managed: Kinds of nodes that services of AWS manage.
        insights: Whether Container Insights measures the nodes.
        logs: Whether the logs of containers and nodes are sent.

    Raises:
        CatalogError: No source states a version for the cluster's.
    """
    with_gpus = [nodes for nodes in managed if nodes.gpus and insights]
    gpus = [f"{pool.type_prefix}{name}" for pool in with_gpus for name in _types("nvidia")]
    neuron = _neuron_monitor_types(pools, managed) if insights else ()
    placed: Mapping[str, object] = {} if insights else {"affinity": ON_SAMPLED_NODES}
    fluent_bit: Mapping[str, object] = {"fluentBit": placed} if placed else {}
    settings: Mapping[str, object] = {
        # One agent, on each node: the default's other one only serves features that are off below.
        "agents": [{"name": "cloudwatch-agent", **placed}],
        # All of its DaemonSets have to run beside the accelerators.
        "tolerations": _EVERY_TAINT,
        "manager": {"affinity": ON_SYSTEM_NODES},
        # Accelerators, EFA and HyperPod are part of it.
        "containerInsights": {"enabled": insights},
        "otelContainerInsights": {"enabled": False},
        # It would change every pod at its creation, and is billed by itself.
        "applicationSignals": {"enabled": False},
        "containerLogs": {"enabled": logs, **fluent_bit},
        "dcgmExporter": _exporter(gpus, *(pool.compute_type for pool in with_gpus)),
        "neuronMonitor": _exporter(neuron),
    }
    return installed_addon(cluster, addons.CLOUDWATCH_OBSERVABILITY, settings)


def _types(kind: str) -> Iterator[str]:
    for name, spec in sorted(catalog.INSTANCE_TYPES.items()):
        if spec.announced and spec.accelerator and spec.accelerator.kind == kind:
            yield name


def _neuron_monitor_types(
    pools: Sequence[PoolPlan], managed: Sequence[ManagedNodes]
) -> tuple[str, ...]:
    """Return the instance types whose Neuron devices the monitor of the add-on reads.

    It takes the place of ours, wherever that runs, and its own list of types lacks some.
    """
    if not any(pool.accelerator == names.NEURON_DEVICE for pool in pools):
        return ()
    plain = (*_types("neuron"),)
    prefixes = [nodes.type_prefix for nodes in managed if nodes.neuron]
    return (*plain, *(f"{prefix}{name}" for prefix in prefixes for name in plain))


def _exporter(instance_types: Sequence[str], *labels: tuple[str, str]) -> Mapping[str, object]:
    if not instance_types:
        return {"enabled": False}
    terms = {names.INSTANCE_TYPE_LABEL: [*instance_types]} | {key: [own] for key, own in labels}
    expressions = [
        {"key": key, "operator": "In", "values": values} for key, values in terms.items()
    ]
    required = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    return {
        "enabled": True,
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
    }


def log_groups(cluster: str, *, logs: bool) -> tuple[str, ...]:
    """Return the log groups that the add-on writes to.

    Args:
        cluster: Name of the cluster.
        logs: Whether the logs of containers and nodes are sent.
    """
    kinds = cloudwatch.CONTAINER_LOGS if logs else ()
    return tuple(
        cloudwatch.log_group(cluster, kind) for kind in (cloudwatch.PERFORMANCE_LOGS, *kinds)
    )


# --- Metrics, dashboard and alarms of a cluster ---------------------------------------------------


def plan_observability(cluster: config.Cluster, stated: Observability, core: ClusterPlan) -> Plan:
    """Return the metrics, dashboard and alarms of a cluster.

    Args:
        cluster: The cluster file.
        stated: Its section on metrics.
        core: The plan of the core.

    Raises:
        CatalogError: No source states a version of an add-on that it needs.
    """
    pools = _in_file_order(cluster, core.all_pools)
    lustre, slo = core.storage.lustre, stated.write_latency_slo
    watches = _watches(cluster, pools, core.services)
    insights = plan_scale(cluster).measured_nodes == "all"
    ledger = plan_ledger(cluster, stated, pools)
    dashboard = Dashboard(
        cluster, pools, lustre=lustre, watches=watches, slo=slo, insights=insights, ledger=ledger
    )
    return Plan(
        addon=plan_container_insights(
            cluster,
            pools,
            fleet_metrics.managed_nodes(watches),
            insights=insights,
            logs=stated.container_logs,
        ),
        written_logs=log_groups(cluster.name, logs=stated.container_logs),
        log_retention_days=retention.LOG_DAYS,
        fleet_metrics=fleet_metrics.plan_fleet_metrics(cluster, pools, watches, ledger),
        ledger=ledger,
        write_latency=None if slo is None else plan_write_latency(cluster.name, slo),
        dashboard=dashboard.sections() if stated.dashboards else (),
        alerts=None
        if stated.alarms is None
        else plan_alerts(
            cluster, stated.alarms, pools, lustre=lustre, watches=watches, ledger=ledger
        ),
    )


def _watches(
    cluster: config.Cluster, pools: Sequence[PoolPlan], services: Sequence[ServiceDemandPlan]
) -> Sequence[Watch]:
    seconds = fleet_metrics.seconds_between(pools)

    def answers(*, engines: bool) -> Sequence[Watch]:
        parts = (part for part in all_parts() if part.is_engine == engines)
        watches = (part.watch(cluster, pools, seconds=seconds) for part in parts)
        return [watch for watch in watches if watch is not None]

    return (
        *answers(engines=True),
        # It belongs in the part of services, as its method `watch`.
        watch_services(cluster, pools, services, seconds),
        *answers(engines=False),
    )


def _in_file_order(cluster: config.Cluster, pools: Sequence[PoolPlan]) -> Sequence[PoolPlan]:
    places = {pool.name: place for place, pool in enumerate(cluster.pools)}
    return sorted(pools, key=lambda pool: places[pool.pool])
