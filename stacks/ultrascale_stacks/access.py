"""Access entries of administrators, apart from the cluster: a wrong ARN breaks nothing else."""

from aws_cdk import Stack
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan
from ultrascale_stacks.deployment import stack_properties


class AccessStack(Stack):
    """Defines the access entries of the administrators."""

    def __init__(self, scope: Construct, id: str, *, plan: ClusterPlan) -> None:
        super().__init__(scope, id, **stack_properties(plan))
        policy = eks.CfnAccessEntry.AccessPolicyProperty(
            policy_arn=f"arn:{plan.partition}:eks::aws:cluster-access-policy/{names.CLUSTER_ADMIN_POLICY}",
            access_scope=eks.CfnAccessEntry.AccessScopeProperty(type="cluster"),
        )
        for arn in plan.control_plane.admins:
            eks.CfnAccessEntry(
                # Below a scope of its own the logical id ends in a hash of the whole id, and tells
                # `role/a/b` and `role/a-b` apart.
                Construct(self, _id(arn)),
                "Resource",
                cluster_name=plan.name,
                principal_arn=arn,
                access_policies=[policy],
            )


def _id(arn: str) -> str:
    """Return a construct id for a role: its path and name, then its account.

    Names of roles have no colon, so no two roles share an id.
    """
    *_, account, role = arn.split(":")
    return f"{role.replace('/', ':')}:{account}"
