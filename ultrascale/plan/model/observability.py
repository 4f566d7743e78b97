"""Metrics, dashboards and alarms."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ultrascale.plan.model.addons import AddonPlan

Statistic = Literal["Average", "Maximum", "Minimum", "SampleCount", "Sum", "p50", "p99"]
Comparison = Literal["GreaterThanOrEqualToThreshold", "GreaterThanThreshold", "LessThanThreshold"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricPlan:
    """A CloudWatch metric, as one statistic of it.

    Attributes:
        namespace: CloudWatch namespace.
        name: Its name.
        dimensions: Exactly the dimensions that it is published with. A value may be a placeholder
            for what CloudFormation alone knows.
        statistic: Statistic.
    """

    namespace: str
    name: str
    dimensions: Mapping[str, str]
    statistic: Statistic = "Average"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePlan:
    """A line of a graph.

    Attributes:
        label: What it is called.
        metrics: What it is computed of, by the names that the expression has for them.
        expression: CloudWatch metric math; None shows the one metric as it is.
    """

    label: str
    metrics: Mapping[str, MetricPlan]
    expression: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPlan:
    """A graph.

    Attributes:
        title: Its title.
        lines: Its lines.
        unit: What the axis counts.
        stacked: Whether the lines are stacked.
        marks: Moments marked on the time axis, by their labels.
        limits: Values marked on the other axis, by their labels.
    """

    title: str
    lines: tuple[LinePlan, ...]
    unit: str
    stacked: bool = False
    marks: Mapping[str, datetime]
    limits: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionPlan:
    """A part of the dashboard.

    Attributes:
        text: Markdown above its graphs.
        graphs: Its graphs.
    """

    text: str
    graphs: tuple[GraphPlan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmPlan:
    """An alarm.

    Attributes:
        name: Its name, without the cluster's.
        description: What is wrong when it goes off, and what to do.
        metrics: What it looks at, by the names that the expression has for it.
        expression: CloudWatch metric math; None looks at the one metric as it is.
        comparison: How that compares with the threshold when something is wrong.
        threshold: The threshold.
        period_seconds: Length of a period.
        periods: Periods in a row in which it must be wrong.
        missing_is_wrong: Whether a period without data counts as one in which it is wrong.
    """

    name: str
    description: str
    metrics: Mapping[str, MetricPlan]
    expression: str | None = None
    comparison: Comparison
    threshold: float
    period_seconds: int
    periods: int
    missing_is_wrong: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPlan:
    """Events of which somebody is told.

    Attributes:
        name: Its name.
        pattern: EventBridge pattern.
        message: What is told, with what stands in the event in angle brackets.
        paths: Where that stands in the event, by its name in the message.
    """

    name: str
    pattern: Mapping[str, object]
    message: str
    paths: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReminderPlan:
    """A message at a fixed moment.

    Attributes:
        name: Its name.
        at: The moment, in UTC.
        subject: Subject of the e-mail, fewer than 100 characters of ASCII.
        message: Its text.
    """

    name: str
    at: datetime
    subject: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertsPlan:
    """Alerts and their receiver.

    Attributes:
        email: Address that is told; its owner has to confirm once.
        topic: Name of the SNS topic.
        alarms: Alarms beside those that parts of the cluster have themselves.
        events: Events.
        reminders: Reminders.
    """

    email: str
    topic: str
    alarms: tuple[AlarmPlan, ...]
    events: tuple[EventPlan, ...]
    reminders: tuple[ReminderPlan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionPlan:
    """A function that a schedule calls, and that calls the API server.

    Attributes:
        input: What it is called with.
        group: Kubernetes group that it is a member of.
        interval_minutes: How often it is called.
        memory_mib: Its memory, in MiB.
        timeout_seconds: How long it may take.
        log_retention_days: How long its log is kept, in days; CloudWatch keeps the metrics longer.
    """

    input: Mapping[str, object]
    group: str
    interval_minutes: int
    memory_mib: int
    timeout_seconds: int
    log_retention_days: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetMetricsPlan(FunctionPlan):
    """The function that measures the fleet as a whole.

    Attributes:
        queue_kinds: API group and plural of the queued objects that it lists.
        service_namespaces: Namespaces of the services whose pods it asks for their metrics.
        touched_hyper_node: HyperNode that it makes and deletes where others are missing; None
            where Volcano makes none.
    """

    queue_kinds: Mapping[str, str]
    service_namespaces: tuple[str, ...]
    touched_hyper_node: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectivePlan:
    """A service level objective over requests.

    Attributes:
        name: Its name.
        description: What it says.
        good: Count of the good requests.
        total: Count of all requests.
        goal_percent: Share of good requests, in percent.
        interval_days: Over how many past days the share is taken.
        burn_rate_minutes: Windows over which CloudWatch says how fast the error budget is used.
    """

    name: str
    description: str
    good: MetricPlan
    total: MetricPlan
    goal_percent: float
    interval_days: int
    burn_rate_minutes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteLatencyPlan:
    """Measurement of writes to the API server, with the objective for their latency.

    Attributes:
        function: The function that writes.
        namespace: Kubernetes namespace of the Lease that it writes.
        lease: Name of the Lease.
        objective: The objective.
        alarms: Alarms, which are there whether somebody is told of them or not.
    """

    function: FunctionPlan
    namespace: str
    lease: str
    objective: ObjectivePlan
    alarms: tuple[AlarmPlan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservabilityPlan:
    """Metrics, dashboard and alerts of the cluster.

    Attributes:
        addon: CloudWatch's EKS add-on, which brings Container Insights.
        log_groups: Log groups that it writes to.
        log_retention_days: How long they are kept, in days.
        hyperpod_addon: HyperPod's own add-on, which writes to Amazon Managed Service for
            Prometheus; None leaves it out.
        fleet_metrics: The function that measures the fleet.
        write_latency: What measures the latency of writes, with its objective; None leaves it out.
        dashboard: Sections of the dashboard; empty leaves it out.
        alerts: Who is told of what; None for nobody.
    """

    addon: AddonPlan
    log_groups: tuple[str, ...]
    log_retention_days: int
    hyperpod_addon: AddonPlan | None
    fleet_metrics: FleetMetricsPlan
    write_latency: WriteLatencyPlan | None
    dashboard: tuple[SectionPlan, ...]
    alerts: AlertsPlan | None
