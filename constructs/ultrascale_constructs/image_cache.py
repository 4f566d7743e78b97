"""ECR's cache of public registries."""

from collections.abc import Iterable

from aws_cdk import aws_ecr as ecr
from constructs import Construct

from ultrascale.plan.model import ImageCachePlan
from ultrascale_constructs.acknowledgment import acknowledge


class ImageCache(Construct):
    """Defines a pull-through rule for each public registry, and the repositories of its images.

    ECR can create a repository at the first pull, but then every node needs the permission to
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
            images: References of the images, as their publishers have them.
            key_arn: ARN of the user's own key of images; None: ECR encrypts with its own.
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
                # ECR follows a tag that its publisher moves.
                image_tag_mutability="MUTABLE",
                image_scanning_configuration={"scanOnPush": True},
                empty_on_delete=True,
                encryption_configuration=None
                if key_arn is None
                else {"encryptionType": "KMS", "kmsKey": key_arn},
            )
            reason = "what it holds comes from its publisher again"
            acknowledge(repository, {"ultrascale::Retained": reason})
