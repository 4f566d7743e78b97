"""ECR: repositories, and the cache of public registries."""

from collections.abc import Iterable, Sequence

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_ecr as ecr
from constructs import Construct

from ultrascale.plan import names
from ultrascale.plan.model import ImageCachePlan
from ultrascale_constructs.acknowledgment import acknowledge
from ultrascale_constructs.key import key_of


class ImageCache(Construct):
    """Defines a pull-through rule for each public registry, and the repositories of its images.

    ECR can create a repository at the first pull, but then every node would need the permission to
    create repositories. With existing repositories the permission to pull is enough.

    Source: https://docs.aws.amazon.com/AmazonECR/latest/userguide/pull-through-cache-iam.html
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: ImageCachePlan,
        images: Iterable[str],
        key_arn: str | None,
    ) -> None:
        """Define the cache.

        Args:
            scope: Parent.
            id: Construct id.
            plan: The cache.
            images: Published references of the images.
            key_arn: ARN of the user's own key of images; None: ECR encrypts with its own key.
        """
        super().__init__(scope, id)
        for rule in plan.rules:
            ecr.CfnPullThroughCacheRule(
                self,
                rule.kind,
                ecr_repository_prefix=rule.prefix,
                upstream_registry=rule.kind,
                upstream_registry_url=rule.url,
                credential_arn=rule.secret,
            )
        for name in sorted({*filter(None, map(plan.repository, images))}):
            repository = ecr.CfnRepository(
                self,
                name,
                repository_name=name,
                # The cached image follows a tag that its publisher moves.
                image_tag_mutability="MUTABLE",
                image_scanning_configuration={"scanOnPush": True},
                empty_on_delete=True,
                encryption_configuration=None
                if key_arn is None
                else {"encryptionType": "KMS", "kmsKey": key_arn},
            )
            reason = "what it holds comes from its publisher again"
            acknowledge(repository, {"ultrascale::Retained": reason})


class Registry(Construct):
    """Defines the repositories that jobs pull their images from; they outlive their stack."""

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
            key_arn: ARN of the user's own key; None defines a key.
        """
        super().__init__(scope, id)
        # The key that encrypts the images
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
