"""Metrics, dashboard and alarms of a cluster."""

from collections.abc import Sequence

from ultrascale import config
from ultrascale.plan import retention
from ultrascale.plan.model import (
    LustrePlan,
    ObservabilityPlan,
    PoolPlan,
    ScalePlan,
    ServiceDemandPlan,
)
from ultrascale.plan.observability.alerts import plan_alerts
from ultrascale.plan.observability.container_insights import (
    gpu_exporter_types,
    log_groups,
    plan_container_insights,
)
from ultrascale.plan.observability.dashboard import Dashboard
from ultrascale.plan.observability.fleet_metrics import plan_fleet_metrics
from ultrascale.plan.observability.write_latency import plan_write_latency


def plan_observability(
    cluster: config.Cluster,
    pools: Sequence[PoolPlan],
    lustre: Sequence[LustrePlan],
    scale: ScalePlan,
    services: Sequence[ServiceDemandPlan],
) -> ObservabilityPlan | None:
    """Return what is measured, shown and told; None where the file does not ask for it.

    Raises:
        CatalogError: No source states a version of an add-on that it needs.
    """
    observability = cluster.observability
    if observability is None:
        return None
    slo = observability.write_latency_slo
    function = plan_fleet_metrics(cluster, pools)
    insights = scale.measured_nodes == "all"
    dashboard = Dashboard(
        cluster,
        pools,
        lustre=lustre,
        hyperpod_gpus=insights and bool(gpu_exporter_types(cluster, pools)),
        insights=insights,
        services=services,
    )
    return ObservabilityPlan(
        addon=plan_container_insights(cluster, pools, scale),
        log_groups=log_groups(cluster),
        log_retention_days=retention.LOG_DAYS,
        fleet_metrics=function,
        write_latency=None if slo is None else plan_write_latency(cluster.name, slo),
        dashboard=dashboard.sections() if observability.dashboards else (),
        alerts=plan_alerts(cluster, pools, lustre=lustre, function=function, services=services),
    )
