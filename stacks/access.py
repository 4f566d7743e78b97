"""Who administers the cluster: apart from it, so that a wrong ARN takes nothing else down."""

from aws_cdk import Stack
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from stacks._environment import environment
from ultrascale.plan import ClusterPlan


class AccessStack(Stack):
    """Defines the access entries of the administrators."""

    def __init__(self, scope: Construct, id: str, *, plan: ClusterPlan) -> None:
        super().__init__(scope, id, env=environment(plan))
        for arn in plan.control_plane.admins:
            eks.CfnAccessEntry(
                self,
                arn.rsplit(":", 1)[-1].replace("/", "-"),
                cluster_name=plan.name,
                principal_arn=arn,
                access_policies=[
                    eks.CfnAccessEntry.AccessPolicyProperty(
                        policy_arn=f"arn:{plan.partition}:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
                        access_scope=eks.CfnAccessEntry.AccessScopeProperty(type="cluster"),
                    )
                ],
            )
