"""Repositories of images, their build, and the cache of public registries."""

from collections.abc import Iterable, Mapping

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan
from ultrascale_constructs.image_builder import ImageBuilder
from ultrascale_constructs.registry import ImageCache, Registry
from ultrascale_stacks.deployment import stack_properties


class ImageCacheStack(Stack):
    """Defines the cache of the platform's images, which holds only copies.

    Attributes:
        placeholders: Values of placeholders in the manifests: the account.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: ClusterPlan,
        images: Iterable[str],
    ) -> None:
        super().__init__(scope, id, **stack_properties(plan))
        assert plan.images.cache is not None, "a cluster without a cache has no such stack"
        ImageCache(
            self, "Cache", plan=plan.images.cache, images=images, key_arn=plan.key("registry")
        )
        self.placeholders: Mapping[str, str] = {names.ACCOUNT_ID: self.account}


class RegistryStack(Stack):
    """Defines the ECR repositories of the cluster file.

    Attributes:
        key: The key that encrypts the images.
    """

    def __init__(self, scope: Construct, id: str, *, plan: ClusterPlan) -> None:
        super().__init__(scope, id, **stack_properties(plan))
        self.key = Registry(
            self,
            "Registry",
            cluster_name=plan.name,
            repositories=plan.images.repositories,
            untagged_image_retention_days=plan.images.untagged_retention_days,
            key_arn=plan.key("registry"),
        ).key
        if plan.key("registry") is None:
            # It stays even without builds: the stack of the builder would still import
            # it.
            self.export_value(self.key.key_arn)


class ImagesStack(Stack):
    """Defines the CodeBuild project; outputs show the command that starts it and its images."""

    def __init__(self, scope: Construct, id: str, *, plan: ClusterPlan, key: kms.IKey) -> None:
        super().__init__(scope, id, **stack_properties(plan))
        assert plan.images.builder is not None, "a cluster that builds no images has no such stack"
        ImageBuilder(
            self,
            "Builder",
            cluster_name=plan.name,
            region=plan.region,
            builds=plan.images.builds,
            plan=plan.images.builder,
            key=key,
        )
        CfnOutput(
            self,
            "BuildCommand",
            value=names.build_command(plan.name, plan.region),
            description="builds and pushes the images that the repositories lack",
        )
        images = Construct(self, "Images")
        for build in plan.images.builds:
            CfnOutput(
                images,
                build.repository,
                value=names.image_uri(
                    account=self.account,
                    region=plan.region,
                    cluster=plan.name,
                    repository=build.repository,
                    tag=build.tag,
                ),
                description=f"image of {build.source} in {build.repository}",
            )
