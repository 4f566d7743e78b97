"""Account and Region of a stack, and the permissions boundary of its roles."""

from typing import TypedDict

from aws_cdk import Environment, Stack
from aws_cdk import aws_iam as iam

from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.names import stack_description


class StackProperties(TypedDict):
    """Properties that every stack of a cluster has."""

    env: Environment
    description: str


def stack_properties(plan: ClusterPlan) -> StackProperties:
    """Return account, Region and description; without an account in ``plan``, only the Region."""
    return {
        "env": Environment(account=plan.account, region=plan.region),
        "description": stack_description(plan.name),
    }


def bound_roles(stack: Stack, policy: str | None) -> None:
    """Give every role of ``stack``, also of the CDK's own functions, a permissions boundary.

    Args:
        stack: The stack.
        policy: Name of the boundary's IAM policy in the stack's account; None: no role has a
            boundary.
    """
    if policy is not None:
        boundary = iam.ManagedPolicy.from_managed_policy_name(stack, "PermissionsBoundary", policy)
        iam.PermissionsBoundary.of(stack).apply(boundary)
