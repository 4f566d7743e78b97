"""Values of quotas from Service Quotas, and their usage from CloudWatch.

Sources:
    https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_GetServiceQuota.html
    https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_MetricInfo.html
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-Service-Quota-Integration.html
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from ultrascale.errors import UnansweredError
from ultrascale.frozen import Frozen

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch.type_defs import DimensionTypeDef, MetricDataQueryUnionTypeDef
    from mypy_boto3_service_quotas.type_defs import MetricInfoTypeDef, ServiceQuotaTypeDef

    from ultrascale.account import Account

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
