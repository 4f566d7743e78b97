"""Functions that run in AWS Lambda, with their logs and roles."""

from pathlib import Path

from aws_cdk import Duration, IgnoreMode, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

import ultrascale
from ultrascale_constructs.acknowledgment import acknowledge_managed_policies
from ultrascale_constructs.cdk_types import as_log_group, as_role, aws_policy, service
from ultrascale_constructs.cluster_context import ClusterContext

# More memory than the code needs: memory determines the CPU share, which loads boto3.
_MEMORY_MIB = 256
_VPC_POLICY = "service-role/AWSLambdaVPCAccessExecutionRole"


def lambda_code() -> lambda_.Code:
    """Return the asset that all functions share: the package `lambdas`, without compiled files.

    A function's handler is written ``lambdas.<package>.<module>.<function>``.
    """
    return lambda_.Code.from_asset(
        str(Path(ultrascale.__file__).parent),
        exclude=["/*", "!/lambdas", "__pycache__"],
        ignore_mode=IgnoreMode.GIT,
    )


def function_role(
    scope: Construct, group: logs.LogGroup, *, cluster: ClusterContext | None = None
) -> iam.Role:
    """Define a `Role` for a function; it may only write to the log group.

    A function that calls an API server may also read its endpoint and certificate authority from
    EKS, which rotates the authority.

    Args:
        scope: Parent.
        group: Log group of the function.
        cluster: The cluster whose API server it calls, from the private subnets; None: it runs
            outside the VPC.
    """
    reasons = {_VPC_POLICY: "AWS keeps it in step with what Lambda calls"} if cluster else {}
    role = iam.Role(
        scope,
        "Role",
        assumed_by=service("lambda.amazonaws.com"),
        managed_policies=[aws_policy(name) for name in reasons],
    )
    acknowledge_managed_policies(role, reasons)
    group.grant_write(role)
    if cluster is not None:
        arn = Stack.of(scope).format_arn(
            service="eks", resource="cluster", resource_name=cluster.name
        )
        role.add_to_policy(iam.PolicyStatement(actions=["eks:DescribeCluster"], resources=[arn]))
    return role


def define_function(
    scope: Construct,
    id: str,
    *,
    description: str,
    handler: str,
    role: iam.Role,
    group: logs.LogGroup,
    timeout: Duration,
    memory_mib: int = _MEMORY_MIB,
    retry_attempts: int | None = None,
    cluster: ClusterContext | None = None,
) -> lambda_.Function:
    """Define a function.

    Args:
        scope: Parent.
        id: Construct id.
        description: Description of the function.
        handler: Its handler, ``lambdas.<package>.<module>.<function>``.
        role: Its role, of `function_role`.
        group: Its log group.
        timeout: How long it may run.
        memory_mib: Its memory, in MiB.
        retry_attempts: How often Lambda repeats a call that failed; None: its default.
        cluster: The cluster whose API server it calls, from the private subnets; None: it runs
            outside the VPC.
    """
    return lambda_.Function(
        scope,
        id,
        description=description,
        runtime=lambda_.Runtime.PYTHON_3_14,
        code=lambda_code(),
        handler=handler,
        timeout=timeout,
        memory_size=memory_mib,
        role=as_role(role),
        log_group=as_log_group(group),
        retry_attempts=retry_attempts,
        vpc=cluster.vpc if cluster else None,
        vpc_subnets=ec2.SubnetSelection(subnets=cluster.private_subnets(scope))
        if cluster
        else None,
        security_groups=[cluster.security_group(scope)] if cluster else None,
    )
