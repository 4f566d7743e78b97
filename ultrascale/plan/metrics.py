"""Metrics of a cluster, and the lines and graphs that show them."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from ultrascale.catalog import cloudwatch
from ultrascale.frozen import Frozen
from ultrascale.plan.model import GraphPlan, LinePlan, MetricPlan
from ultrascale.plan.model.metrics import Statistic

NAMESPACE = "Ultrascale"
"""CloudWatch namespace of our own metrics."""

# Name and unit of each measure of the fleet; the dollar is no unit of CloudWatch.
METRICS: Mapping[str, tuple[str, str]] = {
    "nodes": ("Nodes", "Count"),
    "accelerators": ("Accelerators", "Count"),
    "accelerators_in_use": ("AcceleratorsInUse", "Count"),
    "burst_nodes": ("BurstNodes", "Count"),
    "reserved_idle": ("ReservedIdleAccelerators", "Count"),
    "reserved_idle_beside_burst": ("ReservedIdleBesideBurst", "Count"),
    "broken_nodes": ("BrokenNodes", "Count"),
    "nodes_not_initialized": ("NodesNotInitialized", "Count"),
    "nodes_without_topology": ("NodesWithoutTopology", "Count"),
    "hyper_nodes_missing": ("HyperNodesMissing", "Count"),
    "nodes_missing": ("ReservedNodesMissing", "Count"),
    "ledger_rows": ("LedgerRows", "Count"),
    "unused_ahead": ("UnusedAhead", "Percent"),
    "idle_jobs": ("IdleJobs", "Count"),
    "spend": ("SpendPerHour", "None"),
    "paid_idle": ("PaidIdlePerHour", "None"),
    "unpriced_nodes": ("UnpricedNodes", "Count"),
    "nodes_in_recovery": ("HyperPodNodesInRecovery", "Count"),
    "nodes_in_checks": ("HyperPodNodesInHealthChecks", "Count"),
    "running_pods": ("RunningPods", "Count"),
    "pending_pods": ("PendingPods", "Count"),
    "running_jobs": ("RunningJobs", "Count"),
    "waiting_jobs": ("WaitingJobs", "Count"),
    "pods_held": ("QueuedPodsHeld", "Count"),
    "queue_running": ("QueueRunning", "Count"),
    "queue_waiting": ("QueueWaiting", "Count"),
    "gpu_utilization": ("GpuUtilization", "Percent"),
    "sm_activity": ("GpuSmActivity", "Percent"),
    "gpu_nodes_measured": ("GpuNodesMeasured", "Count"),
    "service_replicas": ("ServiceReplicas", "Count"),
    "service_waiting": ("ServiceRequestsWaiting", "Count"),
    "service_running": ("ServiceRequestsRunning", "Count"),
    "service_prompt_tokens": ("ServicePromptTokens", "Count/Second"),
    "service_generated_tokens": ("ServiceGeneratedTokens", "Count/Second"),
    "service_cache": ("ServiceKvCache", "Percent"),
    "service_first_token_half": ("ServiceFirstTokenP50", "Seconds"),
    "service_first_token_most": ("ServiceFirstTokenP95", "Seconds"),
}

# For a metric that each node or storage target sends each minute: the sum over all of them,
# whatever the period is.
SUM_OF_A_MINUTE = "m * 60 / PERIOD(m)"
_NO_MARKS: Mapping[str, datetime] = {}
_NO_LIMITS: Mapping[str, float] = {}


def metric(cluster: str, measure: str, **dimension: str) -> MetricPlan:
    """Return the metric of a measure.

    Args:
        cluster: Name of the cluster.
        measure: Key of `METRICS`.
        dimension: At most one more dimension, with its value.
    """
    name, _ = METRICS[measure]
    return MetricPlan(namespace=NAMESPACE, name=name, dimensions={"Cluster": cluster, **dimension})


class Lines(Frozen):
    """The metrics of one cluster as lines."""

    cluster: str  # Name of the cluster

    def own(self, measure: str, label: str, **dimension: str) -> LinePlan:
        """Return a line of a measure of the fleet."""
        return LinePlan(label=label, metrics={"m": metric(self.cluster, measure, **dimension)})

    def running_hours(self, measure: str, label: str) -> LinePlan:
        """Return a line of the hours of a measure, summed from the graph's left edge."""
        return LinePlan(
            label=label,
            metrics={"m": metric(self.cluster, measure)},
            expression="RUNNING_SUM(m * PERIOD(m) / 3600)",
        )

    def insight(
        self, name: str, label: str, *, statistic: Statistic = "Average", **dimension: str
    ) -> LinePlan:
        """Return a line of Container Insights."""
        return LinePlan(label=label, metrics={"m": self._insight(name, statistic, **dimension)})

    def insight_of_all_nodes(self, name: str, label: str) -> LinePlan:
        """Return the sum of a metric of Container Insights that each node sends."""
        return LinePlan(
            label=label,
            metrics={"m": self._insight(name, "Sum")},
            expression=SUM_OF_A_MINUTE,
        )

    def api(self, name: str, label: str, *, statistic: Statistic = "Average") -> LinePlan:
        """Return a line of the control plane, each value on its own."""
        return LinePlan(label=label, metrics={"m": control_plane(self.cluster, name, statistic)})

    def api_at_once(self, name: str, label: str) -> LinePlan:
        """Return the sum over the API servers of their values of a minute."""
        summed = control_plane(self.cluster, name, "Sum")
        return LinePlan(label=label, metrics={"m": summed}, expression=SUM_OF_A_MINUTE)

    def api_a_second(self, name: str, label: str) -> LinePlan:
        """Return the rate of an event in a second."""
        summed = control_plane(self.cluster, name, "Sum")
        return LinePlan(label=label, metrics={"m": summed}, expression="m / PERIOD(m)")

    def _insight(self, name: str, statistic: Statistic, **dimension: str) -> MetricPlan:
        return MetricPlan(
            namespace=cloudwatch.CONTAINER_INSIGHTS,
            name=name,
            dimensions={"ClusterName": self.cluster, **dimension},
            statistic=statistic,
        )


def control_plane(cluster: str, name: str, statistic: Statistic) -> MetricPlan:
    """Return a metric of EKS's control plane.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/cloudwatch.html
    """
    return MetricPlan(
        namespace=cloudwatch.EKS,
        name=name,
        dimensions={"ClusterName": cluster},
        statistic=statistic,
    )


def graph(
    title: str,
    lines: Sequence[LinePlan],
    unit: str,
    *,
    stacked: bool = False,
    marks: Mapping[str, datetime] = _NO_MARKS,
    limits: Mapping[str, float] = _NO_LIMITS,
) -> GraphPlan:
    """Return a graph."""
    return GraphPlan(
        title=title, lines=tuple(lines), unit=unit, stacked=stacked, marks=marks, limits=limits
    )
