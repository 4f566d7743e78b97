"""Access of nodes to file systems that were there already."""

from collections.abc import Sequence

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ultrascale.plan.model import ExistingLustrePlan
from ultrascale_constructs.cluster_context import ClusterContext


class ExistingLustreClients(Construct):
    """Opens Lustre's ports of our nodes to the servers of file systems that are not ours.

    The other direction is a rule of the servers' security group, which its owner sets.

    Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/limit-access-security-groups.html
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plans: Sequence[ExistingLustrePlan],
        cluster: ClusterContext,
    ) -> None:
        """Define the rules.

        Args:
            scope: The stack.
            id: Construct id.
            plans: The file systems.
            cluster: The cluster, to whose security group its nodes belong.
        """
        super().__init__(scope, id)
        # File systems may share a group, and a group takes a rule once.
        groups = {plan.security_group: plan for plan in plans}
        for group, plan in groups.items():
            for first, last in plan.port_ranges:
                ec2.CfnSecurityGroupIngress(
                    self,
                    f"{group}-{first}",
                    group_id=cluster.security_group_id,
                    description="Lustre",
                    ip_protocol="tcp",
                    from_port=first,
                    to_port=last,
                    source_security_group_id=group,
                    source_security_group_owner_id=plan.owner,
                )
