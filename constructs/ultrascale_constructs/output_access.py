"""The IAM roles by which training pods write checkpoints to a bucket."""

from aws_cdk import Stack
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultrascale.plan.model import OutputAccessPlan
from ultrascale_constructs.bucket import Bucket
from ultrascale_constructs.pod_identity import Permission, PodIdentityRole

# What torch's S3 writer and reader do, and the deletion of checkpoints beyond those that are kept.
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

    The bucket is shared, as is a file system: a job of any namespace may read what others wrote.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: OutputAccessPlan,
        bucket: Bucket,
        key: kms.IKey,
        cluster_name: str,
    ) -> None:
        """Define the roles and their associations.

        Args:
            scope: The stack.
            id: Construct id.
            plan: The namespaces, and the service account of their pods.
            bucket: The bucket.
            key: Its key.
            cluster_name: Name of the cluster.
        """
        super().__init__(scope, id)
        stack = Stack.of(self)
        # The key is that of the file systems as well.
        by_s3 = {"StringEquals": {"kms:ViaService": f"s3.{stack.region}.{stack.url_suffix}"}}
        for namespace in plan.namespaces:
            PodIdentityRole(
                self,
                namespace,
                cluster_name=cluster_name,
                namespace=namespace,
                service_account=plan.service_account,
                permissions=[
                    Permission(actions=_BUCKET_ACTIONS, resources=[bucket.bucket_arn]),
                    Permission(actions=_OBJECT_ACTIONS, resources=[bucket.objects_arn]),
                    Permission(actions=_KEY_ACTIONS, resources=[key.key_arn], conditions=by_s3),
                ],
            )
        bucket.acknowledge_objects(self, "jobs write checkpoints under prefixes of their own")
