"""CloudWatch log groups."""

from aws_cdk import RemovalPolicy
from aws_cdk import aws_logs as logs
from constructs import Construct

from ultrascale_constructs.cdk_types import child


def define_log_group(scope: Construct, id: str = "Logs", *, retention_days: int) -> logs.LogGroup:
    """Define a log group that goes with its stack.

    Args:
        scope: Parent.
        id: Construct id.
        retention_days: How long each event is kept, in days.
    """
    group = logs.LogGroup(scope, id, removal_policy=RemovalPolicy.DESTROY)
    # The L2's own property takes a member of an enumeration, not a number.
    child(group, logs.CfnLogGroup).retention_in_days = retention_days
    return group
