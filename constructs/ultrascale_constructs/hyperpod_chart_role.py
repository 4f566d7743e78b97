"""The IAM role of the build that installs AWS's HyperPod chart."""

from collections.abc import Sequence
from typing import cast

from aws_cdk import Stack, Token
from aws_cdk import aws_iam as iam
from constructs import Construct

from ultrascale_constructs.acknowledgment import acknowledge

# What a build in a VPC calls; none of them but the last takes a resource.
# Source: https://docs.aws.amazon.com/codebuild/latest/userguide/auth-and-access-control-iam-identity-based-access-control.html#customer-managed-policies-example-create-vpc-network-interface
_IN_VPC = (
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcs",
)


def define_role(
    scope: Construct,
    *,
    project_name: str,
    cluster_name: str,
    addon: str | None,
    subnet_ids: Sequence[str],
    sources: Sequence[tuple[str, str]],
) -> iam.Role:
    """Define the role that one CodeBuild project takes, as `Role`.

    Args:
        scope: Parent.
        project_name: Name of the project.
        cluster_name: The only cluster that it may describe; what it may do in there is for an
            access entry to say.
        addon: The only add-on of the cluster that it may describe.
        subnet_ids: The only subnets that it may lie in.
        sources: Bucket and key of each object that it may read.
    """
    stack = Stack.of(scope)
    project = stack.format_arn(service="codebuild", resource="project", resource_name=project_name)
    role = iam.Role(
        scope,
        "Role",
        assumed_by=cast(
            "iam.IPrincipal",
            iam.ServicePrincipal(
                "codebuild.amazonaws.com",
                conditions={"StringEquals": {"aws:SourceArn": project}},
            ),
        ),
    )
    cluster = stack.format_arn(service="eks", resource="cluster", resource_name=cluster_name)
    role.add_to_policy(iam.PolicyStatement(actions=["eks:DescribeCluster"], resources=[cluster]))
    if addon is not None:
        _allow_look_at_addon(role, cluster, f"{cluster_name}/{addon}/*")
    for bucket, key in sources:
        _allow_read(role, f"arn:{stack.partition}:s3:::{bucket}", key)
    _allow_network_interfaces(role, subnet_ids)
    return role


def _allow_look_at_addon(role: iam.Role, cluster: str, name: str) -> None:
    stack = Stack.of(role)
    addon = stack.format_arn(service="eks", resource="addon", resource_name=name)
    # Of an add-on that is not installed the cluster is asked.
    role.add_to_policy(
        iam.PolicyStatement(actions=["eks:DescribeAddon"], resources=[cluster, addon])
    )
    shown = f"arn:{stack.partition}:eks:{stack.region}:{_shown_account(stack)}:addon/{name}"
    acknowledge(
        role,
        {f"AwsSolutions::AwsSolutions-IAM5[Resource::{shown}]": "EKS makes up the end of its id"},
    )


def _shown_account(stack: Stack) -> str:
    """Return how a finding shows the account, which a stack may leave open."""
    return "<AWS::AccountId>" if Token.is_unresolved(stack.account) else stack.account


def _allow_read(role: iam.Role, bucket: str, key: str) -> None:
    objects = iam.PolicyStatement(
        actions=["s3:GetObject", "s3:GetObjectVersion"], resources=[f"{bucket}/{key}"]
    )
    itself = iam.PolicyStatement(
        actions=["s3:GetBucketAcl", "s3:GetBucketLocation"], resources=[bucket]
    )
    for statement in (objects, itself):
        role.add_to_policy(statement)


def _allow_network_interfaces(role: iam.Role, subnet_ids: Sequence[str]) -> None:
    stack = Stack.of(role)
    role.add_to_policy(iam.PolicyStatement(actions=[*_IN_VPC], resources=["*"]))
    interfaces = stack.format_arn(service="ec2", resource="network-interface", resource_name="*")
    subnets = [
        stack.format_arn(service="ec2", resource="subnet", resource_name=subnet_id)
        for subnet_id in subnet_ids
    ]
    role.add_to_policy(
        iam.PolicyStatement(
            actions=["ec2:CreateNetworkInterfacePermission"],
            resources=[interfaces],
            conditions={
                "StringEquals": {"ec2:AuthorizedService": "codebuild.amazonaws.com"},
                "ArnEquals": {"ec2:Subnet": subnets},
            },
        )
    )
    shown = f"arn:{stack.partition}:ec2:{stack.region}:{_shown_account(stack)}:network-interface/*"
    finding = "AwsSolutions::AwsSolutions-IAM5[Resource::{}]"
    acknowledge(
        role,
        {
            finding.format("*"): "EC2 lets these actions be limited to no resource",
            finding.format(shown): "EC2 makes up the id; the condition names the subnets",
        },
    )
