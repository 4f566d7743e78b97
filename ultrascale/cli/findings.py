"""What is found in an account, as people and programs read it."""

import json
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict

from rich.box import SIMPLE
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from ultrascale.preflight.model import Check, Context, Finding, State
from ultrascale.preflight.run import Progress as Told

_WORST_FIRST: tuple[State, ...] = ("fail", "unknown", "warn", "pass")
_STYLES: Mapping[State, str] = {
    "fail": "bold red",
    "unknown": "magenta",
    "warn": "yellow",
    "pass": "green",
}
_WIDTH = 160


@contextmanager
def progress_bar(checks: int) -> Generator[Told | None]:
    """Give what follows the checks on standard error; None where that is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("asking the account", total=checks)

        def through(check: Check) -> None:
            bar.update(task, advance=1, description=check.title)

        yield through


def print_findings(context: Context, found: Sequence[Finding]) -> None:
    """Print findings, the worst first, what to do about them, and how many there are of each."""
    console = Console(width=max(Console().width, _WIDTH), highlight=False, markup=False)
    account = context.account
    console.print(f"{context.plan.name} in {context.plan.region}, account {account.id}")
    table = Table("", "check", "subject", "evidence", box=SIMPLE)
    sorted_ = sorted(found, key=lambda each: _WORST_FIRST.index(each.state))
    for each in sorted_:
        state = Text(each.state, style=_STYLES[each.state])
        table.add_row(state, each.check, each.subject, each.evidence)
    console.print(table)
    to_do = dict.fromkeys(
        (each.subject, each.fix) for each in sorted_ if each.fix is not None and each.denied is None
    )
    statement = _missing(found)
    if to_do or statement:
        console.print("What to do:")
    for subject, fix in to_do:
        console.print(f"  {subject}: {fix}", soft_wrap=True)
    if statement:
        text = f"  denied: allow it in a policy of who runs this: {json.dumps(statement)}"
        console.print(text, soft_wrap=True)
    counts = _counts(found)
    console.print(", ".join(f"{counts[state]} {state}" for state in _WORST_FIRST))


def as_document(context: Context, found: Sequence[Finding], status: int) -> Mapping[str, object]:
    """Return all of it as programs read it."""
    return {
        "cluster": context.plan.name,
        "region": context.plan.region,
        "account": context.account.id,
        "caller": context.account.arn,
        "at": context.at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "status": status,
        "counts": _counts(found),
        "missing_permissions": _missing(found),
        "findings": [asdict(each) for each in found],
    }


def _counts(found: Sequence[Finding]) -> Mapping[State, int]:
    counted = Counter(each.state for each in found)
    return {state: counted[state] for state in _WORST_FIRST}


def _missing(found: Sequence[Finding]) -> Mapping[str, object] | None:
    """Return the statement of a policy that allows all that was denied."""
    denied = sorted({each.denied for each in found if each.denied is not None})
    return {"Effect": "Allow", "Action": denied, "Resource": "*"} if denied else None
