"""ECR repositories. They outlive the stack."""

from aws_cdk import Stack
from constructs import Construct

from ultrascale.plan.model import ClusterPlan
from ultrascale_constructs.registry import Registry
from ultrascale_stacks.deployment import stack_properties


class RegistryStack(Stack):
    """Defines the ECR repositories of the cluster file.

    Attributes:
        key: The key that the images are encrypted with.
    """

    def __init__(self, scope: Construct, id: str, *, plan: ClusterPlan) -> None:
        super().__init__(scope, id, **stack_properties(plan))
        self.key = Registry(
            self,
            "Registry",
            cluster_name=plan.name,
            repositories=plan.repositories,
            untagged_image_retention_days=plan.untagged_image_retention_days,
            key_arn=plan.keys.registry,
        ).key
        if plan.keys.registry is None:
            # It stays when nothing is built any more: the stack of the builder would still import
            # it.
            self.export_value(self.key.key_arn)
