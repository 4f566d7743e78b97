"""Values of quotas, and their usage: from CloudWatch, or counted from lists of resources."""

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from ultrascale.catalog import quotas
from ultrascale.errors import UnansweredError
from ultrascale.frozen import Frozen

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch.type_defs import DimensionTypeDef, MetricDataQueryUnionTypeDef
    from mypy_boto3_fsx.type_defs import FileSystemTypeDef as FileSystem
    from mypy_boto3_service_quotas.type_defs import MetricInfoTypeDef, ServiceQuotaTypeDef

    from ultrascale.account import Account


# --- Values of quotas from Service Quotas, and their usage from CloudWatch ------------------------
# Sources:
#     https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_GetServiceQuota.html
#     https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_MetricInfo.html
#     https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-Service-Quota-Integration.html


GET = "servicequotas:GetServiceQuota"
GET_DEFAULT = "servicequotas:GetAWSDefaultServiceQuota"
LIST = "servicequotas:ListServiceQuotas"
LIST_DEFAULTS = "servicequotas:ListAWSDefaultServiceQuotas"
METRICS = "cloudwatch:GetMetricData"

NOT_THERE = "NoSuchResourceException"
# Services report usage at least every few minutes.
_WINDOW = timedelta(hours=3)
_PERIOD = 300
# The largest page: SageMaker has thousands of quotas.
_PAGE = 100


class Metric(Frozen):
    """The CloudWatch metric of a quota's usage."""

    namespace: str  # Its namespace
    name: str  # Its name
    dimensions: Mapping[str, str]  # Its dimensions
    statistic: str  # The statistic to read


class QuotaValue(Frozen):
    """Quota of an account, as Service Quotas describes it."""

    service: str  # Code of its service
    code: str  # Its code
    name: str  # Its name
    value: float  # Its value
    adjustable: bool  # Whether AWS accepts requests to raise it
    metric: Metric | None  # Metric of its usage; None where Service Quotas names none


def quota_by_code(account: "Account", service: str, code: str) -> QuotaValue:
    """Return the quota's applied value in the account, or else AWS's default.

    Raises:
        UnansweredError: AWS did not answer; its code is `NOT_THERE` where there is no such quota in
            the Region.
    """
    try:
        answer = account.ask(
            account.client("service-quotas").get_service_quota, ServiceCode=service, QuotaCode=code
        )
    except UnansweredError as error:
        if error.code != NOT_THERE:
            raise
        answer = account.ask(
            account.client("service-quotas").get_aws_default_service_quota,
            ServiceCode=service,
            QuotaCode=code,
        )
    return _value(answer["Quota"], GET)


def quotas_by_name(
    account: "Account", service: str, names: Collection[str]
) -> Mapping[str, QuotaValue]:
    """Return the quotas called ``names``, by name; names that Service Quotas lacks are left out.

    Raises:
        UnansweredError: AWS did not list the service's quotas.
    """
    if not names:
        return {}
    client = account.client("service-quotas")
    applied = account.ask_all(
        client.list_service_quotas,
        lambda page: page["Quotas"],
        ServiceCode=service,
        MaxResults=_PAGE,
    )
    values = {
        quota["QuotaName"]: _value(quota, LIST) for quota in applied if quota["QuotaName"] in names
    }
    if missing := set(names) - values.keys():
        defaults = account.ask_all(
            client.list_aws_default_service_quotas,
            lambda page: page["Quotas"],
            ServiceCode=service,
            MaxResults=_PAGE,
        )
        for quota in defaults:
            if quota["QuotaName"] in missing:
                values[quota["QuotaName"]] = _value(quota, LIST_DEFAULTS)
    return values


def usage(
    account: "Account", metrics: Mapping[str, Metric], now: datetime
) -> Mapping[str, float | None]:
    """Return the usage by the key of each metric; None if CloudWatch does not report it.

    A metric without data points in three hours is 0: services report nothing while nothing is in
    use. No page promises that.

    Raises:
        UnansweredError: CloudWatch did not answer.
    """
    ids = {f"m{number}": key for number, key in enumerate(metrics)}
    queries = [_query(name, metrics[key]) for name, key in ids.items()]
    used: dict[str, float | None] = dict.fromkeys(metrics)
    results = account.ask_all(
        account.client("cloudwatch").get_metric_data,
        lambda page: page["MetricDataResults"],
        MetricDataQueries=queries,
        StartTime=now - _WINDOW,
        EndTime=now,
        ScanBy="TimestampDescending",
    )
    for result in results:
        if result.get("StatusCode") == "Complete":
            values = result.get("Values", [])
            used[ids[result["Id"]]] = values[0] if values else 0
    return used


def _query(name: str, metric: Metric) -> "MetricDataQueryUnionTypeDef":
    dimensions: list[DimensionTypeDef] = [
        {"Name": key, "Value": value} for key, value in metric.dimensions.items()
    ]
    return {
        "Id": name,
        "MetricStat": {
            "Metric": {
                "Namespace": metric.namespace,
                "MetricName": metric.name,
                "Dimensions": dimensions,
            },
            "Period": _PERIOD,
            "Stat": metric.statistic,
        },
    }


def _value(quota: "ServiceQuotaTypeDef", action: str) -> QuotaValue:
    if "Value" not in quota:
        why = quota.get("ErrorReason", {})
        reason = f"{quota['QuotaName']}: {why.get('ErrorMessage', 'without a value')}"
        raise UnansweredError(action, reason=reason, code=why.get("ErrorCode", ""))
    return QuotaValue(
        service=quota["ServiceCode"],
        code=quota["QuotaCode"],
        name=quota["QuotaName"],
        value=quota["Value"],
        adjustable=quota.get("Adjustable", False),
        metric=_metric(quota.get("UsageMetric", {})),
    )


def _metric(info: "MetricInfoTypeDef") -> Metric | None:
    if not info.get("MetricName"):
        return None
    return Metric(
        namespace=info["MetricNamespace"],
        name=info["MetricName"],
        dimensions=info.get("MetricDimensions", {}),
        statistic=info.get("MetricStatisticRecommendation", "Maximum"),
    )


# --- Usage of quotas that no metric reports, counted from lists of resources ----------------------


# Counting stops at this number: the pages of a larger account would take the whole minute.
_MOST = 20_000
# EC2 answers with everything at once where a request names no size of pages.
_EC2_PAGE = 1_000
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
    for page in account.ask_pages(ec2.describe_network_interfaces, MaxResults=_EC2_PAGE):
        yield from (1 for _ in page["NetworkInterfaces"])


def _vpcs(account: "Account") -> Iterator[float]:
    for page in account.ask_pages(account.client("ec2").describe_vpcs, MaxResults=_EC2_PAGE):
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
        MaxResults=_EC2_PAGE,
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
