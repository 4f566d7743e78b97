"""Check of service quotas: room for the cluster beside the current usage."""

from collections.abc import Iterator

from ultrascale.plan.model import QuotaNeed
from ultrascale.preflight import quota_counts
from ultrascale.preflight.model import Check, Context, Finding, State, unknown
from ultrascale.preflight.quota_standings import CLUSTER, Standing, standings
from ultrascale.preflight.quota_values import (
    GET,
    GET_DEFAULT,
    LIST,
    LIST_DEFAULTS,
    METRICS,
    QuotaValue,
)


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
    actions=(GET, GET_DEFAULT, LIST, LIST_DEFAULTS, METRICS, CLUSTER, *quota_counts.ACTIONS),
    run=_quota_findings,
    resources={CLUSTER: "arn:{partition}:eks:{region}:{account}:cluster/{cluster}"},
)
