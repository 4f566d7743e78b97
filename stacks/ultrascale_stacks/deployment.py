"""Account and Region of a stack, and the permissions boundary of its roles."""

from aws_cdk import Environment, Stack
from aws_cdk import aws_iam as iam

from ultrascale.plan import ClusterPlan


def environment(plan: ClusterPlan) -> Environment:
    """Return the account and Region of ``plan``; without an account, the Region alone."""
    return Environment(account=plan.account, region=plan.region)


def bound_roles(stack: Stack, policy: str | None) -> None:
    """Give every role of ``stack``, those of the CDK's own functions too, a permissions boundary.

    Args:
        stack: The stack.
        policy: Name of the IAM policy that is the boundary, in the stack's account; None: no role
            has one.
    """
    if policy is not None:
        boundary = iam.ManagedPolicy.from_managed_policy_name(stack, "PermissionsBoundary", policy)
        iam.PermissionsBoundary.of(stack).apply(boundary)
