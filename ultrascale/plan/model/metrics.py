"""Metrics, graphs and alarms, and the subjects in a cluster that they describe."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from msgspec import field

from ultrascale.frozen import Frozen

if TYPE_CHECKING:
    from ultrascale.lambdas.fleet_metrics.settings import Services

Statistic = Literal["Average", "Maximum", "Minimum", "SampleCount", "Sum", "p50", "p99"]
Comparison = Literal["GreaterThanOrEqualToThreshold", "GreaterThanThreshold", "LessThanThreshold"]


class MetricPlan(Frozen):
    """One statistic of a CloudWatch metric."""

    namespace: str  # CloudWatch namespace
    name: str  # Its name
    # Exactly the dimensions that it is published with. A value may be a placeholder for one that
    # CloudFormation alone knows.
    dimensions: Mapping[str, str]
    statistic: Statistic = "Average"  # Statistic


class LinePlan(Frozen):
    """A line of a graph."""

    label: str  # Its label
    # Its metrics, by their names in the expression.
    metrics: Mapping[str, MetricPlan]
    expression: str | None = None  # CloudWatch metric math; None shows the one metric as it is


class GraphPlan(Frozen):
    """A graph."""

    title: str  # Its title
    lines: tuple[LinePlan, ...]  # Its lines
    unit: str  # Unit of the axis
    stacked: bool = False  # Whether the lines are stacked
    marks: Mapping[str, datetime]  # Moments marked on the time axis, by their labels
    limits: Mapping[str, float]  # Values marked on the other axis, by their labels


class AlarmPlan(Frozen):
    """An alarm."""

    name: str  # Its name, without the cluster's
    description: str  # What is wrong when it goes off, and what to do
    # Its metrics, by their names in the expression.
    metrics: Mapping[str, MetricPlan]
    expression: str | None = None  # CloudWatch metric math; None takes the one metric as it is
    # How that compares with the threshold when something is wrong
    comparison: Comparison = "GreaterThanOrEqualToThreshold"
    threshold: float = 1  # The threshold
    period_seconds: int  # Length of a period
    periods: int  # Periods in a row that set it off
    # Whether a period without data sets it off. Another alarm reports a function that does not
    # measure.
    missing_is_wrong: bool = False


class EventPlan(Frozen):
    """Events that the topic reports."""

    name: str  # Its name
    pattern: Mapping[str, object]  # EventBridge pattern
    message: str  # Message, with values of the event in angle brackets
    paths: Mapping[str, str]  # Place of each value in the event, by its name in the message


class FunctionPlan(Frozen):
    """A function that a schedule calls, and that calls the API server."""

    input: Mapping[str, object]  # Event of its calls
    group: str  # Its Kubernetes group
    interval_minutes: int  # Interval of its calls
    memory_mib: int  # Its memory, in MiB
    timeout_seconds: int  # Longest time of a call
    # Retention of its log, in days; CloudWatch keeps the metrics longer.
    log_retention_days: int


class AlarmTopicPlan(Frozen):
    """The topic that alarms notify."""

    name: str  # Name of the SNS topic
    layer: str  # Layer whose stack makes it
    events: bool  # Whether EventBridge publishes to it
    reminders: bool  # Whether schedules publish to it


class QueuedObjects(Frozen):
    """Kubernetes objects of waiting or running jobs."""

    group: str  # API group
    version: str  # Version of it
    kind: str  # Plural of the kind
    queues: tuple[str, ...]  # Names of the queues that they wait in


class PlacedNodes(Frozen):
    """Pools whose nodes need labels of their place in AWS's network."""

    pools: tuple[str, ...]  # Their names
    effect: str  # Clause on the use of nodes without labels
    # Labels of the network's layers, the lowest first, of each group with an object in the cluster;
    # empty without such objects.
    layers: tuple[str, ...] = ()
    # API group, version and plural of those objects; None without them.
    objects: tuple[str, str, str] | None = None


class ScrapedPods(Frozen):
    """Pods whose metrics the function of the fleet reads."""

    namespaces: tuple[str, ...]  # Their namespaces
    settings: "Services"  # Their labels, port and parser


class NodeHealth(Frozen):
    """The label of nodes by which the service that manages them reports their health."""

    label: str
    healthy: str  # Its value for a node that jobs may use
    checking: str  # Its value for a node under a long check


class ManagedNodes(Frozen):
    """Nodes of a service of AWS, in the terms of CloudWatch's agents."""

    side: str  # Their name in graphs
    type_prefix: str  # Prefix of the instance type in their label of it
    compute_type: tuple[str, str]  # Label that each has, and its value
    gpus: bool  # Whether CloudWatch's exporter is to read their GPUs
    neuron: bool  # Whether CloudWatch's monitor is to read their Neuron devices
    note: str = ""  # Sentence of a dashboard without their GPUs; empty where there are none
    health: NodeHealth | None = None


class Watch(Frozen):
    """Measurements, graphs and alarms of a subject, in a cluster with metrics."""

    queued: QueuedObjects | None = None
    # Names in metrics of those job namespaces that the platform does not make.
    teams: Mapping[str, str] = field(default_factory=dict[str, str])
    placed: PlacedNodes | None = None
    scraped: ScrapedPods | None = None
    nodes: ManagedNodes | None = None
    alarms: tuple[AlarmPlan, ...] = ()
    events: tuple[EventPlan, ...] = ()
    services: tuple[GraphPlan, ...] = ()  # Graphs of requests
    health: tuple[GraphPlan, ...] = ()  # Graphs of nodes
