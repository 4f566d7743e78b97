"""CloudWatch log groups."""

from aws_cdk import RemovalPolicy
from aws_cdk import aws_logs as logs
from constructs import Construct, IConstruct

from ultrascale_constructs.cdk_types import child


def encrypt_logs(scope: IConstruct, key_arn: str) -> None:
    """Encrypt each log group in ``scope`` and below it, even log groups of the CDK's functions.

    In an existing group, only new events are encrypted.

    Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/encrypt-log-data-kms.html

    Args:
        scope: An app, with all of its stacks.
        key_arn: ARN of the key, whose policy lets CloudWatch Logs use it.
    """
    for construct in scope.node.find_all():
        if isinstance(construct, logs.CfnLogGroup):
            construct.kms_key_id = key_arn


def define_log_group(scope: Construct, id: str = "Logs", *, retention_days: int) -> logs.LogGroup:
    """Define a log group that is deleted with its stack.

    Args:
        scope: Parent.
        id: Construct id.
        retention_days: How long each event is kept, in days.
    """
    group = logs.LogGroup(scope, id, removal_policy=RemovalPolicy.DESTROY)
    # The property of the L2 construct takes a member of an enumeration, not a number.
    child(group, logs.CfnLogGroup).retention_in_days = retention_days
    return group
