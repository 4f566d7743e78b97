"""The view of a deployment in a terminal: costs, progress, and reasons of failures."""

import signal
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager

import typer
from rich.box import SIMPLE

from ultrascale.catalog.deploy_failures import CDK_FAILURES, GOES_ON, what_to_do
from ultrascale.cli.change_views import text_lines
from ultrascale.cli.needs_views import unpriced
from ultrascale.cli.output import reader_is_gone, say
from ultrascale.cli.preflight_views import print_verdict, progress_bar
from ultrascale.cli.screen import Table, screen
from ultrascale.deploy.cause import Cause, Left
from ultrascale.deploy.run import Outcome, State
from ultrascale.guard import Changes
from ultrascale.plan.amounts import SPOT, cell
from ultrascale.plan.model import ClusterNeeds, PoolPlan
from ultrascale.plan.needs.report import MONEY
from ultrascale.preflight import Context, Verdict
from ultrascale.preflight import Progress as ChecksProgress

_STATES: tuple[State, ...] = ("deployed", "unchanged", "failed", "interrupted", "not started")
# Words that the CDK CLI puts before the last error of some failures.
_ERROR = "❌"
_LAST_LINES = 5


def print_money(pools: Sequence[PoolPlan], needs: ClusterNeeds) -> None:
    """Print for each pool its nodes, at first and at most, and their price for an hour."""
    table = Table("pool", "instance types", "purchase", box=SIMPLE)
    for title in ("nodes at once", "at most", "USD/hour at most"):
        table.add_column(title, justify="right")
    at_once = Counter({pool.pool: 0 for pool in pools})
    for pool in pools:
        at_once[pool.pool] += pool.initial_nodes
    first = {pool.pool: pool for pool in reversed(pools)}
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
    label = f"total, {SPOT}" if needs.money.spot_at_on_demand else "total"
    table.add_row(label, "", "", "", "", cell(needs.totals[MONEY[0]], places=2))
    console = screen()
    console.print(table)
    say(
        "Nodes alone: `ultrascale plan FILE money` shows what stands beside them, and the day of "
        "each price. Capacity Blocks and training plans are paid before.",
    )
    for line in unpriced(needs):
        say(line)


class Progress:
    """Printer of the progress of stacks, a line for each event.

    Args:
        stacks: Number of stacks.
    """

    def __init__(self, stacks: int) -> None:
        self._stacks = stacks
        self._ended = 0

    def started(self, stack: str) -> None:
        """Print that a stack is begun."""
        _say(f"{stack}: begun")

    def said(self, stack: str, line: str) -> None:
        """Print a line of the stack's `cdk deploy`."""
        if line.strip():
            _say(line if line.startswith(stack) else f"{stack} | {line}")

    def ended(self, outcome: Outcome) -> None:
        """Print the outcome of a stack."""
        self._ended += 1
        after = f" after {_duration(outcome.seconds)}" if outcome.seconds else ""
        _say(f"[{self._ended}/{self._stacks}] {outcome.stack}: {outcome.state}{after}")


class TerminalView:
    """The view of a deployment in a terminal.

    Args:
        yes: Deploy without asking.
    """

    def __init__(self, *, yes: bool) -> None:
        self._yes = yes

    def say(self, line: str) -> None:
        """Print a line of the result."""
        say(line)

    def warn(self, line: str) -> None:
        """Print a warning or an error."""
        say(line, err=True)

    def progress(self, checks: int) -> AbstractContextManager[ChecksProgress | None]:
        """Show the progress of a number of checks."""
        return progress_bar(checks)

    def verdict(self, context: Context, verdict: Verdict) -> None:
        """Print the findings of preflight."""
        print_verdict(context, verdict.findings)

    def changes(self, changes: Changes) -> None:
        """Print the resources that would be replaced, deleted or rolled."""
        for line in text_lines(changes):
            say(line)

    def costs(self, pools: Sequence[PoolPlan], needs: ClusterNeeds) -> None:
        """Print the nodes of each pool and their price."""
        print_money(pools, needs)

    def agree(self, context: Context, stacks: int) -> bool:
        """Return whether the user agrees to deploy a number of stacks."""
        plan = context.plan
        where = f"{plan.name} in {plan.region}, account {context.account.id}"
        return self._yes or typer.confirm(f"deploy {stacks} stacks of {where}?")

    def watcher(self, stacks: int) -> Progress:
        """Return the view of running stacks."""
        return Progress(stacks)

    def failure(
        self,
        outcome: Outcome,
        cause: Cause | None,
        unanswered: str | None,
        words: Mapping[str, str],
    ) -> None:
        """Print why a stack failed."""
        print_failure(outcome, cause, unanswered, words)

    def left(self, stack: str, left: Sequence[Left]) -> None:
        """Print the resources that left a stack and still exist."""
        print_left(stack, left)

    def outcomes(self, outcomes: Sequence[Outcome], region: str) -> None:
        """Print the outcome of each stack."""
        print_outcomes(outcomes)
        for outcome in outcomes:
            if outcome.state == "interrupted":
                stack = outcome.stack
                self.warn(f"{stack}: {GOES_ON.format(stack=stack, region=region)}")


def _say(line: str) -> None:
    """Print a line; a line that cannot be printed must not end the deployment half-way."""
    encoding = sys.stdout.encoding or "utf-8"
    typer.echo(line.encode(encoding, "replace").decode(encoding))
    # Such a pipe is `tee` after Ctrl-C: the deployment ends where it is safe to.
    if reader_is_gone():
        signal.raise_signal(signal.SIGTERM)


def print_failure(
    outcome: Outcome, cause: Cause | None, unanswered: str | None, words: Mapping[str, str]
) -> None:
    """Print why a stack failed, and the steps to take.

    Args:
        outcome: Outcome of the stack.
        cause: The first event that failed; None if CloudFormation changed nothing.
        unanswered: Why the events are not known; None if they are.
        words: Values of ``{file}``, ``{cluster}`` and ``{region}`` in the advice.
    """
    say(f"\n{outcome.stack} failed", err=True)
    for line in _reason(outcome, cause, unanswered, {**words, "stack": outcome.stack}):
        say(f"  {line}", err=True)


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
    # The resource that the reason is about is printed below it.
    begins = next((number for number, line in enumerate(said) if _ERROR in line), None)
    return said[-_LAST_LINES:] if begins is None else said[begins:]


def print_left(stack: str, left: Sequence[Left]) -> None:
    """Print the resources that left a stack and still exist."""
    if left:
        say(f"{stack}: no more in the stack, and still there:", err=True)
    for each in left:
        why = "its policy keeps it" if each.reason is None else f"not deleted: {each.reason}"
        say(f"  {each.kind} {each.id} ({each.resource}): {why}", err=True)


def print_outcomes(outcomes: Sequence[Outcome]) -> None:
    """Print the stacks that were not begun, and the number of stacks in each state."""
    waiting = [each for each in outcomes if each.state == "not started"]
    for outcome in waiting:
        if outcome.waited_for:
            say(f"{outcome.stack}: waits for {', '.join(outcome.waited_for)}", err=True)
    counts = Counter(outcome.state for outcome in outcomes)
    told = ", ".join(f"{counts[state]} {state}" for state in _STATES if counts[state])
    say(f"{len(outcomes)} stacks: {told}")


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
