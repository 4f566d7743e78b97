"""Permissions of EKS Auto Mode and of its nodes."""

from collections.abc import Mapping

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from ultrascale_constructs.acknowledgment import acknowledge_wildcards
from ultrascale_constructs.nodes import NodeRole

_REASON = "what EKS documents for the cluster role with Auto Mode"
# Policies beside the policy of every cluster role; `eks.Cluster` attaches them.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/auto-cluster-iam-role.html
CLUSTER_POLICIES: Mapping[str, str] = {
    "AmazonEKSComputePolicy": _REASON,
    "AmazonEKSBlockStoragePolicy": _REASON,
    "AmazonEKSLoadBalancingPolicy": _REASON,
    "AmazonEKSNetworkingPolicy": _REASON,
}
# Source: https://docs.aws.amazon.com/eks/latest/userguide/auto-create-node-role.html
_NODE_POLICIES: Mapping[str, str] = {
    "AmazonEKSWorkerNodeMinimalPolicy": "what EKS documents for Auto Mode's nodes",
    "AmazonEC2ContainerRegistryPullOnly": "pull and nothing else",
}
# Source: https://docs.aws.amazon.com/eks/latest/userguide/create-node-class.html
_NODE_ACCESS_POLICY = "AmazonEKSAutoNodePolicy"
_NODE_ACCESS_ENTRY_TYPE = "EC2"
_CLUSTER_TAG = "aws:RequestTag/eks:eks-cluster-name"
# Resources that EC2 makes and tags when it launches nodes.
_TAGGED = (
    "fleet",
    "instance",
    "launch-template",
    "network-interface",
    "spot-instances-request",
    "volume",
)


class AutoModeNodeRole(Construct):
    """Defines the role of Auto Mode's nodes that our own node classes name.

    EKS gives access only to the nodes of its own node pools. Nodes of our node classes start, but
    never join the cluster without an access entry of type ``EC2`` and its access policy.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/create-node-class.html
    """

    def __init__(self, scope: Construct, id: str, *, cluster_name: str, role_name: str) -> None:
        super().__init__(scope, id)
        NodeRole(
            self,
            "Resource",
            cluster_name=cluster_name,
            role_name=role_name,
            managed_policies=_NODE_POLICIES,
            access_entry_type=_NODE_ACCESS_ENTRY_TYPE,
            access_policies=[_NODE_ACCESS_POLICY],
        )


def allow_node_tags(scope: Construct, id: str, *, role: iam.IRole, cluster_name: str) -> None:
    """Let Auto Mode give the resources of nodes the tags of a node class.

    AmazonEKSComputePolicy and AmazonEKSNetworkingPolicy allow Auto Mode's own tags only: a node
    class with other tags would launch no node, or nodes that get no further interface for pods. The
    tags that name the cluster and the node stay required.

    AWS's example also allows tags on claims' volumes and on load balancers. Their tags come from
    storage classes and ingresses, and ours have none.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/auto-cluster-iam-role.html#tag-prop
    """
    stack = Stack.of(scope)
    arns = {kind: f"arn:{stack.partition}:ec2:{stack.region}:*:{kind}/*" for kind in _TAGGED}
    policy = iam.Policy(
        scope,
        id,
        roles=[role],
        statements=[
            iam.PolicyStatement(
                sid="LaunchWithTags",
                actions=["ec2:CreateFleet", "ec2:CreateLaunchTemplate", "ec2:RunInstances"],
                resources=[*arns.values()],
                conditions={
                    "StringEquals": {_CLUSTER_TAG: cluster_name},
                    "StringLike": {
                        "aws:RequestTag/eks:kubernetes-node-class-name": "*",
                        "aws:RequestTag/eks:kubernetes-node-pool-name": "*",
                    },
                },
            ),
            iam.PolicyStatement(
                sid="AddInterfacesWithTags",
                actions=["ec2:CreateNetworkInterface"],
                resources=[arns["network-interface"]],
                conditions={
                    "StringEquals": {_CLUSTER_TAG: cluster_name},
                    "StringLike": {"aws:RequestTag/eks:kubernetes-cni-node-name": "*"},
                },
            ),
        ],
    )
    reason = "what does not exist yet has no id; the request must carry the cluster's name"
    acknowledge_wildcards(policy, dict.fromkeys(arns.values(), reason))
