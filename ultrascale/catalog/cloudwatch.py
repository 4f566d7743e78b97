"""CloudWatch: metrics that dashboards and alarms name, its limits, and prices of logs.

CloudWatch reports no mistake in a metric's name or dimensions: the graph stays empty and the alarm
never fires. `vended_metrics.csv` cites the agent's declarations, which state more of the dimensions
than the user guide's table, and for objectives a guide, as AWS's page does not name their metrics.
"""

from collections.abc import Mapping
from types import MappingProxyType

from ultrascale.catalog.tables import Row, read_rows

APPLICATION_SIGNALS = "AWS/ApplicationSignals"
CONTAINER_INSIGHTS = "ContainerInsights"
EKS = "AWS/EKS"
FSX = "AWS/FSx"


class VendedMetric(Row, frozen=True, kw_only=True):
    """A metric that AWS publishes."""

    namespace: str
    """CloudWatch namespace."""
    name: str
    """Its name."""
    dimension_sets: tuple[str, ...]
    """Sets of dimensions with which it is published, as far as we use them, joined by ``+``."""
    source: str
    """Page that states them."""

    @property
    def dimensions(self) -> tuple[tuple[str, ...], ...]:
        """Sets of dimensions with which it is published."""
        return tuple(tuple(names.split("+")) for names in self.dimension_sets)


VENDED: Mapping[tuple[str, str], VendedMetric] = MappingProxyType(
    {(row.namespace, row.name): row for row in read_rows("vended_metrics.csv", VendedMetric)}
)
"""Metrics of AWS by namespace and name."""

# Log groups to which the agent and Fluent Bit of the add-on write for a cluster. They would create
# them with endless retention.
# Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Container-Insights-EKS-logs.html
APPLICATION_LOGS = "application"
CONTAINER_LOGS = (APPLICATION_LOGS, "dataplane", "host")
PERFORMANCE_LOGS = "performance"


def log_group(cluster: str, kind: str) -> str:
    """Return the log group of ``kind``: `PERFORMANCE_LOGS`, or one of `CONTAINER_LOGS`."""
    return f"/aws/containerinsights/{cluster}/{kind}"


# --- Amazon CloudWatch Logs: its quota of calls, and prices of log data ---------------------------
# Sources:
#     https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/cloudwatch_limits_cwl.html
#     https://aws.amazon.com/cloudwatch/pricing/


# Quota of an account in a Region, adjustable.
PUT_LOG_EVENTS_PER_SECOND = 5_000
PUT_QUOTA_SOURCE = (
    "https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/cloudwatch_limits_cwl.html"
)
PRICED_AS: Mapping[str, str] = MappingProxyType({"cloudwatch": "ingestion", "s3": "vended-to-s3"})
"""Item of the price list for flow logs, by destination of the logs."""

# Assumptions: no source states these numbers.
AUDIT_LINE_BYTES = 1_500
FLOW_RECORD_BYTES = 120
FLOWS_OF_A_NODE = 200
"""Flow log records of a node in an interval of ten minutes."""
CALLS_OF_AN_AGENT = 0.4
"""Calls of the log agent of a node in a second: two streams, each sent every five seconds."""
