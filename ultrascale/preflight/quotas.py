"""Service quotas: room for the cluster, and requests to raise them."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ultrascale import catalog
from ultrascale.errors import UnansweredError
from ultrascale.findings import Finding, State, unknown
from ultrascale.frozen import Frozen
from ultrascale.plan.model import PoolPlan, QuotaNeed
from ultrascale.preflight import quota_usage
from ultrascale.preflight.model import Check, Context
from ultrascale.preflight.quota_usage import (
    GET,
    GET_DEFAULT,
    LIST,
    LIST_DEFAULTS,
    METRICS,
    NOT_THERE,
    QuotaValue,
    quota_by_code,
    quotas_by_name,
    usage,
)

if TYPE_CHECKING:
    from ultrascale.account import Account


# --- Standings: the quotas that a cluster needs, with their values and usage in the account -------


CLUSTER = "eks:DescribeCluster"
# Quotas of one cluster or resource, which nothing uses yet, and rates, which are peaks.
_OF_ONE = re.compile(
    r" per (?:VPC|cluster|managed node group|security group|.* cluster)$|^Network Address Usage$"
    r"|^Rate of "
)

# The field of an instance type with the code of the quota that counts its reservations.
_OF_RESERVATIONS = {"odcr": "on_demand_quota_code", "capacity-block": "capacity_block_quota_code"}


class Standing(Frozen):
    """A quota that a cluster needs, with its value and usage in the account."""

    need: QuotaNeed  # The cluster's need
    quota: QuotaValue | None = None  # The account's quota; None where it is not known
    shared: bool  # Whether all resources of the account in the Region count in it
    used: float | None = None  # Its usage; None where it is not known, or does not matter
    doubt: str = ""  # Reason that the usage may be higher than ``used``; empty where it is certain
    # The part of ``used`` that may be the cluster's own; None without such a part.
    own: str | None = None
    error: UnansweredError | None = None  # Error of the request for it; None where AWS answered

    @property
    def target(self) -> int | None:
        """Smallest value that suffices for the account; None if it is not known."""
        needed = self.need.needed.value
        if needed is None:
            return None
        others = self.used or 0 if self.own is None else 0
        return math.ceil(needed + others)

    @property
    def short(self) -> bool:
        """Whether the quota is too low, as far as values are known."""
        return self.quota is not None and self.target is not None and self.target > self.quota.value

    @property
    def crowded(self) -> bool:
        """Whether the quota is too low if none of the usage belongs to the cluster."""
        needed = self.need.needed.value or 0
        return self.quota is not None and (self.used or 0) + needed > self.quota.value


def standings(context: Context) -> Iterator[Standing]:
    """Yield the standing of each quota of the plan in the plan's order.

    A missing answer about one quota does not affect the others.
    """
    account, plan = context.account, context.plan
    valued = list(_standings_with_value(account, context.needs.quotas))
    measured = _metric_usage(account, valued)
    reserved = _reservation_quotas(plan.all_pools)
    deployed: bool | UnansweredError | None = None
    for without_usage in valued:
        standing = _with_usage(account, without_usage, measured)
        if standing.need.code in reserved:
            standing = replace(standing, own="reservations of the file among it")
        elif standing.short and standing.used:
            if deployed is None:
                deployed = _is_deployed(account, plan.name)
            standing = _with_own_usage(standing, deployed)
        yield standing


def _standings_with_value(account: "Account", needs: tuple[QuotaNeed, ...]) -> Iterator[Standing]:
    """Yield the standing of each quota with its value, looked up by code or by name."""
    coded = {need.name: _value_by_code(account, need) for need in needs}
    services: dict[str, list[str]] = {}
    for need in needs:
        if coded[need.name] is None and need.service is not None:
            services.setdefault(need.service, []).append(need.name)
    named = {
        service: _values_by_name(account, service, names) for service, names in services.items()
    }
    for need in needs:
        found = coded[need.name]
        if found is None and need.service is not None:
            listed = named[need.service]
            found = listed if isinstance(listed, UnansweredError) else listed.get(need.name)
        standing = Standing(need=need, shared=_OF_ONE.search(need.name) is None)
        if isinstance(found, UnansweredError):
            yield replace(standing, error=found)
        else:
            yield replace(standing, quota=found)


def _value_by_code(account: "Account", need: QuotaNeed) -> QuotaValue | UnansweredError | None:
    if need.code is None or need.service is None:
        return None
    try:
        return quota_by_code(account, need.service, need.code)
    except UnansweredError as error:
        return None if error.code == NOT_THERE else error


def _values_by_name(
    account: "Account", service: str, names: list[str]
) -> Mapping[str, QuotaValue] | UnansweredError:
    try:
        return quotas_by_name(account, service, names)
    except UnansweredError as error:
        return error


def _metric_usage(
    account: "Account", found: list[Standing]
) -> Mapping[str, float | None] | UnansweredError:
    metrics = {
        each.quota.code: each.quota.metric
        for each in found
        if each.shared and each.quota is not None and each.quota.metric is not None
    }
    try:
        return usage(account, metrics, datetime.now(UTC)) if metrics else {}
    except UnansweredError as error:
        return error


def _with_usage(
    account: "Account", standing: Standing, measured: Mapping[str, float | None] | UnansweredError
) -> Standing:
    """Return the standing with its usage, taken from CloudWatch or from a count."""
    quota = standing.quota
    if quota is None or not standing.shared:
        return standing
    if quota.metric is not None:
        if isinstance(measured, UnansweredError):
            return replace(standing, error=measured)
        used = measured[quota.code]
        doubt = "CloudWatch cannot say what is in use" if used is None else ""
        return replace(standing, used=used, doubt=doubt)
    try:
        count = quota_usage.count(account, quota)
    except UnansweredError as error:
        return replace(standing, error=error)
    if count is None:
        return replace(standing, doubt="AWS reports no usage of it")
    doubt = "and more, which is not counted" if count.more else ""
    return replace(standing, used=count.value, doubt=doubt)


def _reservation_quotas(pools: Sequence[PoolPlan]) -> frozenset[str]:
    """Return the codes of quotas on reservations that are already bought."""
    codes: set[str] = set()
    for pool in pools:
        fact = _OF_RESERVATIONS.get(pool.purchase)
        specs = map(catalog.lookup, pool.instance_types if fact is not None else ())
        codes |= {getattr(spec, fact) for spec in specs if fact is not None and spec.knows(fact)}
    return frozenset(codes)


def _is_deployed(account: "Account", name: str) -> bool | UnansweredError:
    try:
        return bool(account.ask(account.client("eks").describe_cluster, name=name))
    except UnansweredError as error:
        return False if error.code == "ResourceNotFoundException" else error


def _with_own_usage(standing: Standing, deployed: bool | UnansweredError) -> Standing:
    """Return a standing with the usage that may belong to the cluster itself."""
    if deployed is False:
        return standing
    by_itself = replace(standing, own="this cluster among it")
    if isinstance(deployed, UnansweredError):
        # The result depends on whether the cluster exists.
        return standing if by_itself.short else replace(by_itself, error=deployed)
    return by_itself


# --- Check of service quotas: room for the cluster beside the current usage -----------------------


def _quota_findings(context: Context) -> Iterator[Finding]:
    for standing in standings(context):
        yield _finding(standing, context.plan.region)


def subject_of(need: QuotaNeed) -> str:
    """Return the subject of findings about a quota."""
    return f"{need.code} {need.name}" if need.code is not None else need.name


def _finding(standing: Standing, region: str) -> Finding:
    need, quota = standing.need, standing.quota
    subject = subject_of(need)
    if standing.error is not None and not standing.short:
        return unknown(QUOTAS.name, subject, standing.error)
    if quota is None:
        return _unlisted_quota_finding(need, region)
    evidence = _evidence(standing, quota)
    if need.needed.value is None:
        return _quota_finding(subject, "unknown", f"{evidence}; {need.needed.formula}")
    if standing.short:
        fix = no_request_advice(standing, quota) or _request_command(standing, quota, region)
        return _quota_finding(subject, "fail", evidence, fix)
    if standing.crowded:
        fix = "look how much of what is in use is not this cluster's; ask for as much more"
        return _quota_finding(subject, "warn", evidence, fix)
    if standing.doubt:
        fix = "look whether others in the account use it; nothing is to be done where they do not"
        return _quota_finding(subject, "warn", evidence, fix)
    return _quota_finding(subject, "pass", evidence)


def _unlisted_quota_finding(need: QuotaNeed, region: str) -> Finding:
    """Return the finding for a quota that Service Quotas does not list."""
    evidence = f"Service Quotas has none of this name in {region}; {need.needed.formula}"
    if need.state == "within" and need.needed.value is not None and need.default is not None:
        published = f"{_number(need.needed.value)} needed; AWS publishes {need.default:,}"
        evidence = f"{published}, and Service Quotas does not list it in {region}"
        if need.code is None:
            return _quota_finding(subject_of(need), "pass", evidence)
        fix = "ask AWS Support what it is in this account"
        return _quota_finding(subject_of(need), "warn", evidence, fix)
    fix = "ask AWS Support which quota it counts against, and what it is in this account"
    return _quota_finding(subject_of(need), "unknown", evidence, fix)


def _evidence(standing: Standing, quota: QuotaValue) -> str:
    need = standing.need
    unit = need.needed.unit
    needed = "unknown" if need.needed.value is None else _number(need.needed.value)
    parts = [
        f"the account has {_number(quota.value)}",
        f"{needed} {unit} needed".replace("  ", " "),
    ]
    if standing.used is not None:
        own = f", {standing.own}" if standing.own and standing.used else ""
        parts.append(f"{_number(standing.used)} in use{own}")
    if standing.doubt:
        parts.append(standing.doubt)
    if quota.name not in (need.name, quota.code):
        parts.append(f"AWS calls it {quota.name!r} here")
    if need.agreed is not None:
        parts.append(f"{need.agreed.value:,} agreed by {need.agreed.reference}")
    return "; ".join(parts)


def no_request_advice(standing: Standing, quota: QuotaValue) -> str | None:
    """Return the advice for a quota that no request can raise; None if a request can."""
    need, target = standing.need, standing.target or 0
    if need.agreed is not None and target <= need.agreed.value:
        return f"have AWS apply what it agreed to: {need.agreed.reference}"
    if need.most is not None and target > need.most:
        return (
            f"AWS publishes {need.most:,} as the most that it grants: ask your account team for "
            f"{target:,} in writing, or divide the cluster"
        )
    if not quota.adjustable:
        return "Service Quotas takes no request for it: ask your account team, or need less"
    return None


def _request_command(standing: Standing, quota: QuotaValue, region: str) -> str:
    return (
        "--request-quotas, or: aws service-quotas request-service-quota-increase --service-code "
        f"{quota.service} --quota-code {quota.code} --desired-value {standing.target} "
        f"--region {region}"
    )


def _number(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:,.2f}"


def _quota_finding(subject: str, state: State, evidence: str, fix: str | None = None) -> Finding:
    return Finding(check=QUOTAS.name, subject=subject, state=state, evidence=evidence, fix=fix)


QUOTAS = Check(
    name="quotas",
    title="service quotas",
    actions=(GET, GET_DEFAULT, LIST, LIST_DEFAULTS, METRICS, CLUSTER, *quota_usage.ACTIONS),
    run=_quota_findings,
    resources={CLUSTER: "arn:{partition}:eks:{region}:{account}:cluster/{cluster}"},
)


# --- Requests to raise quotas: which requests are useful, and how to file them --------------------
# Sources:
#     https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_RequestServiceQuotaIncrease.html
#     https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_RequestedServiceQuotaChange.html


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
