"""Tables and JSON of `ultrascale preflight`, and its questions about quota increases."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

import typer

from ultrascale.cli.findings_views import (
    OF_PREFLIGHT,
    counts,
    missing_permissions,
    print_findings,
)
from ultrascale.cli.output import say
from ultrascale.errors import UnansweredError
from ultrascale.findings import Finding
from ultrascale.frozen import to_document
from ultrascale.preflight.model import Check, Context
from ultrascale.preflight.quotas import (
    Increase,
    Left,
    file_request,
    history_command,
    increases,
)
from ultrascale.preflight.run import Progress as Told
from ultrascale.progress import progress


@contextmanager
def progress_bar(checks: int) -> Generator[Told | None]:
    """Yield a function that shows on a terminal how many of ``checks`` have ended."""
    done = 0
    with progress(f"asking the account: 0 of {checks} checks") as step:

        def through(check: Check) -> None:
            nonlocal done
            done += 1
            step.say(f"asking the account: {done} of {checks} checks, {check.title}")

        yield through


def print_verdict(context: Context, findings: Sequence[Finding]) -> None:
    """Print the cluster, its account, and the findings about both."""
    say(f"{context.plan.name} in {context.plan.region}, account {context.account.id}")
    print_findings(findings, OF_PREFLIGHT)


def as_document(context: Context, findings: Sequence[Finding], status: int) -> Mapping[str, object]:
    """Return the findings as `preflight --json` prints them."""
    return {
        "cluster": context.plan.name,
        "region": context.plan.region,
        "account": context.account.id,
        "caller": context.account.arn,
        "at": context.at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "status": status,
        "counts": counts(findings, OF_PREFLIGHT),
        "missing_permissions": missing_permissions(findings),
        "findings": [to_document(finding) for finding in findings],
    }


def file_requests(context: Context, *, ask: bool) -> bool:
    """Show the quota increases that a cluster needs, and request them once the user agrees.

    Returns:
        Whether no quota remains that the user has to raise by other means.
    """
    wanted = list(increases(context))
    worth = [increase for increase in wanted if isinstance(increase, Increase)]
    left = [increase for increase in wanted if isinstance(increase, Left)]
    for increase in left:
        say(f"{increase.name}: no request: {increase.why}")
    if not worth:
        say("no request is to be filed")
        return all(increase.settled for increase in left)
    for increase in worth:
        now = f"{increase.quota.value:,.10g} now"
        say(f"{_quota_name(increase)}: {now}, {increase.asked:,} asked for")
    if ask:
        account, region = context.account.id, context.plan.region
        typer.confirm(f"file {len(worth)} with AWS, account {account}, {region}?", abort=True)
    filed = [_file_increase(context, increase) for increase in worth]
    return all(filed) and all(increase.settled for increase in left)


def _file_increase(context: Context, increase: Increase) -> bool:
    try:
        case = file_request(context.account, increase)
    except UnansweredError as error:
        look = "" if error.code else f"; it may be filed: {history_command(context, increase)}"
        say(f"{_quota_name(increase)}: not filed: {error}{look}", err=True)
        return False
    say(f"{_quota_name(increase)}: filed: {case}")
    return True


def _quota_name(increase: Increase) -> str:
    return f"{increase.quota.code} {increase.quota.name}"
