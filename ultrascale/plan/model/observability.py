"""What is measured, shown and told."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ultrascale.plan.model.addons import AddonPlan

Statistic = Literal["Average", "Maximum", "Minimum", "SampleCount", "Sum"]
Comparison = Literal["GreaterThanOrEqualToThreshold", "LessThanThreshold"]


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
    """

    title: str
    lines: tuple[LinePlan, ...]
    unit: str
    stacked: bool = False
    marks: Mapping[str, datetime]


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
        metric: What it looks at.
        comparison: How that compares with the threshold when something is wrong.
        threshold: The threshold.
        period_seconds: Length of a period.
        periods: Periods in a row in which it must be wrong.
        missing_is_wrong: Whether a period without data counts as one in which it is wrong.
    """

    name: str
    description: str
    metric: MetricPlan
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
    """Who is told of what.

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
class FleetMetricsPlan:
    """The function that measures the fleet as a whole.

    Attributes:
        input: What it is called with.
        group: Kubernetes group that it is a member of.
        queue_kinds: API group and plural of the queued objects that it lists.
        interval_minutes: How often it is called.
        memory_mib: Its memory, in MiB.
        timeout_seconds: How long it may take.
        log_retention_days: How long its log is kept, in days; CloudWatch keeps the metrics longer.
    """

    input: Mapping[str, object]
    group: str
    queue_kinds: Mapping[str, str]
    interval_minutes: int
    memory_mib: int
    timeout_seconds: int
    log_retention_days: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservabilityPlan:
    """What is measured, shown and told of the cluster.

    Attributes:
        addon: CloudWatch's EKS add-on, which brings Container Insights.
        log_groups: Log groups that it writes to.
        log_retention_days: How long they are kept, in days.
        hyperpod_addon: HyperPod's own add-on, which writes to Amazon Managed Service for
            Prometheus; None leaves it out.
        fleet_metrics: The function that measures the fleet.
        dashboard: Sections of the dashboard; empty leaves it out.
        alerts: Who is told of what; None for nobody.
    """

    addon: AddonPlan
    log_groups: tuple[str, ...]
    log_retention_days: int
    hyperpod_addon: AddonPlan | None
    fleet_metrics: FleetMetricsPlan
    dashboard: tuple[SectionPlan, ...]
    alerts: AlertsPlan | None
