"""Verdict of the change guard, as a part of the report."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ultrascale.guard import Change, Changes, RolledPool
from ultrascale.report.markup import Content, shown, shown_usd
from ultrascale.report.table import Cell, Column, Row, Table
from ultrascale.report.words import listed

_MOST_PROPERTIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A comparison of the cluster with an earlier state.

    Attributes:
        against: Name of the earlier state.
        changes: All that a deployment would do.
    """

    against: str
    changes: Changes


def tone(comparison: Comparison) -> str:
    """Return the tone of the verdict: `good` or `bad`."""
    return "good" if comparison.changes.is_safe else "bad"


def verdict(comparison: Comparison) -> str:
    """Return the verdict as a sentence."""
    changes = comparison.changes
    if changes.is_safe:
        return "Safe: nothing protected goes"
    return f"Refused: {', '.join(sorted(changes.verdicts))}"


def summary(comparison: Comparison) -> Sequence[Content]:
    """Return how many changes of each kind there are."""
    changes = comparison.changes
    counts = Counter(change.action for change in changes.resources)
    told = [f"{count:,} {action}" for action, count in sorted(counts.items())]
    if changes.new_stacks:
        told.append(f"{len(changes.new_stacks):,} new stacks")
    if changes.left_stacks:
        told.append(f"stacks left behind: {listed(changes.left_stacks)}")
    if changes.unread:
        told.append(f"not known: {listed(changes.unread)}")
    return ["; ".join(told) or "no resource changes"]


def changes_table(comparison: Comparison) -> Table:
    """Return the changes that a reviewer has to see: losses, openings, failures, replacements."""
    loud = [
        change
        for change in comparison.changes.resources
        if _is_stopped(change) or change.action not in ("added", "updated")
    ]
    return Table(
        caption="Changes that lose or open something, fail, or replace or remove a resource.",
        columns=(
            Column(title="resource", is_wide=True),
            Column(title="", is_state=True),
            Column(title="because of", is_wide=True),
            Column(title="what is lost or opened, and what to do instead", is_wide=True),
        ),
        rows=tuple(_change(change) for change in loud),
    )


def _is_stopped(change: Change) -> bool:
    return bool(change.lost or change.fails or change.opens)


def _change(change: Change) -> Row:
    stopped = _is_stopped(change) and not change.named
    properties = [
        f"{part.path}: {part.old} to {part.new}" for part in change.properties if part.effect
    ]
    told = [
        f"{change.verdict}: {change.lost}" if change.lost else "",
        *(f"exposes: {setting}" for setting in change.opens),
        f"fails: {change.fails}" if change.fails else "",
        f"instead: {change.instead}" if change.instead else "",
        "permitted by name" if change.named else "",
    ]
    cells: tuple[Cell, ...] = (
        (f"{change.type} {change.name} ({change.stack}/{change.logical_id})",),
        (change.action,),
        (listed(properties, _MOST_PROPERTIES),),
        ("; ".join(each for each in told if each),),
    )
    return Row(cells=cells, tone="bad" if stopped else "warn")


def nodes_table(comparison: Comparison) -> Table:
    """Return the running nodes that a deployment concerns."""
    return Table(
        caption="Running nodes that the deployment concerns.",
        columns=(
            Column(title="pool"),
            Column(title="", is_state=True),
            Column(title="nodes at most", is_number=True),
            Column(title="USD/hour On-Demand", is_number=True),
            Column(title="at a time", is_wide=True),
            Column(title="because of", is_wide=True),
        ),
        rows=tuple(_pool(index, pool) for index, pool in enumerate(comparison.changes.pools)),
    )


def _pool(index: int, pool: RolledPool) -> Row:
    at = f"diff.pools.{index}"
    cells: tuple[Cell, ...] = (
        (f"{pool.pool} ({pool.stack})",),
        (pool.rolling,),
        (shown(f"{at}.nodes", pool.nodes),),
        (shown_usd(f"{at}.usd_per_hour", pool.usd_per_hour),),
        (pool.at_once,),
        (listed(pool.why, _MOST_PROPERTIES) + (f"; lost: {pool.lost}" if pool.lost else ""),),
    )
    return Row(cells=cells, tone="bad" if pool.protected else "warn")
