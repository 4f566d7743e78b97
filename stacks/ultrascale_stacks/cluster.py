"""The network and the EKS control plane, each in a stack where nothing else can fail."""

from aws_cdk import Stack
from constructs import Construct

from ultrascale.plan.model import ClusterPlan
from ultrascale_constructs.control_plane import ControlPlane
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
        # Exported whether used or not: CloudFormation would have to delete an unused export before
        # it updates its last user, and refuses that.
        for value in (self.network.vpc_id, *self.network.subnet_ids()):
            self.export_value(value)


class ClusterStack(Stack):
    """Defines the EKS control plane.

    Attributes:
        network: The VPC and its subnets.
        security_group_id: Cluster security group.
        endpoint: URL of the API server.
        certificate_authority: Certificate authority of the API server, in Base64.
    """

    def __init__(
        self, scope: Construct, id: str, *, plan: ClusterPlan, network: Network | None
    ) -> None:
        """Define the stack.

        Args:
            scope: Parent.
            id: Name of the stack.
            plan: The cluster.
            network: The VPC; None for an existing VPC of which no earlier stack makes a part.
        """
        super().__init__(scope, id, **stack_properties(plan))
        if network is None:
            network = Network(
                self, "Network", plan=plan.network, cluster_name=plan.name, region=plan.region
            )
        self.network = network
        control_plane = ControlPlane(
            self,
            "ControlPlane",
            name=plan.name,
            plan=plan.control_plane,
            vpc=network.vpc,
            subnet_ids=network.subnet_ids("control-plane"),
            tags_nodes=any(pool.tags for pool in plan.all_pools if pool.is_auto_mode),
        )
        self.security_group_id = control_plane.security_group_id
        self.endpoint = control_plane.endpoint
        self.certificate_authority = control_plane.certificate_authority
        # Exported whether used or not: see `NetworkStack`.
        for value in (self.security_group_id, self.endpoint, self.certificate_authority):
            self.export_value(value)
