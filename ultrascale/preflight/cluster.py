"""The deployed cluster, compared with the cluster file.

Sources:
    https://docs.aws.amazon.com/eks/latest/userguide/update-cluster.html
    https://docs.aws.amazon.com/eks/latest/userguide/eks-provisioned-control-plane.html
    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-eks-cluster.html
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ultrascale.catalog import eks
from ultrascale.errors import UnansweredError
from ultrascale.plan.model import ControlPlanePlan
from ultrascale.preflight.model import Check, Context, Finding, Issue, finding

if TYPE_CHECKING:
    from mypy_boto3_eks.type_defs import ClusterTypeDef as Cluster

_NAME = "cluster"
_ACTION = "eks:DescribeCluster"
_NOT_THERE = "ResourceNotFoundException"
_STANDARD = eks.CONTROL_PLANE_TIERS["standard"]
_STANDARD_DATABASE_GB = 8


def _cluster_findings(context: Context) -> Iterator[Finding]:
    name = context.plan.name
    try:
        answer = context.account.ask(context.account.client("eks").describe_cluster, name=name)
    except UnansweredError as error:
        if error.code != _NOT_THERE:
            raise
        yield finding(_NAME, name, (), fine="it does not exist yet")
        return
    cluster = answer["cluster"]
    wrong = cluster_issues(context.plan.control_plane, cluster)
    fine = f"{cluster.get('status')}, version {cluster.get('version')}"
    yield finding(_NAME, name, wrong, fine=fine)


def cluster_issues(plan: ControlPlanePlan, answer: "Cluster") -> Iterator[Issue]:
    """Yield the reasons why the deployed cluster cannot become the planned cluster.

    Args:
        plan: The plan of its control plane.
        answer: The cluster, as EKS describes it.
    """
    status = answer.get("status")
    if status != "ACTIVE":
        evidence = f"status is {status}: EKS does not change it"
        yield Issue(state="fail", evidence=evidence, fix="wait until it is ACTIVE")
    yield from _version_issues(plan.version, answer.get("version"))
    range_ = answer.get("kubernetesNetworkConfig", {}).get("serviceIpv4Cidr")
    if range_ is not None and range_ != str(plan.service_cidr):
        yield Issue(
            state="fail",
            evidence=f"serviceIpv4Cidr is {range_} in the account, {plan.service_cidr} in the "
            "file: CloudFormation would make another cluster in its place",
            fix=f"set kubernetes.service_cidr: {range_}",
        )
    yield from _secrets_key_issues(plan.secrets_key, answer)
    tier = answer.get("controlPlaneScalingConfig", {}).get("tier", _STANDARD)
    if tier != _STANDARD and plan.tier == _STANDARD:
        yield Issue(
            state="warn",
            evidence=f"tier is {tier}, {_STANDARD} in the file: EKS refuses where the cluster's "
            f"database is larger than {_STANDARD_DATABASE_GB} GB",
            fix="look at the metric of the database's size first",
        )
    for issue in answer.get("health", {}).get("issues", ()):
        evidence = f"health: {issue.get('code')}: {issue.get('message')}"
        yield Issue(state="warn", evidence=evidence, fix="put it right before you deploy")


def _version_issues(wanted: str, found: str | None) -> Iterator[Issue]:
    """Yield an issue if EKS cannot change the deployed version to the wanted version."""
    if found is None:
        evidence = f"EKS reports no version; the file has {wanted}"
        yield Issue(state="unknown", evidence=evidence, fix="look in the console")
        return
    ahead = _minor(wanted) - _minor(found)
    evidence = f"version is {found} in the account, {wanted} in the file"
    if ahead < 0:
        evidence += ": EKS takes an upgrade back within days of it, and never later"
        yield Issue(state="fail", evidence=evidence, fix=f'set kubernetes.version: "{found}"')
    elif ahead > 1:
        following = f"1.{_minor(found) + 1}"
        evidence += ": EKS goes one minor version at a time"
        yield Issue(state="fail", evidence=evidence, fix=f'deploy with "{following}" first')


def _secrets_key_issues(wanted: str | None, answer: "Cluster") -> Iterator[Issue]:
    """Yield an issue if EKS would have to exchange the key that encrypts the API's data."""
    configs = answer.get("encryptionConfig", [])
    found = [config.get("provider", {}).get("keyArn") for config in configs]
    # Our own key has no ARN before it is made, so it cannot be compared.
    if wanted is not None and wanted not in found:
        deployed = ", ".join(str(key) for key in found) or "none"
        yield Issue(
            state="fail",
            evidence=f"keyArn of encryptionConfig is {deployed} in the account, {wanted} in the "
            "file: CloudFormation would make another cluster in its place",
            fix="leave keys.secrets as it was when the cluster was made",
        )


def _minor(version: str) -> int:
    return int(version.partition(".")[2])


CLUSTER = Check(
    name=_NAME,
    title="a deployed cluster can become what the file says",
    actions=(_ACTION,),
    run=_cluster_findings,
    resources={_ACTION: "arn:{partition}:eks:{region}:{account}:cluster/{cluster}"},
)
