"""Usage of quotas that no metric reports, counted from lists of resources."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from ultrascale.catalog import quotas
from ultrascale.frozen import Frozen
from ultrascale.preflight.quota_values import QuotaValue

if TYPE_CHECKING:
    from mypy_boto3_fsx.type_defs import FileSystemTypeDef as FileSystem

    from ultrascale.account import Account

# Counting stops at this number: the pages of a larger account would take the whole minute.
_MOST = 20_000
# EC2 answers with everything at once where a request names no size of pages.
_PAGE = 1_000
_GIB_OF_A_TIB = 1024

# End of the names of quotas that count HyperPod's instances of one type.
_CLUSTER_USAGE = " for cluster usage"

ACTIONS = (
    "ec2:DescribeAddresses",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeVolumes",
    "ec2:DescribeVpcs",
    "eks:ListClusters",
    "elasticloadbalancing:DescribeLoadBalancers",
    "elasticloadbalancing:DescribeTargetGroups",
    "fsx:DescribeFileSystems",
    "sagemaker:ListClusters",
    "sagemaker:DescribeCluster",
)
"""IAM actions that the counts need."""


class Count(Frozen):
    """The usage of a quota."""

    value: float  # Usage, in the quota's unit
    more: bool  # Whether there may be more: counting stopped early


def count(account: "Account", quota: QuotaValue) -> Count | None:
    """Return the usage of ``quota``; None if counting it would take too long.

    Raises:
        UnansweredError: AWS did not list the resources.
    """
    if quota.name.endswith(_CLUSTER_USAGE):
        return _cluster_instances(account, quota.name.removesuffix(_CLUSTER_USAGE))
    if quota.code == quotas.quota("all-hyperpod-instances").code:
        return _cluster_instances(account, None)
    amounts = {quotas.quota(key).code: value for key, value in _AMOUNTS.items()}.get(quota.code)
    if amounts is None:
        return None
    counted = list(islice(amounts(account), _MOST))
    return Count(value=sum(counted), more=len(counted) >= _MOST)


def _network_interfaces(account: "Account") -> Iterator[float]:
    ec2 = account.client("ec2")
    for page in account.ask_pages(ec2.describe_network_interfaces, MaxResults=_PAGE):
        yield from (1 for _ in page["NetworkInterfaces"])


def _vpcs(account: "Account") -> Iterator[float]:
    for page in account.ask_pages(account.client("ec2").describe_vpcs, MaxResults=_PAGE):
        yield from (1 for _ in page["Vpcs"])


def _addresses(account: "Account") -> Iterator[float]:
    for page in account.ask_pages(account.client("ec2").describe_addresses):
        yield from (1 for _ in page["Addresses"])


def _clusters(account: "Account") -> Iterator[float]:
    for page in account.ask_pages(account.client("eks").list_clusters):
        yield from (1 for _ in page["clusters"])


def _load_balancers(account: "Account") -> Iterator[float]:
    for page in account.ask_pages(account.client("elbv2").describe_load_balancers):
        yield from (1 for each in page["LoadBalancers"] if each["Type"] == "application")


def _target_groups(account: "Account") -> Iterator[float]:
    for page in account.ask_pages(account.client("elbv2").describe_target_groups):
        yield from (1 for _ in page["TargetGroups"])


def _gp3_tib(account: "Account") -> Iterator[float]:
    pages = account.ask_pages(
        account.client("ec2").describe_volumes,
        Filters=[{"Name": "volume-type", "Values": ["gp3"]}],
        MaxResults=_PAGE,
    )
    for page in pages:
        yield from (volume["Size"] / _GIB_OF_A_TIB for volume in page["Volumes"])


def _lustre_file_systems(account: "Account") -> Iterator[float]:
    return (float(_is_persistent_2(system)) for system in _file_systems(account))


def _lustre_gib(account: "Account") -> Iterator[float]:
    for system in _file_systems(account):
        yield system["StorageCapacity"] if _is_persistent_2(system) else 0


def _file_systems(account: "Account") -> "Iterator[FileSystem]":
    for page in account.ask_pages(account.client("fsx").describe_file_systems):
        yield from page["FileSystems"]


def _is_persistent_2(system: "FileSystem") -> bool:
    return system.get("LustreConfiguration", {}).get("DeploymentType") == "PERSISTENT_2"


_AMOUNTS: "Mapping[quotas.QuotaKey, Callable[[Account], Iterator[float]]]" = {
    "network-interfaces": _network_interfaces,
    "vpcs": _vpcs,
    "elastic-addresses": _addresses,
    "clusters": _clusters,
    "load-balancers": _load_balancers,
    "target-groups": _target_groups,
    "gp3-storage": _gp3_tib,
    "lustre-file-systems": _lustre_file_systems,
    "lustre-storage": _lustre_gib,
}
"""Amount of a quota that each resource of an account uses, by the quota's key."""


def _cluster_instances(account: "Account", instance_type: str | None) -> Count:
    """Return the number of HyperPod's instances of a type; of all types for None."""
    sagemaker = account.client("sagemaker")
    summaries = account.ask_all(sagemaker.list_clusters, lambda page: page["ClusterSummaries"])
    clusters = [
        account.ask(sagemaker.describe_cluster, ClusterName=summary["ClusterName"])
        for summary in summaries
    ]
    counts: list[int] = []
    for cluster in clusters:
        for group in (*cluster["InstanceGroups"], *cluster.get("RestrictedInstanceGroups", ())):
            # A group of several types counts each type separately.
            for part in group.get("InstanceTypeDetails") or (group,):
                if instance_type is None or part["InstanceType"] == instance_type:
                    counts.append(part["CurrentCount"])
    return Count(value=sum(counts), more=False)
