"""Services in metrics: requests that wait, tokens, time to first token."""

import math
from collections.abc import Iterator, Mapping, Sequence

from ultrascale import config
from ultrascale.catalog import leaderworkerset, vllm
from ultrascale.lambdas.fleet_metrics.settings import Services
from ultrascale.plan import names
from ultrascale.plan.jobs.namespaces import namespace_of
from ultrascale.plan.jobs.vllm import options_of
from ultrascale.plan.metrics import Lines, graph, metric
from ultrascale.plan.model import (
    AlarmPlan,
    GraphPlan,
    LinePlan,
    PoolPlan,
    ScrapedPods,
    ServiceDemandPlan,
    Watch,
)
from ultrascale.plan.needs.services import replica_usd_per_hour

_SERVER: config.Server = "vllm"
_MOST_PODS = 256
_WAITING_MINUTES = 15
# Longer than the probe of a pod takes to start it anew.
_STALLED_MINUTES = 10
# Beside the time that its program may take to start: nodes are launched, and images pulled.
_SILENT_MINUTES = 15
# CloudWatch evaluates periods below an hour over a day at most.
# Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
_LONGEST_SECONDS = 86_400
_SECONDS, _MILLION = 3_600, 1_000_000


def watch_services(
    cluster: config.Cluster,
    pools: Sequence[PoolPlan],
    services: Sequence[ServiceDemandPlan],
    seconds: int,
) -> Watch:
    """Return the metrics, graphs and alarms of services.

    Args:
        cluster: The cluster file.
        pools: All pools.
        services: Services of the file that have nodes.
        seconds: Time between two measurements of the fleet, in seconds.
    """
    prices = {
        service.name: replica_usd_per_hour(service, pools, cluster.region) for service in services
    }
    known = {name: price for name, price in prices.items() if price is not None}
    return Watch(
        scraped=_scraped_pods(cluster),
        alarms=(*_alarms(cluster, services, seconds),),
        services=(*_graphs(cluster, known),),
    )


def _scraped_pods(cluster: config.Cluster) -> ScrapedPods | None:
    """Return how the metrics of services are read, also of jobs beside the file's."""
    namespaces = sorted({name.partition("/")[0] for name in _measured_services(cluster)})
    if not namespaces:
        return None
    settings = Services(
        namespaces=namespaces,
        server_label=names.SERVER_LABEL,
        server=_SERVER,
        leader_label=leaderworkerset.WORKER_LABEL,
        port=names.SERVING_PORT,
        path=vllm.METRICS_PATH,
        most=_MOST_PODS,
        names={
            "waiting": vllm.WAITING,
            "running": vllm.RUNNING,
            "cache": vllm.KV_CACHE_USAGE,
            "prompt_tokens": vllm.PROMPT_TOKENS,
            "generated_tokens": vllm.GENERATION_TOKENS,
            "first_token": vllm.TIME_TO_FIRST_TOKEN,
        },
    )
    return ScrapedPods(namespaces=tuple(namespaces), settings=settings)


def _measured_services(cluster: config.Cluster) -> Mapping[str, config.ServiceJob]:
    return {
        f"{namespace_of(cluster, name, job)}/{name}": job
        for name, job in cluster.jobs.items()
        if isinstance(job, config.ServiceJob) and _has_metrics(job)
    }


def _has_metrics(job: config.ServiceJob) -> bool:
    if config.server_of(job) != _SERVER:
        return False
    return not options_of(job).disable_log_stats


def _graphs(cluster: config.Cluster, usd_per_hour: Mapping[str, float]) -> Iterator[GraphPlan]:
    """Yield the graphs of the file's services whose server has metrics; none without any.

    Args:
        cluster: The cluster file.
        usd_per_hour: Price of an hour of a replica, by the service's name, where it is known.
    """
    services = _measured_services(cluster)
    if not services:
        return
    lines = Lines(cluster=cluster.name)

    def lines_of(measures: Mapping[str, str]) -> Sequence[LinePlan]:
        return [
            lines.own(measure, f"{name.partition('/')[2]}{label}", Service=name)
            for name in services
            for measure, label in measures.items()
        ]

    yield graph("Requests that wait", lines_of({"service_waiting": ""}), "requests")
    yield graph("Requests that are answered", lines_of({"service_running": ""}), "requests")
    yield graph(
        "Tokens a second",
        lines_of({"service_generated_tokens": ": answers", "service_prompt_tokens": ": prompts"}),
        "tokens a second",
    )
    yield graph(
        "Time to first token",
        lines_of(
            {"service_first_token_half": ": half within", "service_first_token_most": ": 95 %"}
        ),
        "seconds",
    )
    costs = [
        LinePlan(
            label=short,
            metrics={
                "replicas": metric(cluster.name, "service_replicas", Service=name),
                "tokens": metric(cluster.name, "service_generated_tokens", Service=name),
            },
            expression=f"{usd_per_hour[short] * _MILLION / _SECONDS:.6g} * replicas / tokens",
        )
        for name in services
        if (short := name.partition("/")[2]) in usd_per_hour
    ]
    if costs:
        yield graph("Cost of a million generated tokens", costs, "US dollars")
    yield graph("KV cache in use, average replica", lines_of({"service_cache": ""}), "percent")
    yield graph("Replicas that answer", lines_of({"service_replicas": ""}), "replicas")


def _alarms(
    cluster: config.Cluster, services: Sequence[ServiceDemandPlan], seconds: int
) -> Iterator[AlarmPlan]:
    """Yield the alarms of the same services: too many requests, no progress, and no answers.

    Args:
        cluster: The cluster file.
        services: Services of the file that have nodes.
        seconds: Time between two measurements of the fleet, in seconds.
    """
    startup = {
        f"{service.namespace}/{service.name}": service.startup_seconds for service in services
    }
    for name, job in _measured_services(cluster).items():
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
            metrics={"m": metric(cluster.name, "service_waiting", Service=name)},
            comparison="GreaterThanThreshold",
            threshold=_most_waiting(job),
            period_seconds=seconds,
            periods=_WAITING_MINUTES * 60 // seconds,
            missing_is_wrong=False,
        )
        yield AlarmPlan(
            name=f"service-stalled-{short}",
            description=(
                f"Requests run at {short}, and for {_STALLED_MINUTES} minutes no pod of it has "
                "read or written a token: its nodes are paid for and hang. Pods that stop are "
                f"started anew after five minutes; `ultrascale logs {short} -n "
                f"{name.partition('/')[0]} --previous` has what they printed before, and "
                f"`ultrascale status FILE {short}` their nodes."
            ),
            metrics={
                "requests": metric(cluster.name, "service_running", Service=name),
                "answers": metric(cluster.name, "service_generated_tokens", Service=name),
                "prompts": metric(cluster.name, "service_prompt_tokens", Service=name),
            },
            expression="IF(requests > 0 AND answers + prompts == 0, 1, 0)",
            period_seconds=seconds,
            periods=math.ceil(_STALLED_MINUTES * 60 / seconds),
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
            metrics={"m": metric(cluster.name, "service_replicas", Service=name)},
            comparison="LessThanThreshold",
            threshold=1,
            period_seconds=seconds,
            periods=math.ceil(silent / seconds) if silent < _LONGEST_SECONDS else silent // seconds,
            # A service without pods has no measurements.
            missing_is_wrong=False,
        )


def _most_waiting(job: config.ServiceJob) -> float:
    """Return the requests that may wait while all replicas exist.

    Where their wait adds replicas, it is the number that adds no further one.
    """
    scale = job.autoscale
    target = scale.target if scale is not None and scale.metric == "waiting" else 1
    return target * job.most_replicas
