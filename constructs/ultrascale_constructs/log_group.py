"""CloudWatch log groups, and flow logs of a VPC."""

from aws_cdk import ArnFormat, Duration, RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct, IConstruct

from ultrascale_constructs.acknowledgment import acknowledge, acknowledge_wildcards, shown_account
from ultrascale_constructs.cdk_types import child, principal


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


# --- Flow logs of a VPC, to a log group or to a bucket --------------------------------------------


_DELIVERY = "delivery.logs.amazonaws.com"


def log_to_group(scope: Construct, *, vpc_id: str, region: str, retention_days: int) -> None:
    """Define flow logs of all traffic to a log group.

    Args:
        scope: Parent.
        vpc_id: Id of the VPC.
        region: AWS Region.
        retention_days: How long they are kept, in days.
    """
    group = define_log_group(scope, "FlowLogs", retention_days=retention_days)
    ec2.CfnFlowLog(
        scope,
        "FlowLog",
        resource_id=vpc_id,
        resource_type="VPC",
        traffic_type="ALL",
        log_group_name=group.log_group_name,
        deliver_logs_permission_arn=_role(scope, group, region).role_arn,
    )


def log_to_bucket(scope: Construct, *, vpc_id: str, retention_days: int) -> None:
    """Define flow logs of all traffic to a bucket, as Parquet, which is cheaper to query.

    Args:
        scope: Parent.
        vpc_id: Id of the VPC.
        retention_days: How long they are kept, in days.
    """
    bucket = s3.Bucket(
        scope,
        "FlowLogBucket",
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        enforce_ssl=True,
        # A KMS key would have to allow the delivery service.
        encryption=s3.BucketEncryption.S3_MANAGED,
        lifecycle_rules=[s3.LifecycleRule(id="age", expiration=Duration.days(retention_days))],
        removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    )
    acknowledge(
        bucket,
        {
            "AwsSolutions::AwsSolutions-S1": (
                "it holds logs itself; who reads them is for the account's CloudTrail to record"
            )
        },
    )
    _let_deliver(bucket)
    assert bucket.policy is not None
    bucket.policy.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
    ec2.CfnFlowLog(
        scope,
        "FlowLogToBucket",
        resource_id=vpc_id,
        resource_type="VPC",
        traffic_type="ALL",
        log_destination_type="s3",
        log_destination=bucket.bucket_arn,
        destination_options=ec2.CfnFlowLog.DestinationOptionsProperty(
            file_format="parquet", hive_compatible_partitions=False, per_hour_partition=True
        ),
    ).node.add_dependency(bucket.policy)


def _let_deliver(bucket: s3.Bucket) -> None:
    """Let flow logs of this account write to the bucket.

    Source: https://docs.aws.amazon.com/vpc/latest/userguide/flow-logs-s3-permissions.html
    """
    stack = Stack.of(bucket)
    own = {
        "StringEquals": {"aws:SourceAccount": stack.account},
        "ArnLike": {
            "aws:SourceArn": stack.format_arn(
                service="logs", resource="*", arn_format=ArnFormat.NO_RESOURCE_NAME
            )
        },
    }
    service = iam.ServicePrincipal(_DELIVERY)
    full = {"s3:x-amz-acl": "bucket-owner-full-control"}
    bucket.add_to_resource_policy(
        iam.PolicyStatement(
            principals=[principal(service)],
            actions=["s3:PutObject"],
            resources=[bucket.arn_for_objects(f"AWSLogs/{stack.account}/*")],
            conditions={**own, "StringEquals": {**own["StringEquals"], **full}},
        )
    )
    bucket.add_to_resource_policy(
        iam.PolicyStatement(
            principals=[principal(service)],
            actions=["s3:GetBucketAcl", "s3:ListBucket"],
            resources=[bucket.bucket_arn],
            conditions=own,
        )
    )


def _role(scope: Construct, group: logs.LogGroup, region: str) -> iam.Role:
    """Define the role by which this account's flow logs find their log group and write to it.

    Source: https://docs.aws.amazon.com/vpc/latest/userguide/flow-logs-iam-role.html
    """
    stack = Stack.of(scope)
    # The role names no single flow log: the log has no id before it exists, and needs the role
    # then.
    own = stack.format_arn(service="ec2", resource="vpc-flow-log", resource_name="*")
    conditions = {
        "StringEquals": {"aws:SourceAccount": stack.account},
        "ArnLike": {"aws:SourceArn": own},
    }
    service = iam.ServicePrincipal("vpc-flow-logs.amazonaws.com", conditions=conditions)
    role = iam.Role(scope, "FlowLogsRole", assumed_by=principal(service))
    group.grant_write(role)
    groups = stack.format_arn(
        service="logs",
        resource="log-group",
        resource_name="*",
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
    role.add_to_policy(
        iam.PolicyStatement(
            actions=["logs:DescribeLogGroups", "logs:DescribeLogStreams"], resources=[groups]
        )
    )
    account = shown_account(stack)
    groups_shown = f"arn:{stack.partition}:logs:{region}:{account}:log-group:*"
    reason = "flow logs look their log group up by listing; it reads nothing else"
    acknowledge_wildcards(role, {groups_shown: reason})
    return role
