"""CloudWatch: metrics that dashboards and alarms name, its limits, and prices of logs.

CloudWatch reports no mistake in a metric's name or dimensions: the graph stays empty and the alarm
never fires.
"""

from collections.abc import Mapping
from types import MappingProxyType

from ultrascale.frozen import Frozen

APPLICATION_SIGNALS = "AWS/ApplicationSignals"
CONTAINER_INSIGHTS = "ContainerInsights"
EKS = "AWS/EKS"
FSX = "AWS/FSx"

# The agent's declarations, which state more of the dimensions than the user guide's table:
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Container-Insights-metrics-enhanced-EKS.html
_AGENT = (
    "https://github.com/aws/amazon-cloudwatch-agent/blob/main/translator/translate/otel/exporter/"
    "awsemf/kubernetes.go"
)
# The control plane's own metrics, each minute and free of charge, from Kubernetes 1.28 on.
_EKS_PAGE = "https://docs.aws.amazon.com/eks/latest/userguide/cloudwatch.html"
# AWS's page on objectives does not name their metrics; this guide to alarms on them does.
_OBJECTIVES = "https://developer.mamezou-tech.com/en/blogs/2024/12/15/aws-app-signals-lambda"
_FSX_PAGE = "https://docs.aws.amazon.com/fsx/latest/LustreGuide/fs-metrics.html"

_CLUSTER = ("ClusterName",)
_NAMESPACE = ("ClusterName", "Namespace")


class VendedMetric(Frozen):
    """A metric that AWS publishes."""

    namespace: str  # CloudWatch namespace
    name: str  # Its name
    # Sets of dimensions with which it is published, as far as we use them.
    dimensions: tuple[tuple[str, ...], ...]
    source: str  # Page that states them


def _insights(*names: str, dimensions: tuple[tuple[str, ...], ...]) -> tuple[VendedMetric, ...]:
    return tuple(
        VendedMetric(namespace=CONTAINER_INSIGHTS, name=name, dimensions=dimensions, source=_AGENT)
        for name in names
    )


def _others(namespace: str, source: str, dimension: str, *names: str) -> tuple[VendedMetric, ...]:
    return tuple(
        VendedMetric(namespace=namespace, name=name, dimensions=((dimension,),), source=source)
        for name in names
    )


_VENDED = (
    *_insights("cluster_failed_node_count", dimensions=(_CLUSTER,)),
    *_insights("node_gpu_utilization", dimensions=(_CLUSTER,)),
    *_insights("node_neuroncore_utilization", dimensions=(_CLUSTER,)),
    *_insights("node_neurondevice_hw_ecc_events_total", dimensions=(_CLUSTER,)),
    *_insights(
        "pod_gpu_utilization", "pod_neuroncore_utilization", dimensions=(_CLUSTER, _NAMESPACE)
    ),
    *_insights(
        "node_efa_rx_bytes", "node_efa_tx_bytes", "node_efa_rx_dropped", dimensions=(_CLUSTER,)
    ),
    *_insights(
        "hyperpod_node_health_status_schedulable",
        "hyperpod_node_health_status_unschedulable",
        "hyperpod_node_health_status_unschedulable_pending_reboot",
        "hyperpod_node_health_status_unschedulable_pending_replacement",
        dimensions=(_CLUSTER,),
    ),
    *_others(
        EKS,
        _EKS_PAGE,
        "ClusterName",
        "apiserver_admission_webhook_admission_duration_seconds_ADMIT_P99",
        "apiserver_admission_webhook_admission_duration_seconds_VALIDATING_P99",
        "apiserver_current_inflight_requests_MUTATING",
        "apiserver_current_inflight_requests_READONLY",
        "apiserver_flowcontrol_current_executing_seats",
        "apiserver_request_duration_seconds_DELETE_P99",
        "apiserver_request_duration_seconds_GET_P99",
        "apiserver_request_duration_seconds_LIST_P99",
        "apiserver_request_duration_seconds_PATCH_P99",
        "apiserver_request_duration_seconds_POST_P99",
        "apiserver_request_duration_seconds_PUT_P99",
        "apiserver_request_total",
        "apiserver_request_total_429",
        "apiserver_request_total_4XX",
        "apiserver_request_total_5XX",
        "apiserver_request_total_LIST_PODS",
        "etcd_mvcc_db_total_size_in_bytes",
        "etcd_mvcc_db_total_size_in_use_in_bytes",
        "scheduler_pending_pods_ACTIVEQ",
        "scheduler_pending_pods_BACKOFF",
        "scheduler_pending_pods_GATED",
        "scheduler_pending_pods_UNSCHEDULABLE",
        "scheduler_schedule_attempts_ERROR",
        "scheduler_schedule_attempts_SCHEDULED",
        "scheduler_schedule_attempts_UNSCHEDULABLE",
    ),
    VendedMetric(
        namespace=APPLICATION_SIGNALS,
        name="AttainmentRate",
        dimensions=(("SloName",),),
        source=_OBJECTIVES,
    ),
    VendedMetric(
        namespace=APPLICATION_SIGNALS,
        name="BurnRate",
        dimensions=(("SloName", "BurnRateWindowMinutes"),),
        source=_OBJECTIVES,
    ),
    *_others(
        FSX,
        _FSX_PAGE,
        "FileSystemId",
        "DataReadBytes",
        "DataWriteBytes",
        "FreeDataStorageCapacity",
    ),
)

VENDED: Mapping[tuple[str, str], VendedMetric] = MappingProxyType(
    {(metric.namespace, metric.name): metric for metric in _VENDED}
)

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
