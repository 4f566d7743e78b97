"""Metrics, dashboard and alarms of a cluster."""

from collections.abc import Sequence

from ultrascale import config
from ultrascale.core.table import all_parts
from ultrascale.parts.observability import fleet_metrics
from ultrascale.parts.observability.alerts import plan_alerts
from ultrascale.parts.observability.container_insights import log_groups, plan_container_insights
from ultrascale.parts.observability.dashboard import Dashboard
from ultrascale.parts.observability.model import Plan
from ultrascale.parts.observability.section import Observability
from ultrascale.parts.observability.services import watch_services
from ultrascale.parts.observability.write_latency import plan_write_latency
from ultrascale.plan import retention
from ultrascale.plan.model import ClusterPlan, PoolPlan, ServiceDemandPlan, Watch
from ultrascale.plan.scale import plan_scale


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
    dashboard = Dashboard(
        cluster, pools, lustre=lustre, watches=watches, slo=slo, insights=insights
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
        fleet_metrics=fleet_metrics.plan_fleet_metrics(cluster, pools, watches),
        write_latency=None if slo is None else plan_write_latency(cluster.name, slo),
        dashboard=dashboard.sections() if stated.dashboards else (),
        alerts=None
        if stated.alarms is None
        else plan_alerts(cluster, stated.alarms, pools, lustre=lustre, watches=watches),
    )


def _watches(
    cluster: config.Cluster, pools: Sequence[PoolPlan], services: Sequence[ServiceDemandPlan]
) -> Sequence[Watch]:
    """Return the metrics, graphs and alarms of parts, in the order of the table of parts."""
    seconds = fleet_metrics.seconds_between(pools)

    def answers(*, engines: bool) -> Sequence[Watch]:
        parts = (part for part in all_parts() if part.is_engine == engines)
        found = (part.watch(cluster, pools, seconds=seconds) for part in parts)
        return [watch for watch in found if watch is not None]

    return (
        *answers(engines=True),
        # It goes to the part of services, as its method `watch`.
        watch_services(cluster, pools, services, seconds),
        *answers(engines=False),
    )


def _in_file_order(cluster: config.Cluster, pools: Sequence[PoolPlan]) -> Sequence[PoolPlan]:
    places = {pool.name: place for place, pool in enumerate(cluster.pools)}
    return sorted(pools, key=lambda pool: places[pool.pool])
