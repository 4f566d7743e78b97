"""Metrics, graphs and alarms, and the parts of a cluster that they are of."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from msgspec import field

from ultrascale.frozen import Frozen

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


class FunctionPlan(Frozen):
    """A function that a schedule calls, and that calls the API server."""

    input: Mapping[str, object]  # What it is called with
    group: str  # Kubernetes group that it is a member of
    interval_minutes: int  # How often it is called
    memory_mib: int  # Its memory, in MiB
    timeout_seconds: int  # How long it may take
    # How long its log is kept, in days; CloudWatch keeps the metrics longer.
    log_retention_days: int


class AlarmTopicPlan(Frozen):
    """The topic that alarms notify."""

    name: str  # Name of the SNS topic
    layer: str  # Layer whose stack makes it
    events: bool  # Whether EventBridge publishes to it
    reminders: bool  # Whether schedules publish to it


class QueuedObjects(Frozen):
    """Kubernetes objects that stand for jobs that wait or run."""

    group: str  # API group
    version: str  # Version of it
    kind: str  # Plural of the kind
    queues: tuple[str, ...]  # Names of the queues that they wait in


class PlacedNodes(Frozen):
    """Pools whose nodes have to say where in AWS's network they are."""

    pools: tuple[str, ...]  # Their names
    effect: str  # Clause that says what nodes that do not are good for
    # Labels of the layers of the network, the lowest first, of each group of which the cluster has
    # an object; empty without such objects.
    layers: tuple[str, ...] = ()
    # API group, version and plural of those objects; None without them.
    objects: tuple[str, str, str] | None = None


class ScrapedPods(Frozen):
    """Pods that the function of the fleet asks for their metrics."""

    namespaces: tuple[str, ...]  # Their namespaces
    settings: Mapping[str, object]  # How they are found, asked and read


class NodeHealth(Frozen):
    """The label of nodes by which the service that manages them tells their health."""

    label: str
    healthy: str  # Its value for a node that jobs may use
    checking: str  # Its value for a node that is checked at length


class ManagedNodes(Frozen):
    """Nodes of a service of AWS, as CloudWatch's agents tell them from others."""

    side: str  # What they are called in graphs
    type_prefix: str  # What the label of their instance type has before the type's name
    compute_type: tuple[str, str]  # Label that each has, and its value
    gpus: bool  # Whether CloudWatch's exporter is to read their GPUs
    neuron: bool  # Whether CloudWatch's monitor is to read their Neuron devices
    note: str = ""  # Sentence of a dashboard without their GPUs; empty where there are none
    health: NodeHealth | None = None


class Watch(Frozen):
    """Measurements, graphs and alarms of a subject, in a cluster with metrics."""

    queued: QueuedObjects | None = None
    # Names that namespaces of jobs have in metrics, of namespaces that the platform does not make.
    teams: Mapping[str, str] = field(default_factory=dict[str, str])
    placed: PlacedNodes | None = None
    scraped: ScrapedPods | None = None
    nodes: ManagedNodes | None = None
    alarms: tuple[AlarmPlan, ...] = ()
    events: tuple[EventPlan, ...] = ()
    services: tuple[GraphPlan, ...] = ()  # Graphs of requests
    health: tuple[GraphPlan, ...] = ()  # Graphs of nodes
