"""The plan of metrics, dashboard and alerts."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import ClassVar

from ultrascale.catalog.endpoints import Feature
from ultrascale.frozen import Frozen
from ultrascale.lambdas.fleet_metrics.settings import LedgerSettings
from ultrascale.plan.model import (
    AddonPlan,
    AlarmPlan,
    AlarmTopicPlan,
    BucketPlan,
    EventPlan,
    FunctionPlan,
    GraphPlan,
    MetricPlan,
    PlannedPart,
    StandingItem,
)
from ultrascale.plan.model.parts import KeyPrincipal

LAYER = "observability"
"""The layer of its stack."""

_APPLICATION_SIGNALS = "application-signals.cloudwatch.amazonaws.com"


class SectionPlan(Frozen):
    """A part of the dashboard."""

    text: str  # Markdown above its graphs
    graphs: tuple[GraphPlan, ...]  # Its graphs


class ReminderPlan(Frozen):
    """A message at a fixed moment."""

    name: str  # Its name
    at: datetime  # The moment, in UTC
    subject: str  # Subject of the e-mail, fewer than 100 characters of ASCII
    message: str  # Its text


class AlertsPlan(Frozen):
    """Alerts and their receiver."""

    email: str  # Address of the receiver; its owner has to confirm once
    topic: str  # Name of the SNS topic
    alarms: tuple[AlarmPlan, ...]  # Alarms beside those of parts of the cluster
    events: tuple[EventPlan, ...]  # Events
    reminders: tuple[ReminderPlan, ...]  # Reminders


class LedgerPlan(Frozen):
    """The ledger of accelerators that are paid for."""

    bucket: BucketPlan  # Its bucket
    reads_reservations: bool  # Whether a pool has a reservation of EC2
    training_plans: tuple[str, ...]  # ARNs of training plans
    settings: LedgerSettings  # Settings of the function that writes it
    ends_unseen: bool  # Whether idle jobs end, though no pool's use of GPUs is known


class FleetMetricsPlan(FunctionPlan):
    """The function that measures the fleet as a whole."""

    queue_kinds: Mapping[str, str]  # API group and plural of the queued objects that it lists
    # Namespaces of the services whose metrics it reads.
    service_namespaces: tuple[str, ...]
    team_namespaces: tuple[str, ...]  # Namespaces of teams among them, which others make
    job_namespaces: tuple[str, ...]  # Namespaces of jobs that the platform makes
    # Object of a group of nodes that it makes and deletes where others are missing; None where
    # nobody makes any.
    touched_group: str | None


class ObjectivePlan(Frozen):
    """A service level objective over requests."""

    name: str  # Its name
    description: str  # What it says
    good: MetricPlan  # Count of the good requests
    total: MetricPlan  # Count of all requests
    goal_percent: float  # Share of good requests, in percent
    interval_days: int  # Past days of the share
    # Windows over which CloudWatch measures the use of the error budget.
    burn_rate_minutes: tuple[int, ...]


class WriteLatencyPlan(Frozen):
    """Measurement of writes to the API server, with the objective for their latency."""

    function: FunctionPlan  # The function that writes
    namespace: str  # Kubernetes namespace of the Lease that it writes
    lease: str  # Name of the Lease
    objective: ObjectivePlan  # The objective
    alarms: tuple[AlarmPlan, ...]  # Alarms, with or without a receiver


class Plan(PlannedPart):
    """Metrics, dashboard and alerts of the cluster."""

    renderer: ClassVar[str] = "observability"
    is_applied_early: ClassVar[bool] = True
    has_agents: ClassVar[bool] = True

    addon: AddonPlan  # CloudWatch's EKS add-on, which brings Container Insights
    written_logs: tuple[str, ...]  # Log groups that it writes to
    log_retention_days: int  # Retention of these log groups, in days
    fleet_metrics: FleetMetricsPlan  # The function that measures the fleet
    ledger: LedgerPlan | None  # The ledger that it writes; None without one
    # Measurement of the latency of writes, with its objective; None leaves it out.
    write_latency: WriteLatencyPlan | None
    dashboard: tuple[SectionPlan, ...]  # Sections of the dashboard; empty leaves it out
    alerts: AlertsPlan | None  # Alerts and their receiver; None without one

    @property
    def addons(self) -> Sequence[AddonPlan]:
        """CloudWatch's."""
        return (self.addon,)

    @property
    def log_groups(self) -> Mapping[str, str]:
        """Log groups of the agents."""
        return dict.fromkeys(self.written_logs, LAYER)

    @property
    def features(self) -> Sequence[Feature]:
        """The agents, which call CloudWatch, and the ledger."""
        return ("cloudwatch",) if self.ledger is None else ("cloudwatch", "ledger")

    @property
    def key_principals(self) -> Sequence[KeyPrincipal]:
        """The function that writes the ledger."""
        writer = KeyPrincipal(
            use="storage",
            name="Ledger",
            who="the function that measures the fleet",
            does="no ledger is written",
            actions="s3-write",
            layer=LAYER,
            via="s3",
        )
        return () if self.ledger is None else (writer,)

    @property
    def identities(self) -> Sequence[str]:
        """The agents."""
        return ("CloudWatch",)

    @property
    def standing(self) -> Sequence[StandingItem]:
        """The dashboard, the alarms and the logs."""
        alarms = [*(self.alerts.alarms if self.alerts is not None else ())]
        alarms += self.write_latency.alarms if self.write_latency is not None else ()
        count = sum(len(alarm.metrics) for alarm in alarms)
        dashboard = StandingItem(
            name="CloudWatch dashboard",
            service="cloudwatch",
            item="dashboard",
            quantity=1,
            words="1 dashboard",
            follows="storage",
        )
        alarmed = StandingItem(
            name="CloudWatch alarms",
            service="cloudwatch",
            item="alarm",
            quantity=count,
            words=f"{count} metrics of {len(alarms)} alarms",
            follows="storage",
        )
        logs = StandingItem(
            name="logs of pods and nodes",
            service="logs",
            item="ingestion",
            quantity=None,
            words="GB",
        )
        return (*((dashboard,) if self.dashboard else ()), *((alarmed,) if count else ()), logs)

    @property
    def linked_roles(self) -> Sequence[str]:
        """The principal of the objective for writes."""
        return () if self.write_latency is None else (_APPLICATION_SIGNALS,)

    @property
    def alarm_topic(self) -> AlarmTopicPlan | None:
        """The topic of the address that the file names."""
        if self.alerts is None:
            return None
        return AlarmTopicPlan(
            name=self.alerts.topic,
            layer=LAYER,
            events=bool(self.alerts.events),
            reminders=bool(self.alerts.reminders),
        )
