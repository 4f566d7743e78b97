"""Obstacles to an upgrade, checked if the file has the minor after the deployed cluster's.

Sources:
    https://docs.aws.amazon.com/eks/latest/userguide/cluster-insights.html
    https://docs.aws.amazon.com/eks/latest/APIReference/API_UpdateClusterVersion.html
    https://docs.aws.amazon.com/eks/latest/userguide/update-cluster.html
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from ultrascale.catalog import upgrades
from ultrascale.errors import UnansweredError
from ultrascale.preflight.model import Check, Context, Finding, Issue, State, finding

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import SubnetTypeDef as Subnet
    from mypy_boto3_eks.type_defs import InsightSummaryTypeDef as Insight
    from mypy_boto3_eks.type_defs import NodegroupTypeDef as Nodegroup

_NAME = "upgrade"
_CLUSTER, _NOT_THERE = "eks:DescribeCluster", "ResourceNotFoundException"
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
        if error.code != _NOT_THERE:
            raise
        yield finding(_NAME, name, (), fine="it does not exist yet")
        return
    version = cluster["version"]
    if upgrades.minor(wanted) != upgrades.minor(version) + 1:
        fine = f"{version} in the account, {wanted} in the file: no upgrade to the next minor"
        yield finding(_NAME, name, (), fine=fine)
        return
    insights = context.account.ask_all(
        context.account.client("eks").list_insights,
        lambda page: page["insights"],
        clusterName=name,
        filter={"categories": ["UPGRADE_READINESS"], "kubernetesVersions": [wanted]},
    )
    wrong = insight_issues(insights, name, wanted)
    yield finding(_NAME, "insights", wrong, fine=f"{len(insights)} of EKS's pass for {wanted}")
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
    yield finding(_NAME, "node groups", group_issues(groups, version, wanted), fine=fine)
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
        check=_NAME,
        subject="addresses",
        state="pass" if free >= least else "fail",
        evidence=f"{free} free in the control plane's subnets, up to {least} needed",
        fix=None if free >= least else "free addresses in them: interfaces that nothing uses",
    )


UPGRADE = Check(
    name=_NAME,
    title="EKS can upgrade a deployed cluster to the file's minor",
    actions=(_CLUSTER, _INSIGHTS, _GROUPS, _GROUP, _SUBNETS),
    run=_upgrade_findings,
    resources={
        _CLUSTER: _CLUSTER_ARN,
        _INSIGHTS: _CLUSTER_ARN,
        _GROUPS: _CLUSTER_ARN,
        _GROUP: "arn:{partition}:eks:{region}:{account}:nodegroup/{cluster}/*",
    },
)
