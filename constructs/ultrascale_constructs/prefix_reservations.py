"""Parts of subnets that only prefixes are taken from, where CloudFormation has no type for them."""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network
from typing import cast

from aws_cdk import ArnFormat, CustomResource, Duration, RemovalPolicy, Stack, Token
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from ultrascale_constructs.acknowledgment import acknowledge
from ultrascale_constructs.lambda_code import RUNTIME, lambda_code

# A large VPC has some two hundred parts, and EC2 takes a few a second.
_LONGEST = Duration.minutes(10)


class PrefixReservations(Construct):
    """Defines the reservations of all node subnets, which a function makes and takes away."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        parts: Mapping[str, Sequence[IPv4Network]],
        log_retention_days: int,
    ) -> None:
        """Define them.

        Args:
            scope: Parent.
            id: Construct id.
            parts: Ranges to keep for prefixes, by the id of their subnet.
            log_retention_days: How long the function's log is kept, in days.
        """
        super().__init__(scope, id)
        group = logs.LogGroup(self, "Logs", removal_policy=RemovalPolicy.DESTROY)
        # The L2's own property takes a member of an enumeration, not a number.
        cast("logs.CfnLogGroup", group.node.default_child).retention_in_days = log_retention_days
        role = self._role(group)
        function = lambda_.Function(
            self,
            "Function",
            description="Prefix reservations of subnets",
            runtime=RUNTIME,
            handler="lambdas.subnet_reservations.handler.on_event",
            code=lambda_code(),
            memory_size=256,
            timeout=_LONGEST,
            role=cast("iam.IRole", role),
            log_group=cast("logs.ILogGroup", group),
        )
        CustomResource(
            self,
            "Resource",
            service_token=function.function_arn,
            resource_type="Custom::SubnetPrefixReservations",
            service_timeout=_LONGEST,
            properties={
                "Parts": [
                    {"SubnetId": subnet, "Cidr": str(cidr)}
                    for subnet, ranges in parts.items()
                    for cidr in ranges
                ]
            },
        )

    def _role(self, group: logs.LogGroup) -> iam.Role:
        stack = Stack.of(self)
        role = iam.Role(
            self,
            "Role",
            assumed_by=cast("iam.IPrincipal", iam.ServicePrincipal("lambda.amazonaws.com")),
        )
        group.grant_write(role)
        subnets = stack.format_arn(
            service="ec2",
            resource="subnet",
            resource_name="*",
            arn_format=ArnFormat.SLASH_RESOURCE_NAME,
        )
        for actions, resource in (
            (["ec2:CreateSubnetCidrReservation"], subnets),
            (["ec2:DeleteSubnetCidrReservation", "ec2:GetSubnetCidrReservations"], "*"),
        ):
            role.add_to_policy(iam.PolicyStatement(actions=actions, resources=[resource]))
        account = "<AWS::AccountId>" if Token.is_unresolved(stack.account) else stack.account
        finding = "AwsSolutions::AwsSolutions-IAM5[Resource::{}]"
        acknowledge(
            role,
            {
                finding.format("*"): "EC2 takes no resource for reading and deleting reservations",
                finding.format(
                    f"arn:{stack.partition}:ec2:{stack.region}:{account}:subnet/*"
                ): "it only keeps parts of subnets for prefixes; a policy with their ids would "
                "have to be there before subnets change",
            },
        )
        return role
