"""IAM roles of pods, by EKS Pod Identity."""

from collections.abc import Mapping, Sequence

from aws_cdk import Stack, Token
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct
from msgspec import field

from ultrascale.frozen import Frozen
from ultrascale.plan.names import SYSTEM_NAMESPACE
from ultrascale_constructs.acknowledgment import acknowledge
from ultrascale_constructs.cdk_types import principal


class Permission(Frozen):
    """Actions that a role may take on resources."""

    actions: Sequence[str]  # IAM actions
    resources: Sequence[str]  # ARNs, or ``*``
    # Conditions by operator and key.
    conditions: Mapping[str, Mapping[str, object]] = field(
        default_factory=dict[str, Mapping[str, object]]
    )
    why_wildcards: str | None = (
        None  # Reason for wildcards in its resources; None without wildcards
    )


def pods_of(
    cluster_name: str, service_account: str, namespace: str | None = None
) -> iam.IPrincipal:
    """Return the pods of one service account of one cluster, as a principal.

    EKS passes cluster and service account as session tags: without the conditions, an association
    of any cluster of the account could use the role.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/pod-id-role.html

    Args:
        cluster_name: Name of the cluster.
        service_account: Name of the service account.
        namespace: Its namespace; None where an EKS add-on chooses it.
    """
    tags = {"eks-cluster-name": cluster_name, "kubernetes-service-account": service_account}
    if namespace is not None:
        tags["kubernetes-namespace"] = namespace
    pods = iam.ServicePrincipal(
        "pods.eks.amazonaws.com",
        conditions={"StringEquals": {f"aws:RequestTag/{key}": tags[key] for key in sorted(tags)}},
    )
    return principal(iam.SessionTagsPrincipal(principal(pods)))


class PodIdentityRole(Construct):
    """Defines the role of the pods of one service account, and its association.

    Only pods of that service account in that cluster can assume the role. A pod older than the
    association has no credentials until it is restarted: deploy the pods after this construct.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster_name: str,
        service_account: str,
        permissions: Sequence[Permission],
        namespace: str = SYSTEM_NAMESPACE,
    ) -> None:
        super().__init__(scope, id)
        role = iam.Role(
            self,
            "Role",
            assumed_by=pods_of(cluster_name, service_account, namespace),
            inline_policies={
                "Permissions": iam.PolicyDocument(
                    statements=[_statement(permission) for permission in permissions]
                )
            },
        )
        for permission in permissions:
            self._acknowledge(role, permission)
        eks.CfnPodIdentityAssociation(
            self,
            "Association",
            cluster_name=cluster_name,
            namespace=namespace,
            service_account=service_account,
            role_arn=role.role_arn,
        )
        self.role_arn = role.role_arn  # ARN of the role

    def _acknowledge(self, role: iam.Role, permission: Permission) -> None:
        if permission.why_wildcards is None:
            return
        account = Stack.of(self).account
        # The account in a finding, for a stack without an account.
        shown = "<AWS::AccountId>" if Token.is_unresolved(account) else account
        for resource in permission.resources:
            finding = f"AwsSolutions-IAM5[Resource::{resource.replace(account, shown)}]"
            acknowledge(role, {f"AwsSolutions::{finding}": permission.why_wildcards})


def _statement(permission: Permission) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        actions=list(permission.actions),
        resources=list(permission.resources),
        conditions={operator: dict(keys) for operator, keys in permission.conditions.items()},
    )
