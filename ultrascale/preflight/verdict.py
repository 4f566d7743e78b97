"""Verdict of preflight: all findings about an account, and whether a cluster fits it."""

from datetime import datetime
from pathlib import Path
from typing import Literal

from ultrascale import account, config, plan
from ultrascale.catalog.price_list import PriceList
from ultrascale.frozen import Frozen
from ultrascale.plan.needs.calendar import window_mistakes
from ultrascale.plan.needs.report import plan_needs
from ultrascale.preflight import checks
from ultrascale.preflight.model import Context, Finding
from ultrascale.preflight.quotas import subject_of
from ultrascale.preflight.run import Progress, run_checks


class Verdict(Frozen):
    """The result of all checks."""

    findings: tuple[Finding, ...]  # The findings, in the order of the checks
    # `beyond`: a need exceeds the limit that AWS publishes. `failed`: a check failed or
    # could not ask AWS. `passed`: neither.
    state: Literal["passed", "failed", "beyond"]


def read_context(
    file: Path, moment: datetime, profile: str | None, price_list: PriceList | None = None
) -> Context:
    """Return the cluster of a file and the account of the user's credentials, for the checks.

    Args:
        file: The cluster file.
        moment: Time for which the account is checked.
        profile: Profile of the AWS CLI's configuration; None for the environment's, if any.
        price_list: Prices; None takes the catalog's prices.

    Raises:
        ConfigError: The file has mistakes, a window that is over, or values of the documentation.
        AccountError: AWS cannot be asked.
    """
    reading, cluster = config.read(file), plan.load(file)
    needs = plan_needs(cluster, moment, price_list)
    mistakes = list(config.placeholders(reading))
    if reading.cluster is not None:
        mistakes += window_mistakes(reading.cluster, needs.calendar, moment)
    if mistakes:
        raise reading.refusal(mistakes)
    owner = account.connect(cluster.region, profile)
    return Context(plan=cluster, needs=needs, account=owner, at=moment)


def check(
    context: Context, *, allow_unknown: bool = False, progress: Progress | None = None
) -> Verdict:
    """Run every check, and return the verdict.

    Args:
        context: The cluster and the account.
        allow_unknown: Count a check that could not ask AWS as passed.
        progress: Is called with each check that has ended.
    """
    findings = run_checks(checks.all_checks(), context, progress=progress)
    beyond = {subject_of(need) for need in context.needs.quotas if need.state == "beyond"}
    failed = {finding.subject for finding in findings if finding.state == "fail"}
    unknown = any(finding.state == "unknown" for finding in findings) and not allow_unknown
    if beyond & failed:
        return Verdict(findings=findings, state="beyond")
    return Verdict(findings=findings, state="failed" if failed or unknown else "passed")
