"""The IAM roles with which training pods write checkpoints to a bucket."""

from collections.abc import Iterator

from constructs import Construct

from ultrascale.plan.model import OutputAccessPlan
from ultrascale_constructs.bucket import Bucket
from ultrascale_constructs.existing_storage import ExistingBucket
from ultrascale_constructs.pod_identity import Permission, PodIdentityRole

# Actions of torch's S3 writer and reader, and of the deletion of old checkpoints.
# Source: https://github.com/awslabs/s3-connector-for-pytorch#get-started (permissions)
_BUCKET_ACTIONS = ("s3:ListBucket",)
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
        permissions = [*_permissions(bucket)]
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


def _permissions(bucket: Bucket | ExistingBucket) -> Iterator[Permission]:
    for actions, arn in (
        (_BUCKET_ACTIONS, bucket.bucket_arn),
        (_OBJECT_ACTIONS, bucket.objects_arn),
    ):
        yield Permission(actions=actions, resources=[arn], conditions=bucket.conditions)
    if bucket.key_arn is not None:
        yield Permission(
            actions=_KEY_ACTIONS, resources=[bucket.key_arn], conditions=bucket.key_conditions
        )
