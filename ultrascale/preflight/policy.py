"""IAM policy with the permissions that checks need."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from ultrascale.plan.model import ClusterPlan
from ultrascale.preflight.model import Check

_ALL = "*"
_OBJECT = "{object}"


def policy(checks: Sequence[Check], plan: ClusterPlan, account: str = _ALL) -> Mapping[str, object]:
    """Return the policy that allows the requests of ``checks``, and nothing more.

    Args:
        checks: The checks.
        plan: The cluster whose resources they read.
        account: Id of its account.
    """
    by_resource: dict[str, set[str]] = {}
    for check in checks:
        for action in check.actions:
            pattern = check.resources.get(action, _ALL)
            for object in check.objects(plan, account) if _OBJECT in pattern else ("",):
                resource = pattern.format(
                    partition=plan.partition,
                    region=plan.region,
                    account=account,
                    cluster=plan.name,
                    object=object,
                )
                by_resource.setdefault(resource, set()).add(action)
    # An action that some check needs for all resources is not listed again for fewer.
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
