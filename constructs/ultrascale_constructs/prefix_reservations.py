"""Subnet CIDR reservations for prefixes, for Regions where CloudFormation cannot create them."""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network

from aws_cdk import ArnFormat, CustomResource, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from ultrascale_constructs.acknowledgment import acknowledge_wildcards, shown_account
from ultrascale_constructs.lambda_function import define_function, function_role
from ultrascale_constructs.log_group import define_log_group

# A large VPC has some two hundred ranges, and EC2 reserves a few a second.
_LONGEST_MINUTES = 10


class PrefixReservations(Construct):
    """Defines the reservations of all node subnets, which a function creates and deletes."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        parts: Mapping[str, Sequence[IPv4Network]],
        log_retention_days: int,
    ) -> None:
        """Define the reservations, the function and its role.

        Args:
            scope: Parent.
            id: Construct id.
            parts: Ranges to keep for prefixes, by the id of their subnet.
            log_retention_days: How long the function's log is kept, in days.
        """
        super().__init__(scope, id)
        group = define_log_group(self, retention_days=log_retention_days)
        role = self._role(group)
        longest = Duration.minutes(_LONGEST_MINUTES)
        function = define_function(
            self,
            "Function",
            description="Prefix reservations of subnets",
            handler="lambdas.subnet_reservations.handler.on_event",
            role=role,
            group=group,
            timeout=longest,
        )
        CustomResource(
            self,
            "Resource",
            service_token=function.function_arn,
            resource_type="Custom::SubnetPrefixReservations",
            service_timeout=longest,
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
        role = function_role(self, group)
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
        shown = f"arn:{stack.partition}:ec2:{stack.region}:{shown_account(stack)}:subnet/*"
        acknowledge_wildcards(
            role,
            {
                "*": "EC2 takes no resource for reading and deleting reservations",
                shown: (
                    "it only keeps parts of subnets for prefixes; a policy with their ids would "
                    "have to be there before subnets change"
                ),
            },
        )
        return role
