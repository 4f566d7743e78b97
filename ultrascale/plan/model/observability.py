"""Metrics, dashboards and alarms."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from ultrascale.frozen import Frozen
from ultrascale.plan.model.addons import AddonPlan

Statistic = Literal["Average", "Maximum", "Minimum", "SampleCount", "Sum", "p50", "p99"]
Comparison = Literal["GreaterThanOrEqualToThreshold", "GreaterThanThreshold", "LessThanThreshold"]


class MetricPlan(Frozen):
    """A CloudWatch metric, as one statistic of it."""

    namespace: str  # CloudWatch namespace
    name: str  # Its name
    # Exactly the dimensions that it is published with. A value may be a placeholder for what
    # CloudFormation alone knows.
    dimensions: Mapping[str, str]
    statistic: Statistic = "Average"  # Statistic


class LinePlan(Frozen):
    """A line of a graph."""

    label: str  # What it is called
    # What it is computed of, by the names that the expression has for them.
    metrics: Mapping[str, MetricPlan]
    expression: str | None = None  # CloudWatch metric math; None shows the one metric as it is


class GraphPlan(Frozen):
    """A graph."""

    title: str  # Its title
    lines: tuple[LinePlan, ...]  # Its lines
    unit: str  # What the axis counts
    stacked: bool = False  # Whether the lines are stacked
    marks: Mapping[str, datetime]  # Moments marked on the time axis, by their labels
    limits: Mapping[str, float]  # Values marked on the other axis, by their labels


class SectionPlan(Frozen):
    """A part of the dashboard."""

    text: str  # Markdown above its graphs
    graphs: tuple[GraphPlan, ...]  # Its graphs


class AlarmPlan(Frozen):
    """An alarm."""

    name: str  # Its name, without the cluster's
    description: str  # What is wrong when it goes off, and what to do
    # What it looks at, by the names that the expression has for it.
    metrics: Mapping[str, MetricPlan]
    expression: str | None = None  # CloudWatch metric math; None looks at the one metric as it is
    comparison: Comparison  # How that compares with the threshold when something is wrong
    threshold: float  # The threshold
    period_seconds: int  # Length of a period
    periods: int  # Periods in a row in which it must be wrong
    missing_is_wrong: bool  # Whether a period without data counts as one in which it is wrong


class EventPlan(Frozen):
    """Events of which somebody is told."""

    name: str  # Its name
    pattern: Mapping[str, object]  # EventBridge pattern
    message: str  # What is told, with what stands in the event in angle brackets
    paths: Mapping[str, str]  # Where that stands in the event, by its name in the message


class ReminderPlan(Frozen):
    """A message at a fixed moment."""

    name: str  # Its name
    at: datetime  # The moment, in UTC
    subject: str  # Subject of the e-mail, fewer than 100 characters of ASCII
    message: str  # Its text


class AlertsPlan(Frozen):
    """Alerts and their receiver."""

    email: str  # Address that is told; its owner has to confirm once
    topic: str  # Name of the SNS topic
    alarms: tuple[AlarmPlan, ...]  # Alarms beside those that parts of the cluster have themselves
    events: tuple[EventPlan, ...]  # Events
    reminders: tuple[ReminderPlan, ...]  # Reminders


class FunctionPlan(Frozen):
    """A function that a schedule calls, and that calls the API server."""

    input: Mapping[str, object]  # What it is called with
    group: str  # Kubernetes group that it is a member of
    interval_minutes: int  # How often it is called
    memory_mib: int  # Its memory, in MiB
    timeout_seconds: int  # How long it may take
    # How long its log is kept, in days; CloudWatch keeps the metrics longer.
    log_retention_days: int


class FleetMetricsPlan(FunctionPlan):
    """The function that measures the fleet as a whole."""

    queue_kinds: Mapping[str, str]  # API group and plural of the queued objects that it lists
    # Namespaces of the services whose pods it asks for their metrics.
    service_namespaces: tuple[str, ...]
    # HyperNode that it makes and deletes where others are missing; None where Volcano makes none.
    touched_hyper_node: str | None


class ObjectivePlan(Frozen):
    """A service level objective over requests."""

    name: str  # Its name
    description: str  # What it says
    good: MetricPlan  # Count of the good requests
    total: MetricPlan  # Count of all requests
    goal_percent: float  # Share of good requests, in percent
    interval_days: int  # Over how many past days the share is taken
    # Windows over which CloudWatch says how fast the error budget is used.
    burn_rate_minutes: tuple[int, ...]


class WriteLatencyPlan(Frozen):
    """Measurement of writes to the API server, with the objective for their latency."""

    function: FunctionPlan  # The function that writes
    namespace: str  # Kubernetes namespace of the Lease that it writes
    lease: str  # Name of the Lease
    objective: ObjectivePlan  # The objective
    alarms: tuple[AlarmPlan, ...]  # Alarms, which are there whether somebody is told of them or not


class ObservabilityPlan(Frozen):
    """Metrics, dashboard and alerts of the cluster."""

    addon: AddonPlan  # CloudWatch's EKS add-on, which brings Container Insights
    log_groups: tuple[str, ...]  # Log groups that it writes to
    log_retention_days: int  # How long they are kept, in days
    fleet_metrics: FleetMetricsPlan  # The function that measures the fleet
    # What measures the latency of writes, with its objective; None leaves it out.
    write_latency: WriteLatencyPlan | None
    dashboard: tuple[SectionPlan, ...]  # Sections of the dashboard; empty leaves it out
    alerts: AlertsPlan | None  # Who is told of what; None for nobody
