"""What is in use of quotas whose usage no metric reports: counted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ultrascale.account import Account
from ultrascale.catalog import quotas
from ultrascale.preflight.quota_values import QuotaValue

# A larger account is counted no further: its pages alone would take the minute.
_MOST = 20_000
_PAGE = 1_000
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


_LISTINGS: Mapping[str, _Listing] = {
    quotas.NETWORK_INTERFACES.code: _Listing(
        action="ec2:DescribeNetworkInterfaces", key="NetworkInterfaces"
    ),
    quotas.GP3_STORAGE.code: _Listing(
        action="ec2:DescribeVolumes",
        key="Volumes",
        parameters={"Filters": [{"Name": "volume-type", "Values": ["gp3"]}]},
        size=lambda volume: volume["Size"] / _GIB_OF_A_TIB,
    ),
}

HYPERPOD = " for cluster usage"
"""How the names of quotas end that count HyperPod's instances of one type."""

_HYPERPOD_LIST = "sagemaker:ListClusters"
_HYPERPOD_GET = "sagemaker:DescribeCluster"

ACTIONS = (*sorted(each.action for each in _LISTINGS.values()), _HYPERPOD_LIST, _HYPERPOD_GET)
"""The IAM actions that counting takes."""


def count(account: Account, quota: QuotaValue) -> Count | None:
    """Return what is in use of ``quota``; None where there is no cheap way to count it.

    Raises:
        UnansweredError: AWS did not list it.
    """
    if quota.name.endswith(HYPERPOD):
        return _hyperpod(account, quota.name.removesuffix(HYPERPOD))
    listing = _LISTINGS.get(quota.code)
    if listing is None:
        return None
    found = account.ask_all(
        listing.action,
        listing.key,
        PaginationConfig={"MaxItems": _MOST, "PageSize": _PAGE},
        **listing.parameters,
    )
    return Count(value=sum(map(listing.size, found)), more=len(found) >= _MOST)


def _hyperpod(account: Account, instance_type: str) -> Count:
    found = account.ask_all(_HYPERPOD_LIST, "ClusterSummaries")
    clusters = [account.ask(_HYPERPOD_GET, ClusterName=each["ClusterName"]) for each in found]
    groups = [group for cluster in clusters for group in cluster.get("InstanceGroups", [])]
    counts = [each["CurrentCount"] for each in groups if each["InstanceType"] == instance_type]
    return Count(value=sum(counts), more=False)
