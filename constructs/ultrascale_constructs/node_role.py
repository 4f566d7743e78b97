"""The IAM role of the nodes of a node class."""

from collections.abc import Mapping, Sequence

from aws_cdk import Stack
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from ultrascale_constructs.acknowledgment import acknowledge_managed_policies
from ultrascale_constructs.cdk_types import aws_policy, service

# Source: https://docs.aws.amazon.com/eks/latest/userguide/create-node-role.html
NODE_POLICIES: Mapping[str, str] = {
    "AmazonEKSWorkerNodePolicy": "what EKS documents for nodes, the CNI's rights excepted",
    "AmazonEC2ContainerRegistryPullOnly": "pull and nothing else",
    "AmazonSSMManagedInstanceCore": "the way onto a node, as there is no SSH",
}
# Source: https://docs.aws.amazon.com/eks/latest/userguide/cni-iam-role.html
CNI_POLICY: Mapping[str, str] = {
    "AmazonEKS_CNI_Policy": "what EKS documents where the VPC CNI has no role of its own",
}


class NodeRole(Construct):
    """Defines a role with the name that node classes use, and lets its nodes join."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster_name: str,
        role_name: str,
        managed_policies: Mapping[str, str],
        access_entry_type: str,
        access_policies: Sequence[str] = (),
        with_profile: bool = False,
    ) -> None:
        """Define the role and its access entry.

        Args:
            scope: Parent.
            id: Construct id.
            cluster_name: Cluster that the nodes join.
            role_name: Name of the role.
            managed_policies: Name of each AWS managed policy, and why it is accepted.
            access_entry_type: EKS's type of the access entry: ``EC2_LINUX`` for Karpenter's nodes,
                ``EC2`` for nodes of EKS Auto Mode, and for nodes named by their instance ids.
            access_policies: Names of EKS access policies; type ``EC2_LINUX`` takes none.
            with_profile: Whether the role has an instance profile of its name.
        """
        super().__init__(scope, id)
        role = iam.Role(
            self,
            "Resource",
            role_name=role_name,
            assumed_by=service("ec2.amazonaws.com"),
            managed_policies=[aws_policy(name) for name in managed_policies],
        )
        acknowledge_managed_policies(role, managed_policies)
        self.role_arn = role.role_arn  # ARN of the role
        if with_profile:
            iam.CfnInstanceProfile(
                self, "Profile", instance_profile_name=role_name, roles=[role.role_name]
            )
        partition = Stack.of(self).partition
        eks.CfnAccessEntry(
            self,
            "Access",
            cluster_name=cluster_name,
            principal_arn=role.role_arn,
            type=access_entry_type,
            access_policies=[
                eks.CfnAccessEntry.AccessPolicyProperty(
                    policy_arn=f"arn:{partition}:eks::aws:cluster-access-policy/{name}",
                    access_scope=eks.CfnAccessEntry.AccessScopeProperty(type="cluster"),
                )
                for name in access_policies
            ]
            or None,
        )
