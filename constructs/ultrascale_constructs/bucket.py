"""S3 buckets."""

from collections.abc import Mapping

from aws_cdk import CfnOutput, Duration, RemovalPolicy, Stack
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ultrascale.plan.model import BucketPlan
from ultrascale_constructs.acknowledgment import acknowledge, acknowledge_wildcards
from ultrascale_constructs.cdk_types import logical_id


class Bucket(Construct):
    """Defines one bucket that outlives its stack.

    S3 chooses its name. Names are unique in the world: with a fixed name, a retained bucket would
    block a second deployment of the stack. An output shows the name.
    """

    def __init__(self, scope: Construct, id: str, *, plan: BucketPlan, key: kms.IKey) -> None:
        super().__init__(scope, id)
        bucket = s3.Bucket(
            self,
            "Resource",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            encryption=s3.BucketEncryption.KMS,
            encryption_key=key,
            # Without a bucket key each object that a fleet reads is a call of KMS, which limits the
            # rate.
            # Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucket-key.html
            bucket_key_enabled=True,
            versioned=True,
            lifecycle_rules=[_lifecycle(plan)],
            # Not retained after a failed first attempt: the bucket is empty.
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        if bucket.policy is not None:
            # The retained bucket keeps refusing connections without TLS.
            bucket.policy.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        acknowledge(
            bucket,
            {
                "AwsSolutions::AwsSolutions-S1": (
                    "a line of access log for each read of a training fleet is terabytes a day; "
                    "who deleted what is for the account's CloudTrail to record"
                )
            },
        )
        CfnOutput(self, "Name", value=bucket.bucket_name, description=f"Bucket {plan.name}")
        self.bucket_name = bucket.bucket_name  # Its name
        self.bucket_arn = bucket.bucket_arn  # Its ARN
        self.objects_arn = bucket.arn_for_objects("*")  # ARN of all its objects
        self.key_arn = key.key_arn  # ARN of its key
        # Conditions under which roles may use it: none
        self.conditions: Mapping[str, Mapping[str, object]] = {}
        # The file systems use the same key.
        by_s3 = f"s3.{Stack.of(self).region}.{Stack.of(self).url_suffix}"
        # Conditions under which they may use its key, by operator and key
        self.key_conditions = {"StringEquals": {"kms:ViaService": by_s3}}
        self._bucket = bucket

    def acknowledge_objects(self, role: Construct, reason: str) -> None:
        """Accept that the permissions of ``role`` name all objects of the bucket.

        Args:
            role: The role.
            reason: Why it is accepted.
        """
        acknowledge_wildcards(role, {f"<{logical_id(self._bucket)}.Arn>/*": reason})


def _lifecycle(plan: BucketPlan) -> s3.LifecycleRule:
    return s3.LifecycleRule(
        id="leftovers",
        noncurrent_version_expiration=Duration.days(plan.old_version_days),
        # Removes the delete marker of an object whose versions are all gone.
        expired_object_delete_marker=True,
        abort_incomplete_multipart_upload_after=Duration.days(plan.unfinished_upload_days),
    )
