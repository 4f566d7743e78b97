"""Access entries of people, and the role of the nodes of EKS Auto Mode.

The entries have a stack of their own, so that a wrong ARN breaks nothing else.
"""

from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from ultrascale.plan.model import AccessPolicyPlan
from ultrascale.plan.stacks import StackName
from ultrascale_constructs.auto_mode import AutoModeNodeRole
from ultrascale_stacks.cluster import ClusterStacks, LayerStack


class AutoModeStack(LayerStack):
    """Stack of the Auto Mode nodes' role: nodes without it start and cost, and never join."""

    def __init__(self, cluster: ClusterStacks, name: StackName) -> None:
        super().__init__(cluster, name)
        plan = cluster.plan
        assert plan.nodes.role is not None, "a cluster without Auto Mode has no such stack"
        AutoModeNodeRole(self, "NodeRole", cluster_name=plan.name, role_name=plan.nodes.role)


class AccessStack(LayerStack):
    """Stack of the access entries of administrators, and of the file's other roles."""

    def __init__(self, cluster: ClusterStacks, name: StackName) -> None:
        super().__init__(cluster, name)
        plan = cluster.plan
        for entry in plan.access.entries:
            eks.CfnAccessEntry(
                # In a scope of its own the logical id ends in a hash of the whole id, which
                # distinguishes `role/a/b` and `role/a-b`.
                Construct(self, _construct_id(entry.role)),
                "Resource",
                cluster_name=plan.name,
                principal_arn=entry.role,
                kubernetes_groups=list(entry.groups) or None,
                access_policies=[_policy(plan.partition, each) for each in entry.policies],
            )


def _policy(partition: str, plan: AccessPolicyPlan) -> eks.CfnAccessEntry.AccessPolicyProperty:
    scope = eks.CfnAccessEntry.AccessScopeProperty(type="cluster")
    if plan.namespaces:
        scope = eks.CfnAccessEntry.AccessScopeProperty(
            type="namespace", namespaces=list(plan.namespaces)
        )
    return eks.CfnAccessEntry.AccessPolicyProperty(
        policy_arn=f"arn:{partition}:eks::aws:cluster-access-policy/{plan.name}",
        access_scope=scope,
    )


def _construct_id(arn: str) -> str:
    """Return a construct id for a role: its path and name, then its account.

    Names of roles have no colon, so no two roles share an id.
    """
    *_, account, role = arn.split(":")
    return f"{role.replace('/', ':')}:{account}"
