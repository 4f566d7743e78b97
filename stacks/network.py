"""The network: what everything else lies in."""

from aws_cdk import Stack
from constructs import Construct

from stacks._environment import environment
from ultrascale.plan import ClusterPlan
from ultrascale_constructs.network import Network


class NetworkStack(Stack):
    """Defines the VPC of a cluster.

    Attributes:
        network: The VPC and its subnets.
    """

    def __init__(self, scope: Construct, id: str, *, plan: ClusterPlan) -> None:
        super().__init__(scope, id, env=environment(plan), termination_protection=True)
        self.network = Network(self, "Network", plan=plan.network, region=plan.region)
