"""Actions of the stacks' AWS managed policies; a permissions boundary must allow them.

Source: https://docs.aws.amazon.com/aws-managed-policy/latest/reference/policy-list.html
"""

from collections.abc import Mapping
from types import MappingProxyType

from ultrascale.errors import CatalogError

_ALLOWED: Mapping[str, str] = MappingProxyType(
    {
        "AWSLambdaBasicExecutionRole": "logs:*",
        "AWSLambdaVPCAccessExecutionRole": "ec2:* logs:*",
        "AmazonEBSCSIDriverPolicyV2": "ec2:*",
        "AmazonEC2ContainerRegistryPullOnly": "ecr:*",
        "AmazonEC2ContainerRegistryReadOnly": "ecr:*",
        "AmazonEKSBlockStoragePolicy": "ec2:*",
        "AmazonEKSClusterPolicy": (
            "autoscaling:* ec2:* elasticloadbalancing:* iam:CreateServiceLinkedRole kms:*"
        ),
        "AmazonEKSComputePolicy": (
            "ec2:* iam:AddRoleToInstanceProfile iam:CreateServiceLinkedRole iam:PassRole"
        ),
        "AmazonEKSLoadBalancingPolicy": (
            "acm:* cognito-idp:* ec2:* elasticloadbalancing:* iam:CreateServiceLinkedRole "
            "shield:* wafv2:*"
        ),
        "AmazonEKSNetworkingPolicy": "ec2:*",
        "AmazonEKSWorkerNodeMinimalPolicy": "eks-auth:*",
        "AmazonEKSWorkerNodePolicy": "ec2:* eks:* eks-auth:*",
        "AmazonEKS_CNI_Policy": "ec2:*",
        "AmazonElasticContainerRegistryPublicReadOnly": "ecr-public:* sts:GetServiceBearerToken",
        "AmazonSSMManagedInstanceCore": "ec2messages:* ssm:* ssmmessages:*",
        "AmazonSageMakerClusterInstanceRolePolicy": "cloudwatch:* logs:* s3:* ssmmessages:*",
        "AmazonSageMakerHyperPodTrainingOperatorAccess": "sagemaker:*",
        "CloudWatchAgentServerPolicy": "cloudwatch:* ec2:* logs:* ssm:* xray:*",
    }
)
"""Services that each policy allows; for IAM and STS, which pass on rights, single actions."""


def allowed_by(policy: str) -> frozenset[str]:
    """Return the actions that an AWS managed policy allows, such as ``ec2:*`` or ``iam:PassRole``.

    Raises:
        CatalogError: The catalog has no such policy.
    """
    if policy not in _ALLOWED:
        raise CatalogError(f"no source states what the AWS managed policy {policy} allows")
    return frozenset(_ALLOWED[policy].split())
