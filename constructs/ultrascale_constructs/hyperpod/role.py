"""The execution role of a HyperPod cluster's instances."""

from collections.abc import Sequence

from aws_cdk import Stack
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ultrascale_constructs.acknowledgment import (
    acknowledge_managed_policies,
    acknowledge_wildcards,
    shown_account,
)
from ultrascale_constructs.cdk_types import aws_policy, logical_id, service

_MANAGED = "AmazonSageMakerClusterInstanceRolePolicy"
# Actions of the VPC CNI on the instances, and of SageMaker for their interfaces.
# Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-prerequisites-iam.html
_INTERFACES = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:AttachNetworkInterface",
    "ec2:CreateNetworkInterface",
    "ec2:CreateNetworkInterfacePermission",
    "ec2:DeleteNetworkInterface",
    "ec2:DeleteNetworkInterfacePermission",
    "ec2:DetachNetworkInterface",
    "ec2:ModifyNetworkInterfaceAttribute",
    "ec2:UnassignPrivateIpAddresses",
)
_LOOK = (
    "cloudwatch:DescribeAlarms",
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeTags",
    "ec2:DescribeVpcs",
    "fsx:DescribeFileSystems",
)
_PULL = (
    "ecr:BatchCheckLayerAvailability",
    "ecr:BatchGetImage",
    "ecr:GetAuthorizationToken",
    "ecr:GetDownloadUrlForLayer",
)


class HyperPodRole(Construct):
    """Defines the role of HyperPod's instances, and lets them join the cluster.

    HyperPod creates a missing access entry. It is defined here so that it is deleted with the
    stack, and so that a deployment needs no permission to create other entries.

    Sources:
        https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-prerequisites-iam.html
        https://docs.aws.amazon.com/eks/latest/userguide/creating-access-entries.html

    Attributes:
        role: The role.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster_name: str,
        lifecycle_bucket: s3.Bucket,
        volume_keys: Sequence[str],
    ) -> None:
        """Define the role.

        Args:
            scope: Parent.
            id: Construct id.
            cluster_name: Name of the EKS cluster.
            lifecycle_bucket: Bucket with the script of new instances.
            volume_keys: ARNs of the user's own keys of the instances' volumes.
        """
        super().__init__(scope, id)
        stack = Stack.of(self)
        self.role = iam.Role(
            self,
            "Resource",
            assumed_by=service("sagemaker.amazonaws.com"),
            managed_policies=[aws_policy(_MANAGED)],
        )
        for actions, resources in (
            ((*_INTERFACES, *_LOOK, *_PULL, "eks-auth:AssumeRoleForPodIdentity"), ["*"]),
            (
                ("ec2:CreateTags",),
                [stack.format_arn(service="ec2", resource="network-interface", resource_name="*")],
            ),
            (("s3:ListBucket",), [lifecycle_bucket.bucket_arn]),
            (("s3:GetObject",), [lifecycle_bucket.arn_for_objects("*")]),
        ):
            self.role.add_to_policy(iam.PolicyStatement(actions=list(actions), resources=resources))
        if volume_keys:
            # Source: https://docs.aws.amazon.com/sagemaker/latest/dg/smcluster-cmk.html
            self.role.add_to_policy(
                iam.PolicyStatement(
                    actions=["kms:CreateGrant", "kms:DescribeKey"], resources=list(volume_keys)
                )
            )
        eks.CfnAccessEntry(
            self,
            "Access",
            cluster_name=cluster_name,
            principal_arn=self.role.role_arn,
            # An entry of this type takes no access policies.
            type="HYPERPOD_LINUX",
        )
        self._acknowledge(lifecycle_bucket)

    def _acknowledge(self, lifecycle_bucket: s3.Bucket) -> None:
        documented = "what AWS documents for the instances of HyperPod"
        stack = Stack.of(self)
        bucket = logical_id(lifecycle_bucket)
        account = shown_account(stack)
        interfaces = f"arn:{stack.partition}:ec2:{stack.region}:{account}:network-interface/*"
        acknowledge_managed_policies(self.role, {_MANAGED: documented})
        wildcards = ("*", interfaces, f"<{bucket}.Arn>/*")
        acknowledge_wildcards(self.role, dict.fromkeys(wildcards, documented))
