"""Where a pipeline keeps the files of its runs."""

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_codepipeline as codepipeline
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ultrascale.plan.model import PipelinePlan
from ultrascale_constructs.acknowledgment import acknowledge
from ultrascale_constructs.cdk_types import as_bucket
from ultrascale_constructs.key import Key

_NO_ACCESS_LOG = {
    "AwsSolutions::AwsSolutions-S1": (
        "files of builds, which go after weeks; who read them is for the account's CloudTrail "
        "to record"
    )
}


def artifact_bucket(scope: Construct, *, plan: PipelinePlan) -> s3.IBucket:
    """Define the bucket of the pipeline, with a key that the accounts of its stages may use."""
    bucket = s3.Bucket(
        scope,
        "Artifacts",
        encryption=s3.BucketEncryption.KMS,
        encryption_key=Key(scope, "Key", description=f"Files of {plan.name}").key,
        bucket_key_enabled=True,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        enforce_ssl=True,
        removal_policy=RemovalPolicy.RETAIN,
        lifecycle_rules=[
            s3.LifecycleRule(
                id="runs",
                expiration=Duration.days(plan.artifact_retention_days),
                abort_incomplete_multipart_upload_after=Duration.days(1),
            )
        ],
    )
    acknowledge(bucket, _NO_ACCESS_LOG)
    return as_bucket(bucket)


def keep_replicas(pipeline: codepipeline.Pipeline) -> None:
    """Let the keys of the pipeline's buckets in other Regions outlive their stacks, and rotate."""
    for support in pipeline.cross_region_support.values():
        for construct in support.stack.node.find_all():
            if isinstance(construct, kms.CfnKey | s3.CfnBucket):
                construct.apply_removal_policy(RemovalPolicy.RETAIN)
            if isinstance(construct, kms.CfnKey):
                construct.enable_key_rotation = True
        acknowledge(support.stack, _NO_ACCESS_LOG)
