"""Amazon CloudWatch Logs: its quota of calls, and prices of log data.

Sources:
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/cloudwatch_limits_cwl.html
    https://aws.amazon.com/cloudwatch/pricing/
"""

from collections.abc import Mapping
from types import MappingProxyType

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
