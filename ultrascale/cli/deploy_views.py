"""What a deployment costs, how it goes, and why it failed, as a person reads it."""

import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from ultrascale.catalog import prices
from ultrascale.catalog.deploy_failures import CDK_FAILURES, GOES_ON, what_to_do
from ultrascale.cli.needs_words import cell, unpriced
from ultrascale.deploy.cause import Cause, Left
from ultrascale.deploy.run import Outcome, State
from ultrascale.plan.model import ClusterNeeds, ClusterPlan
from ultrascale.plan.needs.report import MONEY

_WIDTH = 160
_STATES: tuple[State, ...] = ("deployed", "unchanged", "failed", "interrupted", "not started")
# What the CDK CLI puts before some of the errors that it ends with.
_ERROR = "❌"
_LAST_LINES = 5


def print_money(plan: ClusterPlan, needs: ClusterNeeds) -> None:
    """Print the nodes that each pool starts with and may have, and what those cost an hour."""
    table = Table("pool", "instance types", "purchase", box=SIMPLE)
    for title in ("nodes at once", "at most", "USD/hour at most"):
        table.add_column(title, justify="right")
    at_once = Counter({pool.pool: 0 for pool in plan.all_pools})
    for pool in plan.all_pools:
        at_once[pool.pool] += pool.initial_nodes
    first = {pool.pool: pool for pool in reversed(plan.all_pools)}
    for each in needs.pools:
        pool = first[each.pool]
        table.add_row(
            each.pool,
            ", ".join(pool.instance_types),
            pool.purchase,
            f"{at_once[each.pool]:,}",
            cell(each.figures["nodes"], places=0),
            cell(each.figures[MONEY[0]], places=2),
        )
    table.add_row("total", "", "", "", "", cell(needs.totals[MONEY[0]], places=2))
    console = Console(width=max(Console().width, _WIDTH), highlight=False, markup=False)
    console.print(table)
    console.print(
        f"EC2 On-Demand prices of {prices.SEEN}, nodes alone: no storage, no traffic, no fee of "
        "EKS. Capacity Blocks and training plans are paid before.",
        soft_wrap=True,
    )
    for line in unpriced(needs):
        console.print(line, soft_wrap=True)


class Progress:
    """Prints what is done, a line for each thing.

    Args:
        stacks: How many stacks there are.
    """

    def __init__(self, stacks: int) -> None:
        self._stacks = stacks
        self._ended = 0

    def started(self, stack: str) -> None:
        """Say that a stack is begun."""
        _say(f"{stack}: begun")

    def said(self, stack: str, line: str) -> None:
        """Repeat what its `cdk deploy` says."""
        if line.strip():
            _say(line if line.startswith(stack) else f"{stack} | {line}")

    def ended(self, outcome: Outcome) -> None:
        """Say what became of a stack."""
        self._ended += 1
        after = f" after {_duration(outcome.seconds)}" if outcome.seconds else ""
        _say(f"[{self._ended}/{self._stacks}] {outcome.stack}: {outcome.state}{after}")


def _say(line: str) -> None:
    """Print a line of a deployment, which no line may end half-way."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        typer.echo(line.encode(encoding, "replace").decode(encoding))
    except OSError:
        # Whoever read it is gone, such as `tee` after Ctrl-C: a connection that is lost. What is
        # still to be written goes nowhere, as Python would fail at it when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        signal.raise_signal(signal.SIGTERM)


def print_failure(
    outcome: Outcome, cause: Cause | None, unanswered: str | None, words: Mapping[str, str]
) -> None:
    """Print why a stack failed, and what to do.

    Args:
        outcome: What became of it.
        cause: The first event that failed; None where nothing was done to the stack.
        unanswered: Why the events are not known; None where they are.
        words: What stands for ``{file}`` and ``{region}`` in what to do.
    """
    typer.echo(f"\n{outcome.stack} failed", err=True)
    for line in _reason(outcome, cause, unanswered, {**words, "stack": outcome.stack}):
        typer.echo(f"  {line}", err=True)


def _reason(
    outcome: Outcome, cause: Cause | None, unanswered: str | None, words: Mapping[str, str]
) -> Iterator[str]:
    if cause is not None and cause.reason is not None:
        what = f"{cause.resource} ({cause.kind}): " if cause.resource is not None else ""
        yield f"first: {what}{cause.reason}"
    elif cause is not None:
        yield "nothing of it has failed, and `cdk deploy` ended; it says:"
        yield from _last_words(outcome)
    elif unanswered is not None:
        yield f"its events are not known: {unanswered}; `cdk deploy` says:"
        yield from _last_words(outcome)
    else:
        yield "CloudFormation changed nothing of it; the CDK says:"
        yield from _last_words(outcome)
    if cause is not None:
        yield f"the stack is in {cause.status}"
    if (cause is None or cause.reason is None) and (
        todo := what_to_do("\n".join(outcome.said), CDK_FAILURES)
    ):
        yield f"to do: {todo.format(**words)}"
    if unanswered is not None:
        yield f"to do: {GOES_ON.format(**words)}"
    yield from (f"to do: {each}" for each in (cause.todo if cause is not None else ()))


def _last_words(outcome: Outcome) -> Sequence[str]:
    said = [line for line in outcome.said if line.strip()]
    # What it is about stands below it.
    begins = next((number for number, line in enumerate(said) if _ERROR in line), None)
    return said[-_LAST_LINES:] if begins is None else said[begins:]


def print_left(stack: str, left: Sequence[Left]) -> None:
    """Print what a deployment took out of a stack and did not delete.

    Args:
        stack: Name of the stack.
        left: What is left.
    """
    if left:
        typer.echo(f"{stack}: no more in the stack, and still there:", err=True)
    for each in left:
        why = "its policy keeps it" if each.reason is None else f"not deleted: {each.reason}"
        typer.echo(f"  {each.kind} {each.id} ({each.resource}): {why}", err=True)


def print_outcomes(outcomes: Sequence[Outcome]) -> None:
    """Print what was not begun, and how many stacks there are of each kind."""
    waiting = [each for each in outcomes if each.state == "not started"]
    for outcome in waiting:
        if outcome.waited_for:
            typer.echo(f"{outcome.stack}: waits for {', '.join(outcome.waited_for)}", err=True)
    counts = Counter(outcome.state for outcome in outcomes)
    told = ", ".join(f"{counts[state]} {state}" for state in _STATES if counts[state])
    typer.echo(f"{len(outcomes)} stacks: {told}")


def interrupted(stack: str, region: str) -> str:
    """Return what is to be known of a stack whose `cdk deploy` was ended."""
    return f"{stack}: {GOES_ON.format(stack=stack, region=region)}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
