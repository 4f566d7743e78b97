"""The deployed cluster, compared with the cluster file, and obstacles to its upgrade.

Sources:
    https://docs.aws.amazon.com/eks/latest/userguide/update-cluster.html
    https://docs.aws.amazon.com/eks/latest/userguide/eks-provisioned-control-plane.html
    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-eks-cluster.html
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from ultrascale.catalog import eks, upgrades
from ultrascale.errors import UnansweredError
from ultrascale.findings import Finding, Issue, State, finding
from ultrascale.plan.model import ControlPlanePlan
from ultrascale.preflight.model import Check, Context

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import SubnetTypeDef as Subnet
    from mypy_boto3_eks.type_defs import ClusterTypeDef as Cluster
    from mypy_boto3_eks.type_defs import InsightSummaryTypeDef as Insight
    from mypy_boto3_eks.type_defs import NodegroupTypeDef as Nodegroup


_NAME = "cluster"
_DESCRIBE_CLUSTER = "eks:DescribeCluster"
_NO_CLUSTER = "ResourceNotFoundException"
_STANDARD = eks.CONTROL_PLANE_TIERS["standard"]
_STANDARD_DATABASE_GB = 8


def _cluster_findings(context: Context) -> Iterator[Finding]:
    name = context.plan.name
    try:
        answer = context.account.ask(context.account.client("eks").describe_cluster, name=name)
    except UnansweredError as error:
        if error.code != _NO_CLUSTER:
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
    actions=(_DESCRIBE_CLUSTER,),
    run=_cluster_findings,
    resources={_DESCRIBE_CLUSTER: "arn:{partition}:eks:{region}:{account}:cluster/{cluster}"},
)


# --- Obstacles to an upgrade, checked if the file has the minor after the deployed cluster's ------
# Sources:
#     https://docs.aws.amazon.com/eks/latest/userguide/cluster-insights.html
#     https://docs.aws.amazon.com/eks/latest/APIReference/API_UpdateClusterVersion.html
#     https://docs.aws.amazon.com/eks/latest/userguide/update-cluster.html


_UPGRADE = "upgrade"
_INSIGHTS = "eks:ListInsights"
_GROUPS, _GROUP = "eks:ListNodegroups", "eks:DescribeNodegroup"
_SUBNETS = "ec2:DescribeSubnets"
_CLUSTER_ARN = "arn:{partition}:eks:{region}:{account}:cluster/{cluster}"
# EKS refuses an upgrade only for errors; for a while in 2025 it did not.
# Source: https://github.com/aws/containers-roadmap/issues/2570
_STATES: Mapping[str, State] = MappingProxyType(
    {"PASSING": "pass", "WARNING": "warn", "UNKNOWN": "warn", "ERROR": "fail"}
)


def _upgrade_findings(context: Context) -> Iterator[Finding]:
    name, wanted = context.plan.name, context.plan.control_plane.version
    try:
        cluster = context.account.ask(context.account.client("eks").describe_cluster, name=name)[
            "cluster"
        ]
    except UnansweredError as error:
        if error.code != _NO_CLUSTER:
            raise
        yield finding(_UPGRADE, name, (), fine="it does not exist yet")
        return
    version = cluster["version"]
    if upgrades.minor(wanted) != upgrades.minor(version) + 1:
        fine = f"{version} in the account, {wanted} in the file: no upgrade to the next minor"
        yield finding(_UPGRADE, name, (), fine=fine)
        return
    insights = context.account.ask_all(
        context.account.client("eks").list_insights,
        lambda page: page["insights"],
        clusterName=name,
        filter={"categories": ["UPGRADE_READINESS"], "kubernetesVersions": [wanted]},
    )
    wrong = insight_issues(insights, name, wanted)
    yield finding(_UPGRADE, "insights", wrong, fine=f"{len(insights)} of EKS's pass for {wanted}")
    groups = {
        group: context.account.ask(
            context.account.client("eks").describe_nodegroup, clusterName=name, nodegroupName=group
        )["nodegroup"]
        for group in context.account.ask_all(
            context.account.client("eks").list_nodegroups,
            lambda page: page["nodegroups"],
            clusterName=name,
        )
    }
    fine = f"{len(groups)} managed groups have {version}"
    yield finding(_UPGRADE, "node groups", group_issues(groups, version, wanted), fine=fine)
    ids = cluster["resourcesVpcConfig"]["subnetIds"]
    subnets = context.account.ask_all(
        context.account.client("ec2").describe_subnets, lambda page: page["Subnets"], SubnetIds=ids
    )
    yield address_finding(subnets)


def insight_issues(insights: "Sequence[Insight]", cluster: str, wanted: str) -> Iterator[Issue]:
    """Yield EKS's own objections to an upgrade of the cluster.

    Args:
        insights: Its upgrade insights for the minor.
        cluster: Name of the cluster.
        wanted: The minor.
    """
    if not insights:
        evidence = f"EKS lists none for {wanted}: it has not looked at the cluster yet"
        yield Issue(state="warn", evidence=evidence, fix="look again in a day")
    for insight in insights:
        status = insight["insightStatus"]
        state = _STATES.get(status["status"], "unknown")
        if state != "pass":
            yield Issue(
                state=state,
                evidence=f"{insight['name']}: {status['status']}, {status.get('reason')}",
                fix=f"`aws eks describe-insight --cluster-name {cluster} --id {insight['id']}` "
                "says what to do; EKS looks again each day, or by `aws eks start-insights-refresh`",
            )


def group_issues(groups: "Mapping[str, Nodegroup]", version: str, wanted: str) -> Iterator[Issue]:
    """Yield an issue for each managed group that an earlier upgrade left behind.

    EKS's reference wants all groups at the cluster's minor; its guide lets kubelets be behind.

    Args:
        groups: The groups, as EKS describes them, by name.
        version: Minor of the cluster.
        wanted: The wanted minor.
    """
    for name, group in groups.items():
        minor = group["version"]
        behind = upgrades.minor(wanted) - upgrades.minor(minor)
        if minor == version:
            continue
        far = behind > upgrades.KUBELET_MINORS_BEHIND
        yield Issue(
            state="fail" if far else "warn",
            evidence=f"{name} has {minor}, the cluster {version}",
            fix=f'deploy its pool with kubernetes.version: "{version}" first',
        )


def address_finding(subnets: "Sequence[Subnet]") -> Finding:
    """Return the finding whether the subnets have room for a second control plane beside the first.

    Args:
        subnets: The subnets, as EC2 describes them.
    """
    free = sum(subnet["AvailableIpAddressCount"] for subnet in subnets)
    least = upgrades.FREE_ADDRESSES
    return Finding(
        check=_UPGRADE,
        subject="addresses",
        state="pass" if free >= least else "fail",
        evidence=f"{free} free in the control plane's subnets, up to {least} needed",
        fix=None if free >= least else "free addresses in them: interfaces that nothing uses",
    )


UPGRADE = Check(
    name=_UPGRADE,
    title="EKS can upgrade a deployed cluster to the file's minor",
    actions=(_DESCRIBE_CLUSTER, _INSIGHTS, _GROUPS, _GROUP, _SUBNETS),
    run=_upgrade_findings,
    resources={
        _DESCRIBE_CLUSTER: _CLUSTER_ARN,
        _INSIGHTS: _CLUSTER_ARN,
        _GROUPS: _CLUSTER_ARN,
        _GROUP: "arn:{partition}:eks:{region}:{account}:nodegroup/{cluster}/*",
    },
)
