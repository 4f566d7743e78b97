"""The IAM role of Mountpoint for S3."""

from collections.abc import Iterator, Mapping, Sequence

from aws_cdk import aws_kms as kms
from constructs import Construct

from ultrascale.plan import names
from ultrascale.plan.model import BucketPlan
from ultrascale_constructs.bucket import Bucket
from ultrascale_constructs.pod_identity import Permission, PodIdentityRole

# Source: https://github.com/awslabs/mountpoint-s3/blob/main/doc/CONFIGURATION.md#iam-permissions
_BUCKET_ACTIONS = ("s3:ListBucket",)
_READ_ACTIONS = ("s3:GetObject",)
_WRITE_ACTIONS = ("s3:PutObject", "s3:AbortMultipartUpload", "s3:DeleteObject")
_READ_KEY_ACTIONS = ("kms:Decrypt",)
_WRITE_KEY_ACTIONS = ("kms:GenerateDataKey",)


class MountpointAccess(Construct):
    """Defines the role by which the driver of Mountpoint for S3 reaches the mounted buckets.

    All mounts of a node share it: the claims in a namespace decide which buckets it can mount.

    Source: https://github.com/awslabs/mountpoint-s3/blob/main/doc/CONFIGURATION.md#iam-permissions
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        buckets: Mapping[str, Bucket],
        plans: Mapping[str, BucketPlan],
        key: kms.IKey,
        cluster_name: str,
    ) -> None:
        """Define the role and its association.

        Args:
            scope: The stack.
            id: Construct id.
            buckets: The mounted buckets, by their names in the cluster file.
            plans: Plans of the same buckets.
            key: Key of all of them.
            cluster_name: Name of the cluster.
        """
        super().__init__(scope, id)
        writable = [bucket for name, bucket in buckets.items() if plans[name].access == "write"]
        PodIdentityRole(
            self,
            "Driver",
            cluster_name=cluster_name,
            service_account=names.MOUNTPOINT_ACCOUNT,
            permissions=[*_reading([*buckets.values()], key), *_writing(writable, key)],
        )
        for bucket in buckets.values():
            bucket.acknowledge_objects(self, "pods mount a bucket for all of its objects")


def _reading(buckets: Sequence[Bucket], key: kms.IKey) -> Iterator[Permission]:
    yield Permission(actions=_BUCKET_ACTIONS, resources=[bucket.bucket_arn for bucket in buckets])
    yield Permission(actions=_READ_ACTIONS, resources=[bucket.objects_arn for bucket in buckets])
    yield Permission(actions=_READ_KEY_ACTIONS, resources=[key.key_arn])


def _writing(buckets: Sequence[Bucket], key: kms.IKey) -> Iterator[Permission]:
    if buckets:
        yield Permission(
            actions=_WRITE_ACTIONS, resources=[bucket.objects_arn for bucket in buckets]
        )
        yield Permission(actions=_WRITE_KEY_ACTIONS, resources=[key.key_arn])
