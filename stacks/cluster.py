"""The cluster, without anything that can fail beside it."""

from aws_cdk import Stack
from constructs import Construct

from stacks._environment import environment
from ultrascale.plan import ClusterPlan
from ultrascale_constructs.control_plane import ControlPlane
from ultrascale_constructs.network import Network


class ClusterStack(Stack):
    """Defines the EKS control plane.

    Attributes:
        security_group_id: Cluster security group.
    """

    def __init__(self, scope: Construct, id: str, *, plan: ClusterPlan, network: Network) -> None:
        super().__init__(scope, id, env=environment(plan))
        control_plane = ControlPlane(
            self,
            "ControlPlane",
            name=plan.name,
            plan=plan.control_plane,
            vpc=network.vpc,
            subnet_ids=network.subnet_ids("control-plane"),
        )
        self.security_group_id = control_plane.security_group_id
        self.export_value(self.security_group_id)
