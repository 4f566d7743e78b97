"""The bucket of the lifecycle scripts that HyperPod runs on each new instance."""

from hashlib import sha256
from pathlib import Path

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_deployment as deployment
from constructs import Construct

from ultrascale_constructs.acknowledgment import (
    acknowledge,
    acknowledge_managed_policies,
    shown_account,
)
from ultrascale_constructs.cdk_types import as_bucket, as_construct, as_log_group, logical_id

ON_CREATE = "on_create.sh"
_SCRIPTS = Path(__file__).parent / "lifecycle"
_FOLDER = "lifecycle"
_DIGITS = 12
# Actions whose variants the CDK grants the deployment.
_ACTIONS = ("Abort", "DeleteObject", "GetBucket", "GetObject", "List")


class HyperPodLifecycleBucket(Construct):
    """Defines the bucket, and uploads changed scripts at a deployment.

    Its name must begin with ``sagemaker-``. It is deleted with its stack, with the scripts in it:
    they are part of this project.

    Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ClusterLifeCycleConfig.html

    Attributes:
        bucket: The bucket.
        uri: S3 URI of the folder with the scripts.
    """

    def __init__(self, scope: Construct, id: str, *, cluster_name: str, region: str) -> None:
        super().__init__(scope, id)
        # A bucket's name is unique in the world, and too short for a cluster's name.
        digest = sha256(f"{cluster_name}/{region}".encode()).hexdigest()[:_DIGITS]
        bucket = s3.Bucket(
            self,
            "Resource",
            bucket_name=f"sagemaker-lifecycle-{digest}-{Stack.of(self).account}",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            versioned=True,
            # A retained bucket of that name would block the next stack of the same cluster.
            removal_policy=RemovalPolicy.DESTROY,
            auto_delete_objects=True,
        )
        self.bucket = bucket
        self.uri = f"s3://{bucket.bucket_name}/{_FOLDER}"
        group = logs.LogGroup(
            self,
            "Logs",
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=RemovalPolicy.DESTROY,
        )
        scripts = deployment.BucketDeployment(
            self,
            "Scripts",
            destination_bucket=as_bucket(bucket),
            destination_key_prefix=_FOLDER,
            sources=[deployment.Source.asset(str(_SCRIPTS))],
            retain_on_delete=False,
            log_group=as_log_group(group),
        )
        acknowledge(
            bucket,
            {
                "AwsSolutions::AwsSolutions-S1": (
                    "one script of this project, which instances read when they are made"
                ),
                "ultrascale::Retained": "the script is part of this project, not a user's data",
            },
        )
        _acknowledge(scripts, bucket)


def _acknowledge(scripts: deployment.BucketDeployment, bucket: s3.Bucket) -> None:
    """Accept findings in the CDK's own construct for the upload of files."""
    stack = Stack.of(scripts)
    scope = scripts.handler_role.node.scope
    assert scope is not None
    function = as_construct(scope)
    account = shown_account(stack)
    assets = f"cdk-hnb659fds-assets-{account}-{stack.region}"
    shown = f"arn:{stack.partition}:s3:::{assets}/*"
    reason = "part of the CDK's deployment of files, which copies from assets to this one bucket"
    acknowledge_managed_policies(function, {"service-role/AWSLambdaBasicExecutionRole": reason})
    acknowledge(
        function,
        {
            "AwsSolutions::AwsSolutions-L1": "the CDK chooses its function's runtime",
            **{
                f"AwsSolutions::AwsSolutions-IAM5[{finding}]": reason
                for finding in (
                    f"Resource::<{logical_id(bucket)}.Arn>/*",
                    f"Resource::{shown}",
                    *(f"Action::s3:{action}*" for action in _ACTIONS),
                )
            },
        },
    )
