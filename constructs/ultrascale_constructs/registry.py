"""ECR repositories."""

from collections.abc import Sequence

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_ecr as ecr
from constructs import Construct

from ultrascale.plan import names
from ultrascale_constructs.key import key_of


class Registry(Construct):
    """Defines the repositories that jobs pull their images from. They outlive their stack.

    Attributes:
        key: The key that the images are encrypted with.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster_name: str,
        repositories: Sequence[str],
        untagged_image_retention_days: int,
        key_arn: str | None,
    ) -> None:
        """Define the repositories.

        Args:
            scope: Parent.
            id: Construct id.
            cluster_name: Name of the cluster.
            repositories: Names of the repositories in the cluster file.
            untagged_image_retention_days: How long images without a tag are kept, in days.
            key_arn: ARN of the user's own key; None: one is made.
        """
        super().__init__(scope, id)
        self.key = key_of(self, description=f"Container images of {cluster_name}", arn=key_arn)
        for name in repositories:
            ecr.Repository(
                self,
                name,
                repository_name=names.repository(cluster_name, name),
                image_tag_mutability=ecr.TagMutability.IMMUTABLE,
                image_scan_on_push=True,
                encryption=ecr.RepositoryEncryption.KMS,
                encryption_key=self.key,
                lifecycle_rules=[
                    ecr.LifecycleRule(
                        description="layers of failed or replaced pushes",
                        tag_status=ecr.TagStatus.UNTAGGED,
                        max_image_age=Duration.days(untagged_image_retention_days),
                    )
                ],
                removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
            )
