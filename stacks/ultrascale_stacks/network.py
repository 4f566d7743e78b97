"""The VPC of a cluster."""

from aws_cdk import Stack
from constructs import Construct

from ultrascale.plan.model import ClusterPlan
from ultrascale_constructs.network import Network
from ultrascale_stacks.deployment import stack_properties


class NetworkStack(Stack):
    """Defines the VPC of a cluster.

    Attributes:
        network: The VPC and its subnets.
    """

    def __init__(self, scope: Construct, id: str, *, plan: ClusterPlan) -> None:
        super().__init__(scope, id, **stack_properties(plan))
        self.network = Network(
            self, "Network", plan=plan.network, cluster_name=plan.name, region=plan.region
        )
        if plan.network.existing is not None:
            return
        # Exported whether used or not: an export that went with its last user would have to go
        # before that user is updated, which CloudFormation refuses.
        for value in (self.network.vpc_id, *self.network.subnet_ids()):
            self.export_value(value)
