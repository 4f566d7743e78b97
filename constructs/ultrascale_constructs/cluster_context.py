"""References from constructs in any stack to their cluster."""

from collections.abc import Sequence

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ultrascale.frozen import Frozen


class ClusterContext(Frozen):
    """A cluster and its network; values may be tokens of other stacks."""

    name: str  # Name of the cluster
    endpoint: str  # URL of its API server, which may answer only in the VPC
    certificate_authority: str  # The API server's certificate authority, base64-encoded
    service_cidr: str  # Range of Kubernetes Services
    # Cluster security group, by which nodes, pods and the API server reach each other.
    security_group_id: str
    vpc: ec2.IVpc  # VPC, without its subnets
    # Subnets from which the API server and all AWS services can be reached.
    private_subnet_ids: tuple[str, ...]

    def private_subnets(self, scope: Construct) -> list[ec2.ISubnet]:
        """Return the private subnets, as references in ``scope``."""
        return subnets(scope, self.private_subnet_ids)

    def security_group(self, scope: Construct) -> ec2.ISecurityGroup:
        """Return the cluster security group, as a reference in ``scope``."""
        return ec2.SecurityGroup.from_security_group_id(
            scope, "SecurityGroup", self.security_group_id
        )


def subnets(scope: Construct, ids: Sequence[str]) -> list[ec2.ISubnet]:
    """Return subnets by their ids, as references in ``scope``."""
    return [ec2.Subnet.from_subnet_id(scope, f"Subnet{index}", id) for index, id in enumerate(ids)]
