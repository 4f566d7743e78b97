"""The permissions that checks take, as an IAM policy."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from ultrascale.plan.model import ClusterPlan
from ultrascale.preflight.model import Check

_ALL = "*"


def policy(checks: Sequence[Check], plan: ClusterPlan, account: str = _ALL) -> Mapping[str, object]:
    """Return the policy that allows what ``checks`` ask, and nothing more.

    Args:
        checks: What is to be allowed.
        plan: The cluster whose resources they look at.
        account: Id of its account.
    """
    by_resource: dict[str, set[str]] = {}
    for check in checks:
        for action in check.actions:
            pattern = check.resources.get(action, _ALL)
            resource = pattern.format(
                partition=plan.partition, region=plan.region, account=account, cluster=plan.name
            )
            by_resource.setdefault(resource, set()).add(action)
    # What one check needs for all resources, or for more of them, no other narrows.
    for resource, actions in by_resource.items():
        for wider, others in by_resource.items():
            if wider != resource and fnmatchcase(resource, wider):
                actions -= others
    statements = [
        {"Effect": "Allow", "Action": sorted(actions), "Resource": resource}
        for resource, actions in sorted(by_resource.items())
        if actions
    ]
    return {"Version": "2012-10-17", "Statement": statements}
