"""Security groups for EFA traffic."""

from collections.abc import Mapping

from aws_cdk import Tags
from aws_cdk import aws_ec2 as ec2
from constructs import Construct


class EfaSecurityGroup(Construct):
    """Defines the group that allows EFA traffic between the nodes of one pool.

    EFA traffic must be allowed from the group to itself, in both directions; rules with address
    ranges do not count. Without such rules, traffic falls back to TCP without an error.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start.html
    """

    def __init__(
        self, scope: Construct, id: str, *, vpc: ec2.IVpc, pool: str, tags: Mapping[str, str]
    ) -> None:
        super().__init__(scope, id)
        group = ec2.SecurityGroup(
            self,
            # Logical ids stay as they were before this construct existed.
            "Default",
            vpc=vpc,
            description=f"EFA traffic between the nodes of pool {pool}",
            allow_all_outbound=False,
        )
        every = ec2.Port.all_traffic()
        group.add_ingress_rule(group, every, "EFA traffic from the pool's nodes")
        group.add_egress_rule(group, every, "EFA traffic to the pool's nodes")
        for key, value in tags.items():
            Tags.of(group).add(key, value)
        self.security_group_id = group.security_group_id  # Its id
