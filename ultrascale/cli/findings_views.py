"""The table of findings, and their counts, of `ultrascale preflight` and `ultrascale accept`."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence

from rich.box import SIMPLE
from rich.text import Text

from ultrascale.cli.output import say
from ultrascale.cli.screen import Table, screen
from ultrascale.findings import WORST_FIRST, Finding, State

OF_PREFLIGHT: Sequence[State] = ("fail", "unknown", "warn", "pass")
OF_ACCEPT: Sequence[State] = ("failed", "differs", "not run", "pass")

_STYLES: Mapping[State, str] = {
    "failed": "bold red",
    "fail": "bold red",
    "differs": "bold red",
    "unknown": "magenta",
    "not run": "magenta",
    "warn": "yellow",
    "pass": "green",
}


def print_findings(findings: Sequence[Finding], states: Sequence[State]) -> None:
    """Print the findings, the worst first, then the steps to take, then the counts.

    Args:
        findings: The findings.
        states: The states that are counted, the worst first.
    """
    table = Table("", "check", "subject", "evidence", box=SIMPLE)
    worst_first = sorted(findings, key=lambda finding: WORST_FIRST.index(finding.state))
    for finding in worst_first:
        state = Text(finding.state, style=_STYLES[finding.state])
        table.add_row(state, finding.check, finding.subject, finding.evidence)
    screen().print(table)
    to_do = dict.fromkeys(
        (finding.subject, finding.fix)
        for finding in worst_first
        if finding.fix is not None and finding.denied is None
    )
    statement = missing_permissions(findings)
    if to_do or statement:
        say("What to do:")
    for subject, fix in to_do:
        say(f"  {subject}: {fix}")
    if statement:
        text = f"  denied: allow it in a policy of who runs this: {json.dumps(statement)}"
        say(text)
    say(", ".join(f"{count} {state}" for state, count in counts(findings, states).items()))


def counts(findings: Sequence[Finding], states: Sequence[State]) -> Mapping[State, int]:
    """Return the number of findings of each state, in the order of ``states``."""
    counted = Counter(finding.state for finding in findings)
    return {state: counted[state] for state in states}


def missing_permissions(findings: Sequence[Finding]) -> Mapping[str, object] | None:
    """Return the policy statement that allows all denied actions; None where none is denied."""
    denied = sorted({finding.denied for finding in findings if finding.denied is not None})
    return {"Effect": "Allow", "Action": denied, "Resource": "*"} if denied else None
