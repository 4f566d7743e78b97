"""The IAM role of Mountpoint for S3."""

from collections.abc import Iterator, Sequence

from constructs import Construct

from ultrascale.plan import names
from ultrascale.plan.model.storage import Access
from ultrascale_constructs.bucket import Bucket
from ultrascale_constructs.existing_storage import ExistingBucket
from ultrascale_constructs.pod_identity import Permission, PodIdentityRole

# Source: https://github.com/awslabs/mountpoint-s3/blob/main/doc/CONFIGURATION.md#iam-permissions
_BUCKET_ACTIONS = ("s3:ListBucket",)
_READ_ACTIONS = ("s3:GetObject",)
_WRITE_ACTIONS = ("s3:PutObject", "s3:AbortMultipartUpload", "s3:DeleteObject")
_READ_KEY_ACTIONS = ("kms:Decrypt",)
_WRITE_KEY_ACTIONS = ("kms:GenerateDataKey",)

_Mounted = tuple[Bucket | ExistingBucket, Access]


class MountpointAccess(Construct):
    """Defines the role with which the driver of Mountpoint for S3 reaches the mounted buckets.

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
            permissions=[each for group in groups if group for each in _permissions(group)],
        )
        for bucket, _ in buckets:
            bucket.acknowledge_objects(self, "pods mount a bucket for all of its objects")


def _permissions(buckets: Sequence[_Mounted]) -> Iterator[Permission]:
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
