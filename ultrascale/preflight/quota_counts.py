"""What is in use of quotas whose usage no metric reports: counted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ultrascale.account import Account
from ultrascale.catalog import quotas
from ultrascale.preflight.quota_values import QuotaValue

# A larger account is counted no further: its pages alone would take the minute.
_MOST = 20_000
# EC2 answers with everything at once where a request names no size of pages.
_PAGES = {"PaginationConfig": {"PageSize": 1_000}}
_GIB_OF_A_TIB = 1024

_Answers = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """What was counted.

    Attributes:
        value: How many.
        more: Whether there are more.
    """

    value: float
    more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listing:
    """How something is counted.

    Attributes:
        action: The request that lists it.
        key: Where the list stands in the answer.
        parameters: What narrows it.
        size: What an element counts for.
    """

    action: str
    key: str
    parameters: _Answers = field(default_factory=dict[str, object])
    size: Callable[[_Answers], float] = lambda _: 1


def _lustre(file_system: _Answers) -> bool:
    configuration = file_system.get("LustreConfiguration", {})
    return configuration.get("DeploymentType") == "PERSISTENT_2"


_LISTINGS: Mapping[quotas.Quota, _Listing] = {
    quotas.NETWORK_INTERFACES: _Listing(
        action="ec2:DescribeNetworkInterfaces", key="NetworkInterfaces", parameters=_PAGES
    ),
    quotas.VPCS: _Listing(action="ec2:DescribeVpcs", key="Vpcs", parameters=_PAGES),
    quotas.ELASTIC_ADDRESSES: _Listing(action="ec2:DescribeAddresses", key="Addresses"),
    quotas.CLUSTERS: _Listing(action="eks:ListClusters", key="clusters"),
    quotas.GP3_STORAGE: _Listing(
        action="ec2:DescribeVolumes",
        key="Volumes",
        parameters={**_PAGES, "Filters": [{"Name": "volume-type", "Values": ["gp3"]}]},
        size=lambda volume: volume["Size"] / _GIB_OF_A_TIB,
    ),
    quotas.LUSTRE_FILE_SYSTEMS: _Listing(
        action="fsx:DescribeFileSystems", key="FileSystems", size=_lustre
    ),
    quotas.LUSTRE_STORAGE: _Listing(
        action="fsx:DescribeFileSystems",
        key="FileSystems",
        size=lambda found: found["StorageCapacity"] if _lustre(found) else 0,
    ),
}
_BY_CODE = {quota.code: listing for quota, listing in _LISTINGS.items()}

# How the names of quotas end that count HyperPod's instances of one type.
_HYPERPOD = " for cluster usage"
_HYPERPOD_LIST = "sagemaker:ListClusters"
_HYPERPOD_GET = "sagemaker:DescribeCluster"

ACTIONS = (
    *sorted({each.action for each in _LISTINGS.values()}),
    _HYPERPOD_LIST,
    _HYPERPOD_GET,
)
"""The IAM actions that counting takes."""


def count(account: Account, quota: QuotaValue) -> Count | None:
    """Return what is in use of ``quota``; None where there is no cheap way to count it.

    Raises:
        UnansweredError: AWS did not list it.
    """
    if quota.name.endswith(_HYPERPOD):
        return _hyperpod(account, quota.name.removesuffix(_HYPERPOD))
    if quota.code == quotas.ALL_HYPERPOD_INSTANCES.code:
        return _hyperpod(account, None)
    listing = _BY_CODE.get(quota.code)
    if listing is None:
        return None
    found = account.ask_all(listing.action, listing.key, most=_MOST, **listing.parameters)
    return Count(value=sum(map(listing.size, found)), more=len(found) >= _MOST)


def _hyperpod(account: Account, instance_type: str | None) -> Count:
    """Count HyperPod's instances of a type, or of all."""
    found = account.ask_all(_HYPERPOD_LIST, "ClusterSummaries")
    clusters = [account.ask(_HYPERPOD_GET, ClusterName=each["ClusterName"]) for each in found]
    groups = [
        group
        for cluster in clusters
        for group in (*cluster["InstanceGroups"], *cluster.get("RestrictedInstanceGroups", ()))
    ]
    counts = [
        part["CurrentCount"]
        for group in groups
        # A group of several types says each of them with its count.
        for part in group.get("InstanceTypeDetails") or (group,)
        if instance_type is None or part["InstanceType"] == instance_type
    ]
    return Count(value=sum(counts), more=False)
