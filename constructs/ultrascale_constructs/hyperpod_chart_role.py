"""The IAM role of the build that installs AWS's HyperPod chart."""

from collections.abc import Sequence

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from ultrascale_constructs.acknowledgment import acknowledge_wildcards, shown_account
from ultrascale_constructs.cdk_types import principal
from ultrascale_constructs.cluster_context import ClusterContext

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
    cluster: ClusterContext,
    addon: str | None,
    sources: Sequence[tuple[str, str]],
) -> iam.Role:
    """Define the role that one CodeBuild project takes, as `Role`.

    Args:
        scope: Parent.
        project_name: Name of the project.
        cluster: The only cluster that it may describe, and whose private subnets it may lie in;
            what it may do in the cluster is for an access entry to say.
        addon: The only add-on of the cluster that it may describe.
        sources: Bucket and key of each object that it may read.
    """
    stack = Stack.of(scope)
    project = stack.format_arn(service="codebuild", resource="project", resource_name=project_name)
    role = iam.Role(
        scope,
        "Role",
        assumed_by=principal(
            iam.ServicePrincipal(
                "codebuild.amazonaws.com",
                conditions={"StringEquals": {"aws:SourceArn": project}},
            )
        ),
    )
    arn = stack.format_arn(service="eks", resource="cluster", resource_name=cluster.name)
    role.add_to_policy(iam.PolicyStatement(actions=["eks:DescribeCluster"], resources=[arn]))
    if addon is not None:
        _allow_look_at_addon(role, arn, f"{cluster.name}/{addon}/*")
    for bucket, key in sources:
        _allow_read(role, f"arn:{stack.partition}:s3:::{bucket}", key)
    _allow_network_interfaces(role, cluster.private_subnet_ids)
    return role


def _allow_look_at_addon(role: iam.Role, cluster: str, name: str) -> None:
    stack = Stack.of(role)
    addon = stack.format_arn(service="eks", resource="addon", resource_name=name)
    # Of an add-on that is not installed the cluster is asked.
    role.add_to_policy(
        iam.PolicyStatement(actions=["eks:DescribeAddon"], resources=[cluster, addon])
    )
    shown = f"arn:{stack.partition}:eks:{stack.region}:{shown_account(stack)}:addon/{name}"
    acknowledge_wildcards(role, {shown: "EKS makes up the end of its id"})


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
    shown = f"arn:{stack.partition}:ec2:{stack.region}:{shown_account(stack)}:network-interface/*"
    acknowledge_wildcards(
        role,
        {
            "*": "EC2 lets these actions be limited to no resource",
            shown: "EC2 makes up the id; the condition names the subnets",
        },
    )
