"""Graphs and alarms on EKS's metrics of the control plane."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ultrascale import config
from ultrascale.catalog import eks
from ultrascale.plan.metrics import Lines, control_plane, graph
from ultrascale.plan.model import AlarmPlan, GraphPlan, MetricPlan

_GB = 10**9
_SEATS_SHARE = 0.8
_DATABASE_SHARE = 0.75
_FAILED_PERCENT = 1.0
# Kubernetes' own objectives, in seconds at the 99th percentile of five minutes.
# Source: https://github.com/kubernetes/community/blob/master/sig-scalability/slos/slos.md
_WRITE_SECONDS = 1.0
_LIST_SECONDS = 30.0
_SUSTAINED_MINUTES = 10
_SOON_MINUTES = 5

_SEATS = "apiserver_flowcontrol_current_executing_seats"
_DATABASE = "etcd_mvcc_db_total_size_in_use_in_bytes"
_REQUESTS = "apiserver_request_total"
_DURATION = "apiserver_request_duration_seconds_{}_P99"
_WEBHOOKS = "apiserver_admission_webhook_admission_duration_seconds_{}_P99"
_ATTEMPTS = "scheduler_schedule_attempts_{}"
_PENDING = "scheduler_pending_pods_{}"
_WRITES = ("PUT", "PATCH", "POST", "DELETE")
_WEBHOOK_KINDS = {"mutating": "ADMIT", "validating": "VALIDATING"}


class _Limits(NamedTuple):
    """Limits that a control plane is sized for; None if EKS scales it by itself."""

    tier: str
    seats: int | None
    pods_per_second: int | None
    database_bytes: int


def control_plane_graphs(cluster: str, kubernetes: config.Kubernetes) -> Iterator[GraphPlan]:
    """Yield the graphs of a control plane, with the limits that its tier has."""
    lines, limits = Lines(cluster=cluster), _limits(kubernetes)
    yield graph(
        "API server seats in use",
        [lines.api_at_once(_SEATS, "in use")],
        "seats",
        limits=_mark(f"limit of {limits.tier}", limits.seats),
    )
    yield from _requests(lines)
    yield graph(
        "P99 latency of writes",
        [lines.api(_DURATION.format(verb), verb) for verb in _WRITES],
        "seconds",
        limits={"Kubernetes' objective": _WRITE_SECONDS},
    )
    yield graph(
        "P99 latency of reads",
        [lines.api(_DURATION.format(verb), verb) for verb in ("GET", "LIST")],
        "seconds",
        limits={"Kubernetes' objective for lists": _LIST_SECONDS},
    )
    yield graph(
        "P99 latency of admission webhooks",
        [lines.api(_WEBHOOKS.format(key), label) for label, key in _WEBHOOK_KINDS.items()],
        "seconds",
    )
    yield graph(
        "etcd database",
        [
            lines.api(_DATABASE, "in use", statistic="Maximum"),
            lines.api("etcd_mvcc_db_total_size_in_bytes", "allocated", statistic="Maximum"),
        ],
        "bytes",
        limits={f"limit of {limits.tier}": limits.database_bytes},
    )
    yield from _scheduler(lines, limits)


def _requests(lines: Lines) -> Iterator[GraphPlan]:
    yield graph(
        "Requests in flight",
        [
            lines.api_at_once("apiserver_current_inflight_requests_MUTATING", "writes"),
            lines.api_at_once("apiserver_current_inflight_requests_READONLY", "reads"),
        ],
        "requests",
    )
    yield graph(
        "Requests a second",
        [
            lines.api_a_second(_REQUESTS, "all"),
            lines.api_a_second(f"{_REQUESTS}_LIST_PODS", "lists of pods"),
        ],
        "requests a second",
    )
    yield graph(
        "Refused and failed requests a second",
        [
            lines.api_a_second(f"{_REQUESTS}_4XX", "4XX"),
            lines.api_a_second(f"{_REQUESTS}_429", "429"),
            lines.api_a_second(f"{_REQUESTS}_5XX", "5XX"),
        ],
        "requests a second",
    )


def _scheduler(lines: Lines, limits: _Limits) -> Iterator[GraphPlan]:
    yield graph(
        "Scheduling attempts a second",
        [
            lines.api_a_second(_ATTEMPTS.format(result), result.lower())
            for result in ("SCHEDULED", "UNSCHEDULABLE", "ERROR")
        ],
        "attempts a second",
        limits=_mark(f"pods a second of {limits.tier}", limits.pods_per_second),
    )
    yield graph(
        "Pods that wait for the scheduler",
        [
            lines.api_at_once(_PENDING.format(queue), queue.lower())
            for queue in ("ACTIVEQ", "BACKOFF", "UNSCHEDULABLE", "GATED")
        ],
        "pods",
        stacked=True,
    )


def control_plane_alarms(cluster: str, kubernetes: config.Kubernetes) -> Iterator[AlarmPlan]:
    """Yield the control plane's alarms, which go off before its users notice.

    Pods that are unschedulable are no alarm: a queue of jobs that waits for nodes looks the same.
    """
    limits = _limits(kubernetes)
    if limits.seats is not None:
        yield _alarm(
            "api-seats",
            f"More than {_SEATS_SHARE:.0%} of the {limits.seats:,} API server seats of "
            f"{limits.tier} are in use: soon requests wait, then they are refused with 429. See "
            "who lists much (the audit log), or choose a larger kubernetes.control_plane_tier.",
            {"m": control_plane(cluster, _SEATS, "Sum")},
            above=_SEATS_SHARE * limits.seats,
            minutes=_SOON_MINUTES,
        )
    yield _alarm(
        "etcd-database",
        f"The objects of the cluster fill more than {_DATABASE_SHARE:.0%} of the "
        f"{limits.database_bytes // _GB} GB that etcd has with {limits.tier}. When it is full the "
        "API server takes no writes: delete finished jobs, events and what else is not needed.",
        {"m": control_plane(cluster, _DATABASE, "Maximum")},
        above=_DATABASE_SHARE * limits.database_bytes,
        minutes=_SOON_MINUTES,
    )
    yield from _request_alarms(cluster)
    yield from _latency_alarms(cluster)
    yield _alarm(
        "scheduler-errors",
        "The scheduler fails by itself, not for want of room: pods wait although nodes are free. "
        "Its log is in the log group of the control plane.",
        {"m": control_plane(cluster, _ATTEMPTS.format("ERROR"), "Sum")},
        above=0,
        minutes=_SOON_MINUTES,
    )


def _request_alarms(cluster: str) -> Iterator[AlarmPlan]:
    yield _alarm(
        "api-throttled",
        f"The API server has refused requests with 429 in each of {_SUSTAINED_MINUTES} minutes: "
        "some client asks more than its priority level allows. The audit log says which.",
        {"m": control_plane(cluster, f"{_REQUESTS}_429", "Sum")},
        above=0,
        minutes=_SUSTAINED_MINUTES,
    )
    yield _alarm(
        "api-errors",
        f"More than {_FAILED_PERCENT:g} % of the requests to the API server end in a 5XX. See "
        "whether a webhook fails, then ask AWS.",
        {
            "failed": control_plane(cluster, f"{_REQUESTS}_5XX", "Sum"),
            "total": control_plane(cluster, _REQUESTS, "Sum"),
        },
        "100 * failed / total",
        above=_FAILED_PERCENT,
        minutes=_SOON_MINUTES,
    )


def _latency_alarms(cluster: str) -> Iterator[AlarmPlan]:
    def slowest(name: str, keys: tuple[str, ...]) -> Mapping[str, MetricPlan]:
        return {key.lower(): control_plane(cluster, name.format(key), "Average") for key in keys}

    yield _alarm(
        "api-write-latency",
        f"One write in a hundred takes the API server more than {_WRITE_SECONDS:g} s, beyond "
        "Kubernetes' own objective. See the latency of webhooks and the seats in use.",
        slowest(_DURATION, _WRITES),
        "MAX([put, patch, post, delete])",
        above=_WRITE_SECONDS,
        minutes=_SUSTAINED_MINUTES,
    )
    yield _alarm(
        "api-list-latency",
        f"One list in a hundred takes the API server more than {_LIST_SECONDS:g} s, beyond "
        "Kubernetes' own objective. The audit log says who lists so much.",
        slowest(_DURATION, ("LIST",)),
        above=_LIST_SECONDS,
        minutes=_SUSTAINED_MINUTES,
    )
    yield _alarm(
        "webhook-latency",
        f"One admission webhook in a hundred takes more than {_WRITE_SECONDS:g} s: every write "
        "that it looks at is as slow. See whether its pods run, and on what they wait.",
        slowest(_WEBHOOKS, ("ADMIT", "VALIDATING")),
        "MAX([admit, validating])",
        above=_WRITE_SECONDS,
        minutes=_SUSTAINED_MINUTES,
    )


def _alarm(
    name: str,
    description: str,
    metrics: Mapping[str, MetricPlan],
    expression: str | None = None,
    *,
    above: float,
    minutes: int,
) -> AlarmPlan:
    return AlarmPlan(
        name=name,
        description=description,
        metrics=metrics,
        expression=expression,
        comparison="GreaterThanThreshold",
        threshold=above,
        period_seconds=60,
        periods=minutes,
        # Latencies without requests, and a cluster in the making, have no data.
        missing_is_wrong=False,
    )


def _limits(kubernetes: config.Kubernetes) -> _Limits:
    tier = eks.CONTROL_PLANE_TIERS[kubernetes.control_plane_tier]
    limits = kubernetes.facts.tiers.get(tier)
    if limits is None:
        return _Limits(tier, None, None, eks.STANDARD_DATABASE_GB * _GB)
    return _Limits(tier, limits.api_seats, limits.pods_per_second, limits.database_gb * _GB)


def _mark(label: str, value: float | None) -> Mapping[str, float]:
    return {} if value is None else {label: value}
