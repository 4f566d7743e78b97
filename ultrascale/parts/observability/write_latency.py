"""The write canary, and its objective for writes to the API server."""

from collections.abc import Iterator

from ultrascale.catalog import cloudwatch
from ultrascale.parts.observability.model import ObjectivePlan, WriteLatencyPlan
from ultrascale.parts.observability.section import WriteLatencySlo
from ultrascale.plan import names, retention
from ultrascale.plan.metrics import NAMESPACE, graph
from ultrascale.plan.model import (
    AlarmPlan,
    FunctionPlan,
    GraphPlan,
    LinePlan,
    MetricPlan,
)
from ultrascale.plan.model.metrics import Statistic

# Each run hands over to the next. One that comes late by up to half a minute leaves no gap.
_RUN_SECONDS = 90
# Beside the last write, which may take the threshold and its grace, and a start from nothing.
_TIMEOUT_SECONDS = 120
# A write takes less than a millisecond of a processor: Lambda's share of one does not affect the
# measurement. Less memory would only make its start slower.
_MEMORY_MIB = 512
# The shortest in which every day of the week counts once, and AWS's default.
_INTERVAL_DAYS = 7
_BURN_RATE_MINUTES = (60, 360)
_SLOW_MINUTES = 30
_SILENT_MINUTES = 5
_SHARE = "100 * good / total"


def plan_write_latency(cluster: str, slo: WriteLatencySlo) -> WriteLatencyPlan:
    """Return the measurement of the latency of writes to the API server.

    Args:
        cluster: Name of the cluster.
        slo: The objective.
    """
    objective = ObjectivePlan(
        name=f"{cluster}-writes-{slo.threshold_ms}ms",
        description=(
            f"{slo.goal_percent:g} % of the writes to the API server of {cluster} are "
            f"answered within {slo.threshold_ms} ms, as a client in its VPC sees it"
        ),
        good=_metric(cluster, _good_name(slo), "Sum"),
        total=_metric(cluster, "WritesTotal", "Sum"),
        goal_percent=slo.goal_percent,
        interval_days=_INTERVAL_DAYS,
        burn_rate_minutes=_BURN_RATE_MINUTES,
    )
    return WriteLatencyPlan(
        function=_function(cluster, slo),
        namespace=names.WRITE_CANARY_NAMESPACE,
        lease=names.WRITE_CANARY_LEASE,
        objective=objective,
        alarms=(*_alarms(objective, slo),),
    )


def write_latency_graphs(cluster: str, slo: WriteLatencySlo) -> Iterator[GraphPlan]:
    """Yield the graphs of the canary's writes and of the objective for them."""
    objective = plan_write_latency(cluster, slo).objective
    attained = _objective_metric(objective, "AttainmentRate")
    yield graph(
        f"Writes within {slo.threshold_ms} ms",
        [
            LinePlan(
                label="of the canary's writes",
                metrics={"good": objective.good, "total": objective.total},
                expression=_SHARE,
            ),
            LinePlan(label=f"over {objective.interval_days} days", metrics={"m": attained}),
        ],
        "percent",
        limits={"goal": objective.goal_percent},
    )
    durations: tuple[Statistic, ...] = ("p50", "p99")
    yield graph(
        "Duration of the canary's writes",
        [
            LinePlan(label=duration, metrics={"m": _metric(cluster, "WriteMilliseconds", duration)})
            for duration in durations
        ],
        "milliseconds",
        limits={"threshold": slo.threshold_ms},
    )
    yield graph(
        "Burn rate of the objective's error budget",
        [
            LinePlan(
                label=f"over {minutes // 60} h",
                metrics={
                    "m": _objective_metric(
                        objective, "BurnRate", BurnRateWindowMinutes=str(minutes)
                    )
                },
            )
            for minutes in objective.burn_rate_minutes
        ],
        "",
        limits={"just met": 1},
    )


def _function(cluster: str, slo: WriteLatencySlo) -> FunctionPlan:
    lease = f"namespaces/{names.WRITE_CANARY_NAMESPACE}/leases/{names.WRITE_CANARY_LEASE}"
    return FunctionPlan(
        input={
            "Cluster": cluster,
            "Path": f"/apis/coordination.k8s.io/v1/{lease}",
            "ThresholdMilliseconds": slo.threshold_ms,
            "Seconds": _RUN_SECONDS,
            "Namespace": NAMESPACE,
            "Metrics": {
                "Good": _good_name(slo),
                "Total": "WritesTotal",
                "Duration": "WriteMilliseconds",
            },
        },
        group=names.WRITE_CANARY_GROUP,
        interval_minutes=1,
        memory_mib=_MEMORY_MIB,
        timeout_seconds=_TIMEOUT_SECONDS,
        log_retention_days=retention.METRIC_EVENT_DAYS,
    )


def _alarms(objective: ObjectivePlan, slo: WriteLatencySlo) -> Iterator[AlarmPlan]:
    yield AlarmPlan(
        name="write-latency",
        description=(
            f"For {_SLOW_MINUTES} minutes fewer than {slo.goal_percent:g} % of the canary's writes "
            f"were answered within {slo.threshold_ms} ms. See what the dashboard says of seats, "
            "webhooks and the database, and the canary's log for writes that failed."
        ),
        metrics={"good": objective.good, "total": objective.total},
        expression=_SHARE,
        comparison="LessThanThreshold",
        threshold=objective.goal_percent,
        period_seconds=300,
        periods=_SLOW_MINUTES // 5,
        # Another alarm reports a canary that does not write.
        missing_is_wrong=False,
    )
    yield AlarmPlan(
        name="write-latency-objective",
        description=(
            f"The objective {objective.name} is missed: over {objective.interval_days} days fewer "
            f"than {slo.goal_percent:g} % of the writes were answered within {slo.threshold_ms} "
            "ms. Without data there is no objective, or Application Signals does not see it."
        ),
        metrics={"m": _objective_metric(objective, "AttainmentRate")},
        comparison="LessThanThreshold",
        threshold=objective.goal_percent,
        period_seconds=300,
        periods=3,
        missing_is_wrong=True,
    )
    yield AlarmPlan(
        name="write-canary",
        description=(
            f"The canary has written nothing for {_SILENT_MINUTES} minutes: nobody knows how long "
            "writes to the API server take. Its log says why."
        ),
        metrics={"m": objective.total},
        comparison="LessThanThreshold",
        threshold=1,
        period_seconds=60,
        periods=_SILENT_MINUTES,
        missing_is_wrong=True,
    )


def _good_name(slo: WriteLatencySlo) -> str:
    return f"WritesWithin{slo.threshold_ms}ms"


def _metric(cluster: str, name: str, statistic: Statistic) -> MetricPlan:
    return MetricPlan(
        namespace=NAMESPACE,
        name=name,
        dimensions={"ClusterName": cluster},
        statistic=statistic,
    )


def _objective_metric(objective: ObjectivePlan, name: str, **dimension: str) -> MetricPlan:
    return MetricPlan(
        namespace=cloudwatch.APPLICATION_SIGNALS,
        name=name,
        dimensions={"SloName": objective.name, **dimension},
    )
