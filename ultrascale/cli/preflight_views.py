"""Tables and JSON of `ultrascale preflight`, and its questions about quota increases."""

import json
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

import typer
from rich.box import SIMPLE
from rich.text import Text

from ultrascale.cli.output import say
from ultrascale.cli.screen import Table, screen
from ultrascale.errors import UnansweredError
from ultrascale.frozen import to_document
from ultrascale.preflight.model import Check, Context, Finding, State
from ultrascale.preflight.quotas import (
    Increase,
    Left,
    file_request,
    history_command,
    increases,
)
from ultrascale.preflight.run import Progress as Told
from ultrascale.progress import progress

_WORST_FIRST: tuple[State, ...] = ("fail", "unknown", "warn", "pass")
_STYLES: Mapping[State, str] = {
    "fail": "bold red",
    "unknown": "magenta",
    "warn": "yellow",
    "pass": "green",
}


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


def print_findings(context: Context, findings: Sequence[Finding]) -> None:
    """Print the findings, the worst first, then the steps to take, then the counts."""
    console = screen()
    account = context.account
    say(f"{context.plan.name} in {context.plan.region}, account {account.id}")
    table = Table("", "check", "subject", "evidence", box=SIMPLE)
    sorted_ = sorted(findings, key=lambda finding: _WORST_FIRST.index(finding.state))
    for finding in sorted_:
        state = Text(finding.state, style=_STYLES[finding.state])
        table.add_row(state, finding.check, finding.subject, finding.evidence)
    console.print(table)
    to_do = dict.fromkeys(
        (finding.subject, finding.fix)
        for finding in sorted_
        if finding.fix is not None and finding.denied is None
    )
    statement = _missing_permissions(findings)
    if to_do or statement:
        say("What to do:")
    for subject, fix in to_do:
        say(f"  {subject}: {fix}")
    if statement:
        text = f"  denied: allow it in a policy of who runs this: {json.dumps(statement)}"
        say(text)
    counts = _counts(findings)
    say(", ".join(f"{counts[state]} {state}" for state in _WORST_FIRST))


def as_document(context: Context, findings: Sequence[Finding], status: int) -> Mapping[str, object]:
    """Return the findings as `preflight --json` prints them."""
    return {
        "cluster": context.plan.name,
        "region": context.plan.region,
        "account": context.account.id,
        "caller": context.account.arn,
        "at": context.at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "status": status,
        "counts": _counts(findings),
        "missing_permissions": _missing_permissions(findings),
        "findings": [to_document(finding) for finding in findings],
    }


def _counts(findings: Sequence[Finding]) -> Mapping[State, int]:
    counted = Counter(finding.state for finding in findings)
    return {state: counted[state] for state in _WORST_FIRST}


def _missing_permissions(findings: Sequence[Finding]) -> Mapping[str, object] | None:
    """Return the policy statement that allows all denied actions."""
    denied = sorted({finding.denied for finding in findings if finding.denied is not None})
    return {"Effect": "Allow", "Action": denied, "Resource": "*"} if denied else None


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
