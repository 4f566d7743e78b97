"""Graphs of the dashboard and the lines in them."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from ultrascale.catalog import cloudwatch
from ultrascale.frozen import Frozen
from ultrascale.plan.model import GraphPlan, LinePlan, LustrePlan, MetricPlan
from ultrascale.plan.model.observability import Statistic
from ultrascale.plan.observability import fleet_metrics

# Of a metric that each node or storage target sends each minute: the sum over all of them,
# whatever the period is.
_SUM_OF_A_MINUTE = "m * 60 / PERIOD(m)"
_NO_MARKS: Mapping[str, datetime] = {}
_NO_LIMITS: Mapping[str, float] = {}


class Lines(Frozen):
    """The metrics of one cluster as lines."""

    cluster: str  # Name of the cluster

    def own(self, measure: str, label: str, **dimension: str) -> LinePlan:
        """Return a line of a measure of the fleet."""
        metric = fleet_metrics.metric(self.cluster, measure, **dimension)
        return LinePlan(label=label, metrics={"m": metric})

    def running_hours(self, measure: str, label: str) -> LinePlan:
        """Return how many hours of a measure have added up since the graph's left edge."""
        return LinePlan(
            label=label,
            metrics={"m": fleet_metrics.metric(self.cluster, measure)},
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
            expression=_SUM_OF_A_MINUTE,
        )

    def api(self, name: str, label: str, *, statistic: Statistic = "Average") -> LinePlan:
        """Return a line of the control plane, each value of which stands for itself."""
        return LinePlan(label=label, metrics={"m": control_plane(self.cluster, name, statistic)})

    def api_at_once(self, name: str, label: str) -> LinePlan:
        """Return the sum over the API servers of what each says once a minute."""
        metric = control_plane(self.cluster, name, "Sum")
        return LinePlan(label=label, metrics={"m": metric}, expression=_SUM_OF_A_MINUTE)

    def api_a_second(self, name: str, label: str) -> LinePlan:
        """Return how often something happens in a second."""
        metric = control_plane(self.cluster, name, "Sum")
        return LinePlan(label=label, metrics={"m": metric}, expression="m / PERIOD(m)")

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


def lustre_graphs(lustre: LustrePlan) -> Iterator[GraphPlan]:
    """Yield throughput and free capacity of a file system.

    Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/fs-metrics.html
    """

    def line(label: str, name: str, expression: str) -> LinePlan:
        metric = MetricPlan(
            namespace=cloudwatch.FSX,
            name=name,
            dimensions={"FileSystemId": lustre.file_system_id},
            statistic="Sum",
        )
        return LinePlan(label=label, metrics={"m": metric}, expression=expression)

    yield graph(
        f"Throughput of {lustre.name}",
        [
            line("read", "DataReadBytes", "m / PERIOD(m)"),
            line("written", "DataWriteBytes", "m / PERIOD(m)"),
        ],
        "bytes a second",
    )
    free = f"{_SUM_OF_A_MINUTE} / {1024**3}"
    yield graph(
        f"Free capacity of {lustre.name}",
        [line(f"free of {lustre.capacity_gib} GiB", "FreeDataStorageCapacity", free)],
        "GiB",
    )
