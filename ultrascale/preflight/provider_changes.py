"""Changes that EKS makes by itself, or that others have asked it for, on a deployed cluster.

Sources:
    https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeCertificateAuthority.html
    https://docs.aws.amazon.com/eks/latest/APIReference/API_WarmPoolConfig.html
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from ultrascale.errors import UnansweredError
from ultrascale.findings import Finding, Issue, finding
from ultrascale.preflight.model import Check, Context
from ultrascale.preflight.reservation_fields import in_utc

if TYPE_CHECKING:
    from mypy_boto3_eks.type_defs import CertificateAuthorityTypeDef as Authority
    from mypy_boto3_eks.type_defs import NodegroupTypeDef as Nodegroup

_NAME = "provider-changes"
_AUTHORITIES, _AUTHORITY = "eks:ListCertificateAuthorities", "eks:DescribeCertificateAuthority"
_GROUPS, _GROUP = "eks:ListNodegroups", "eks:DescribeNodegroup"
_CLUSTER_ARN = "arn:{partition}:eks:{region}:{account}:cluster/{cluster}"
_NO_CLUSTER = "ResourceNotFoundException"
# Our own figure: nodes of a fleet are renewed between jobs, and kubeconfigs by their owners.
_SOON = timedelta(days=90)


def _run(context: Context) -> Iterator[Finding]:
    name, eks = context.plan.name, context.account.client("eks")
    try:
        listed = context.account.ask_all(
            eks.list_certificate_authorities,
            lambda page: page["certificateAuthorities"],
            clusterName=name,
        )
    except UnansweredError as error:
        if error.code != _NO_CLUSTER:
            raise
        yield finding(_NAME, name, (), fine="it does not exist yet")
        return
    waiting = [
        context.account.ask(
            eks.describe_certificate_authority, clusterName=name, certificateAuthorityId=each["id"]
        )["certificateAuthority"]
        for each in listed
        if each.get("signingStatus") != "IN_USE"
    ]
    holders = _holders(context)
    issues = [i for each in waiting for i in authority_issues(name, each, context.at, holders)]
    fine = f"{len(listed)}, and EKS activates none soon"
    yield finding(_NAME, "certificate authorities", issues, fine=fine)
    groups = [
        context.account.ask(eks.describe_nodegroup, clusterName=name, nodegroupName=group)
        for group in context.account.ask_all(
            eks.list_nodegroups, lambda page: page["nodegroups"], clusterName=name
        )
    ]
    issues = [issue for each in groups for issue in warm_pool_issues(name, each["nodegroup"])]
    yield finding(_NAME, "warm pools", issues, fine=f"{len(groups)} managed groups have none")


def _holders(context: Context) -> str:
    """Return who holds the certificate of the authority that signs today."""
    own = [pool.name for pool in context.plan.all_pools if pool.provisioner == "self-managed"]
    templates = f"launch templates of {', '.join(own)} (deploy them anew), " if own else ""
    functions = "running functions and backends of the stacks, which read it as they start"
    return f"{templates}nodes launched before it, kubeconfigs, {functions}"


def authority_issues(
    cluster: str, authority: "Authority", at: datetime, holders: str
) -> Iterator[Issue]:
    """Yield an issue if EKS may activate an authority of the cluster by itself soon.

    Args:
        cluster: Name of the cluster.
        authority: An authority that does not sign yet, as EKS describes it.
        at: The time.
        holders: Who holds the certificate of its predecessor.
    """
    events = authority.get("scheduledEvents", {})
    first, final = (
        in_utc(events.get(key)) for key in ("firstAutoActivation", "finalAutoActivation")
    )
    soonest = min(filter(None, (first, final)), default=None)
    if soonest is None or soonest > at + _SOON:
        return
    until = f", at the latest on {final:%Y-%m-%d}" if final is not None else ""
    yield Issue(
        state="warn",
        evidence=f"EKS may activate {authority['id']} by itself in {max((soonest - at).days, 0)} "
        f"days, from {soonest:%Y-%m-%d}{until}. Whoever does not trust it loses the API server "
        f"then: {holders}",
        fix="renew the nodes (`ultrascale roll`) and kubeconfigs before, then `aws eks "
        f"activate-certificate-authority --cluster-name {cluster} "
        f"--certificate-authority-id {authority['id']}`",
    )


def warm_pool_issues(cluster: str, group: "Nodegroup") -> Iterator[Issue]:
    """Yield an issue if a managed group keeps instances in a warm pool, which no file states.

    Args:
        cluster: Name of the cluster.
        group: The group, as EKS describes it.
    """
    warm = group.get("warmPoolConfig", {})
    if not warm.get("enabled"):
        return
    name, state = group["nodegroupName"], warm.get("poolState", "STOPPED")
    cost = "each instance costs as a node" if state.upper() == "RUNNING" else "volumes are paid for"
    yield Issue(
        state="warn",
        evidence=f"{name} has a warm pool of at least {warm.get('minSize', 0)} instances, {state}: "
        f"{cost}, and nothing of the cluster file counts them",
        fix=f"`aws eks update-nodegroup-config --cluster-name {cluster} --nodegroup-name {name} "
        "--warm-pool-config enabled=false`",
    )


PROVIDER_CHANGES = Check(
    name=_NAME,
    title="EKS changes nothing soon by itself, and keeps nothing that no file states",
    actions=(_AUTHORITIES, _AUTHORITY, _GROUPS, _GROUP),
    run=_run,
    resources={
        _AUTHORITIES: _CLUSTER_ARN,
        _AUTHORITY: _CLUSTER_ARN,
        _GROUPS: _CLUSTER_ARN,
        _GROUP: "arn:{partition}:eks:{region}:{account}:nodegroup/{cluster}/*",
    },
)
