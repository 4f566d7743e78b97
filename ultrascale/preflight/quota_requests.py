"""Requests to raise quotas: which requests are useful, and how to file them.

Sources:
    https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_RequestServiceQuotaIncrease.html
    https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_RequestedServiceQuotaChange.html
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ultrascale.errors import UnansweredError
from ultrascale.frozen import Frozen
from ultrascale.preflight.model import Check, Context
from ultrascale.preflight.quota_standings import Standing, standings
from ultrascale.preflight.quota_values import QuotaValue
from ultrascale.preflight.quotas import no_request_advice

if TYPE_CHECKING:
    from ultrascale.account import Account

FILE = "servicequotas:RequestServiceQuotaIncrease"
HISTORY = "servicequotas:ListRequestedServiceQuotaChangeHistoryByQuota"
# Service Quotas creates its role with the first request of an account.
# Source: https://docs.aws.amazon.com/servicequotas/latest/userguide/using-service-linked-roles.html
PERMISSIONS = Check(
    name="quota-requests",
    title="requests to raise quotas",
    actions=(FILE, HISTORY, "iam:CreateServiceLinkedRole"),
    run=lambda _: iter(()),
    resources={
        "iam:CreateServiceLinkedRole": "arn:{partition}:iam::{account}:role/aws-service-role/"
        "servicequotas.amazonaws.com/*"
    },
)
"""Permissions that filing a request needs, beside the permissions of the checks."""

_OPEN = frozenset({"PENDING", "CASE_OPENED"})


class Increase(Frozen):
    """A useful request to raise a quota."""

    quota: QuotaValue  # The quota, with its current value
    asked: int  # The requested value


class Left(Frozen):
    """A quota that is, or may be, too low, and for which no request is filed."""

    name: str  # Its name
    why: str  # Reason, and what to do
    settled: bool = False  # Whether AWS already has a request for at least as many


def increases(context: Context) -> Iterator[Increase | Left]:
    """Yield, for each quota that is too low, a request or the reason against a request."""
    for standing in standings(context):
        if standing.error is not None and not standing.short:
            yield Left(name=standing.need.name, why=str(standing.error))
        elif standing.quota is None and standing.need.state != "within":
            yield Left(name=standing.need.name, why="Service Quotas has none of this name")
        elif standing.quota is not None and standing.short:
            yield _request_or_reason(context.account, standing, standing.quota)


def file_request(account: "Account", increase: Increase) -> str:
    """File a request, and return the id of its support case, or of the request without a case.

    Raises:
        UnansweredError: AWS refused, or did not answer: then the request may have been filed.
    """
    quota = increase.quota
    answer = account.ask(
        account.client("service-quotas", once=True).request_service_quota_increase,
        ServiceCode=quota.service,
        QuotaCode=quota.code,
        DesiredValue=float(increase.asked),
    )
    requested = answer["RequestedQuota"]
    if requested.get("CaseId"):
        return f"case {requested['CaseId']}"
    return f"request {requested['Id']}, {requested['Status']}"


def history_command(context: Context, increase: Increase) -> str:
    """Return the command that lists the requests for a quota."""
    quota = increase.quota
    return (
        "aws service-quotas list-requested-service-quota-change-history-by-quota --service-code "
        f"{quota.service} --quota-code {quota.code} --region {context.plan.region}"
    )


def _request_or_reason(
    account: "Account", standing: Standing, quota: QuotaValue
) -> Increase | Left:
    asked = standing.target or 0
    why = no_request_advice(standing, quota)
    if why is not None:
        return Left(name=standing.need.name, why=why)
    try:
        history = account.ask_all(
            account.client("service-quotas").list_requested_service_quota_change_history_by_quota,
            lambda page: page["RequestedQuotas"],
            ServiceCode=quota.service,
            QuotaCode=quota.code,
        )
    except UnansweredError as error:
        return Left(name=standing.need.name, why=str(error))
    for request in history:
        if request["Status"] in _OPEN:
            case = request.get("CaseId") or request["Id"]
            enough = request["DesiredValue"] >= asked
            reason = f"{case} asks for {request['DesiredValue']:,.10g} already"
            if not enough:
                reason += f"; have it changed to {asked:,}"
            return Left(name=standing.need.name, why=reason, settled=enough)
    return Increase(quota=quota, asked=asked)
