"""Graphs and alarms of services: requests that wait, tokens, time to first token."""

import math
from collections.abc import Iterator, Mapping, Sequence

from ultrascale import config
from ultrascale.plan.model import (
    AlarmPlan,
    FleetMetricsPlan,
    GraphPlan,
    LinePlan,
    ServiceDemandPlan,
)
from ultrascale.plan.observability import fleet_metrics
from ultrascale.plan.observability.dashboard_lines import Lines, graph

_WAITING_MINUTES = 15
# Beside the time that its program may take to start: nodes are launched, and images pulled.
_SILENT_MINUTES = 15
# CloudWatch evaluates periods below an hour over a day at most.
# Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
_LONGEST_SECONDS = 86_400
_SECONDS, _MILLION = 3_600, 1_000_000


def service_graphs(
    cluster: config.Cluster, usd_per_hour: Mapping[str, float]
) -> Iterator[GraphPlan]:
    """Yield the graphs of the file's services whose server tells its metrics; none without any.

    Args:
        cluster: The cluster file.
        usd_per_hour: Price of an hour of a replica, by the service's name, where it is known.
    """
    services = fleet_metrics.measured_services(cluster)
    if not services:
        return
    lines = Lines(cluster=cluster.name)

    def of(measures: Mapping[str, str]) -> Sequence[LinePlan]:
        return [
            lines.own(measure, f"{name.partition('/')[2]}{label}", Service=name)
            for name in services
            for measure, label in measures.items()
        ]

    yield graph("Requests that wait", of({"service_waiting": ""}), "requests")
    yield graph("Requests that are answered", of({"service_running": ""}), "requests")
    yield graph(
        "Tokens a second",
        of({"service_generated_tokens": ": answers", "service_prompt_tokens": ": prompts"}),
        "tokens a second",
    )
    yield graph(
        "Time to first token",
        of({"service_first_token_half": ": half within", "service_first_token_most": ": 95 %"}),
        "seconds",
    )
    costs = [
        LinePlan(
            label=short,
            metrics={
                "replicas": fleet_metrics.metric(cluster.name, "service_replicas", Service=name),
                "tokens": fleet_metrics.metric(
                    cluster.name, "service_generated_tokens", Service=name
                ),
            },
            expression=f"{usd_per_hour[short] * _MILLION / _SECONDS:.6g} * replicas / tokens",
        )
        for name in services
        if (short := name.partition("/")[2]) in usd_per_hour
    ]
    if costs:
        yield graph("Cost of a million generated tokens", costs, "US dollars")
    yield graph("KV cache in use, average replica", of({"service_cache": ""}), "percent")
    yield graph("Replicas that answer", of({"service_replicas": ""}), "replicas")


def service_alarms(
    cluster: config.Cluster,
    function: FleetMetricsPlan,
    services: Sequence[ServiceDemandPlan],
) -> Iterator[AlarmPlan]:
    """Yield the alarms of the same services: more requests than it answers, and none that do.

    Args:
        cluster: The cluster file.
        function: The function that measures them.
        services: Services of the file that have nodes.
    """
    startup = {f"{each.namespace}/{each.name}": each.startup_seconds for each in services}
    seconds = function.interval_minutes * 60
    for name, job in fleet_metrics.measured_services(cluster).items():
        short = name.partition("/")[2]
        most, what = job.most_replicas, "replicas"
        if job.autoscale is not None:
            what = "autoscale.max"
        yield AlarmPlan(
            name=f"service-waiting-{short}",
            description=(
                f"More requests have waited for {short} for {_WAITING_MINUTES} minutes than its "
                f"{most:,} replicas take up: raise {what} of the service, or see why replicas are "
                f"missing (`ultrascale status FILE {short}`)."
            ),
            metrics={"m": fleet_metrics.metric(cluster.name, "service_waiting", Service=name)},
            comparison="GreaterThanThreshold",
            threshold=_most_waiting(job),
            period_seconds=seconds,
            periods=_WAITING_MINUTES * 60 // seconds,
            missing_is_wrong=False,
        )
        silent = min(_SILENT_MINUTES * 60 + startup.get(name, 0), _LONGEST_SECONDS)
        yield AlarmPlan(
            name=f"service-silent-{short}",
            description=(
                f"No pod of {short} is ready and tells its metrics, for longer than it takes to "
                f"start: `ultrascale status FILE {short}` says what its pods wait for, and "
                f"`ultrascale logs {short} -n {name.partition('/')[0]}` what they print. A service "
                "that was cancelled, or never submitted, raises no alarm."
            ),
            metrics={"m": fleet_metrics.metric(cluster.name, "service_replicas", Service=name)},
            comparison="LessThanThreshold",
            threshold=1,
            period_seconds=seconds,
            periods=math.ceil(silent / seconds) if silent < _LONGEST_SECONDS else silent // seconds,
            # Nothing is measured of a service without pods.
            missing_is_wrong=False,
        )


def _most_waiting(job: config.ServiceJob) -> float:
    """Return the requests that may wait while all replicas are there.

    Where their wait adds replicas, so many wait as no further one is added for.
    """
    scale = job.autoscale
    target = scale.target if scale is not None and scale.metric == "waiting" else 1
    return target * job.most_replicas
