"""The build of the container images of jobs."""

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan
from ultrascale_constructs.image_builder import ImageBuilder
from ultrascale_stacks.deployment import stack_properties


class ImagesStack(Stack):
    """Defines the CodeBuild project; its outputs show how to start it, and the images it makes."""

    def __init__(self, scope: Construct, id: str, *, plan: ClusterPlan, key: kms.IKey) -> None:
        super().__init__(scope, id, **stack_properties(plan))
        assert plan.image_builder is not None, "a cluster that builds no images has no such stack"
        ImageBuilder(
            self,
            "Builder",
            cluster_name=plan.name,
            region=plan.region,
            builds=plan.image_builds,
            plan=plan.image_builder,
            key=key,
        )
        CfnOutput(
            self,
            "BuildCommand",
            value=names.build_command(plan.name, plan.region),
            description="builds and pushes the images that the repositories lack",
        )
        images = Construct(self, "Images")
        for build in plan.image_builds:
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
