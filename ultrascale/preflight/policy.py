"""IAM policy with the permissions of checks."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from ultrascale.plan.model import ClusterPlan, PackagePlan
from ultrascale.preflight.model import Check

_ALL = "*"
_PACKAGE, _BUCKET = "{package}", "{bucket}"


def policy(checks: Sequence[Check], plan: ClusterPlan, account: str = _ALL) -> Mapping[str, object]:
    """Return the policy that allows the requests of ``checks``, and nothing more.

    Args:
        checks: The checks.
        plan: The cluster whose resources they read.
        account: Id of its account.
    """
    package = _package(plan.package, account)
    by_resource: dict[str, set[str]] = {}
    for check in checks:
        for action in check.actions:
            pattern = check.resources.get(action, _ALL)
            if _PACKAGE in pattern and not package:
                continue
            existing = [each.bucket_name for each in plan.storage.existing_buckets]
            for bucket in existing if _BUCKET in pattern else ("",):
                resource = pattern.format(
                    partition=plan.partition,
                    region=plan.region,
                    account=account,
                    cluster=plan.name,
                    package=package,
                    bucket=bucket,
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


def _package(package: PackagePlan, account: str) -> str:
    """Return bucket and key of the object that the pipeline installs; empty in other accounts."""
    found = package.object
    return f"{found.bucket}/{found.key}" if found and account in (_ALL, found.account) else ""
