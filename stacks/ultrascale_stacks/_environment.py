"""Where the stacks are deployed to."""

from aws_cdk import Environment

from ultrascale.plan import ClusterPlan


def environment(plan: ClusterPlan) -> Environment:
    """Return the account and Region of ``plan``; without an account, the Region alone."""
    return Environment(account=plan.account, region=plan.region)
