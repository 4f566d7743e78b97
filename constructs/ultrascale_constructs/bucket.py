"""S3 buckets, and the IAM roles of pods that mount and write them."""

from collections.abc import Iterator, Mapping, Sequence

from aws_cdk import CfnOutput, Duration, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ultrascale.plan import names
from ultrascale.plan.model import BucketPlan, OutputAccessPlan
from ultrascale.plan.model.storage import Access
from ultrascale_constructs.acknowledgment import acknowledge, acknowledge_wildcards
from ultrascale_constructs.cdk_types import logical_id, principal
from ultrascale_constructs.existing_storage import ExistingBucket
from ultrascale_constructs.pod_identity import Permission, PodIdentityRole


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
            lifecycle_rules=[_lifecycle(plan), *map(_expiry, plan.kept)],
            # Not retained after a failed first attempt: the bucket is empty.
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        self._allow(plan.readers, bucket, key)
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

    def _allow(self, readers: Sequence[str], bucket: s3.Bucket, key: kms.IKey) -> None:
        """Let roles read the objects; the policy of a user's own key is the user's to change."""
        for role in [principal(iam.ArnPrincipal(arn)) for arn in readers]:
            bucket.add_to_resource_policy(
                iam.PolicyStatement(
                    principals=[role],
                    actions=["s3:GetObject", "s3:ListBucket"],
                    resources=[bucket.bucket_arn, bucket.arn_for_objects("*")],
                )
            )
            key.grant_decrypt(role)

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


def _expiry(kept: tuple[str, int]) -> s3.LifecycleRule:
    prefix, days = kept
    return s3.LifecycleRule(id=f"kept-{days}-days", prefix=prefix, expiration=Duration.days(days))


# --- The IAM role of Mountpoint for S3 ------------------------------------------------------------


# Source: https://github.com/awslabs/mountpoint-s3/blob/main/doc/CONFIGURATION.md#iam-permissions
_BUCKET_ACTIONS = ("s3:ListBucket",)
_READ_ACTIONS = ("s3:GetObject",)
_WRITE_ACTIONS = ("s3:PutObject", "s3:AbortMultipartUpload", "s3:DeleteObject")
_READ_KEY_ACTIONS = ("kms:Decrypt",)
_WRITE_KEY_ACTIONS = ("kms:GenerateDataKey",)

_Mounted = tuple[Bucket | ExistingBucket, Access]


class MountpointAccess(Construct):
    """Defines the role that lets the driver of Mountpoint for S3 reach the mounted buckets.

    All mounts of a node share the role: the claims in a namespace decide which buckets it can
    mount.

    Source: https://github.com/awslabs/mountpoint-s3/blob/main/doc/CONFIGURATION.md#iam-permissions
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        buckets: Sequence[_Mounted],
        cluster_name: str,
    ) -> None:
        """Define the role and its association.

        Args:
            scope: The stack.
            id: Construct id.
            buckets: The mounted buckets, each with the rights of pods on its objects.
            cluster_name: Name of the cluster.
        """
        super().__init__(scope, id)
        made: Sequence[_Mounted] = [pair for pair in buckets if isinstance(pair[0], Bucket)]
        groups = [made, *([pair] for pair in buckets if pair not in made)]
        PodIdentityRole(
            self,
            "Driver",
            cluster_name=cluster_name,
            service_account=names.MOUNTPOINT_ACCOUNT,
            permissions=[each for group in groups if group for each in _mount_permissions(group)],
        )
        for bucket, _ in buckets:
            bucket.acknowledge_objects(self, "pods mount a bucket for all of its objects")


def _mount_permissions(buckets: Sequence[_Mounted]) -> Iterator[Permission]:
    """Yield the role's permissions on buckets with the same key and conditions."""
    bucket, _ = buckets[0]
    conditions, keys = bucket.conditions, [bucket.key_arn] if bucket.key_arn else []
    writable = [each.objects_arn for each, access in buckets if access == "write"]
    statements = (
        (_BUCKET_ACTIONS, [each.bucket_arn for each, _ in buckets], conditions),
        (_READ_ACTIONS, [each.objects_arn for each, _ in buckets], conditions),
        (_READ_KEY_ACTIONS, keys, bucket.key_conditions),
        (_WRITE_ACTIONS, writable, conditions),
        (_WRITE_KEY_ACTIONS, keys if writable else [], bucket.key_conditions),
    )
    for actions, resources, where in statements:
        if resources:
            yield Permission(actions=actions, resources=resources, conditions=where)


# --- The IAM roles with which training pods write checkpoints to a bucket -------------------------


# Actions of torch's S3 writer and reader, and of the deletion of old checkpoints.
# Source: https://github.com/awslabs/s3-connector-for-pytorch#get-started (permissions)
_OBJECT_ACTIONS = (
    "s3:GetObject",
    "s3:PutObject",
    "s3:DeleteObject",
    "s3:AbortMultipartUpload",
)
_KEY_ACTIONS = ("kms:Decrypt", "kms:GenerateDataKey")


class OutputAccess(Construct):
    """Defines a role for the training pods of each job namespace.

    The bucket is shared like a file system: a job of any namespace may read all data.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: OutputAccessPlan,
        bucket: Bucket | ExistingBucket,
        cluster_name: str,
    ) -> None:
        """Define the roles and their associations.

        Args:
            scope: The stack.
            id: Construct id.
            plan: The namespaces, and the service account of their pods.
            bucket: The bucket.
            cluster_name: Name of the cluster.
        """
        super().__init__(scope, id)
        permissions = [*_write_permissions(bucket)]
        for namespace in plan.namespaces:
            PodIdentityRole(
                self,
                namespace,
                cluster_name=cluster_name,
                namespace=namespace,
                service_account=plan.service_account,
                permissions=permissions,
            )
        bucket.acknowledge_objects(self, "jobs write checkpoints under prefixes of their own")


def _write_permissions(bucket: Bucket | ExistingBucket) -> Iterator[Permission]:
    for actions, arn in (
        (_BUCKET_ACTIONS, bucket.bucket_arn),
        (_OBJECT_ACTIONS, bucket.objects_arn),
    ):
        yield Permission(actions=actions, resources=[arn], conditions=bucket.conditions)
    if bucket.key_arn is not None:
        yield Permission(
            actions=_KEY_ACTIONS, resources=[bucket.key_arn], conditions=bucket.key_conditions
        )
