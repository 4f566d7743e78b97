"""Repositories of images, the build of images, and the cache of public registries."""

from aws_cdk import CfnOutput
from constructs import Construct

from ultrascale.plan import names
from ultrascale.plan.stacks import StackName
from ultrascale_constructs.images import ImageBuilder, ImageCache, Registry
from ultrascale_stacks.cluster import ClusterStacks, LayerStack


class ImageCacheStack(LayerStack):
    """Stack of the cache for the platform's images; it holds only copies."""

    def __init__(self, cluster: ClusterStacks, name: StackName) -> None:
        super().__init__(cluster, name)
        plan = cluster.plan
        assert plan.images.cache is not None, "a cluster without a cache has no such stack"
        ImageCache(
            self,
            "Cache",
            plan=plan.images.cache,
            images=cluster.charts.published_images,
            key_arn=plan.key("registry"),
        )
        self.placeholders = {names.ACCOUNT_ID: self.account}


class RegistryStack(LayerStack):
    """Stack of the ECR repositories in the cluster file."""

    def __init__(self, cluster: ClusterStacks, name: StackName) -> None:
        super().__init__(cluster, name)
        plan = cluster.plan
        # The key that encrypts the images
        self.key = Registry(
            self,
            "Registry",
            cluster_name=plan.name,
            repositories=plan.images.repositories,
            untagged_image_retention_days=plan.images.untagged_retention_days,
            key_arn=plan.key("registry"),
        ).key
        if plan.key("registry") is None:
            # The key stays even without builds: the builder's stack would still import it.
            self.export_value(self.key.key_arn)


class ImagesStack(LayerStack):
    """Stack of the CodeBuild project; its outputs show the command to start it, and its images."""

    def __init__(self, cluster: ClusterStacks, name: StackName) -> None:
        super().__init__(cluster, name)
        plan = cluster.plan
        assert plan.images.builder is not None, "a cluster that builds no images has no such stack"
        ImageBuilder(
            self,
            "Builder",
            cluster_name=plan.name,
            region=plan.region,
            builds=plan.images.builds,
            plan=plan.images.builder,
            key=cluster.get(RegistryStack).key,
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
