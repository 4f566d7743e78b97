"""Verdict of the change guard, as a section of the report."""

from collections import Counter

from ultrascale.frozen import Frozen
from ultrascale.guard import Change, Changes, RolledPool
from ultrascale.plan.needs.tables import Row, Table, columns, dollars_at, number_at, row
from ultrascale.report.blocks import Block, Section
from ultrascale.report.words import listed

_MOST_PROPERTIES = 3


class Comparison(Frozen):
    """A comparison of the cluster with an earlier state."""

    against: str  # Name of the earlier state
    changes: Changes  # All that a deployment would do


def changes_section(comparison: Comparison) -> Section:
    """Return the verdict, how many changes of each kind there are, and those that matter."""
    changes = comparison.changes
    verdict = "Safe: nothing protected goes"
    if not changes.is_safe:
        verdict = f"Refused: {', '.join(sorted(changes.verdicts))}"
    tables = (_changes_table(changes), _nodes_table(changes))
    return Section(
        "changes",
        "Changes",
        (
            Block(note=f"Against {comparison.against}: {_summary(changes)}."),
            *(Block(table) for table in tables if table.rows),
        ),
        "good" if changes.is_safe else "bad",
        verdict,
    )


def _summary(changes: Changes) -> str:
    counts = Counter(change.action for change in changes.resources)
    parts = [f"{count:,} {action}" for action, count in sorted(counts.items())]
    if changes.new_stacks:
        parts.append(f"{len(changes.new_stacks):,} new stacks")
    if changes.left_stacks:
        parts.append(f"stacks left behind: {listed(changes.left_stacks)}")
    if changes.unread:
        parts.append(f"not known: {listed(changes.unread)}")
    return "; ".join(parts) or "no resource changes"


def _changes_table(changes: Changes) -> Table:
    """Return the changes that a reviewer has to see: losses, openings, failures, replacements."""
    return Table(
        caption="Changes that lose or open something, fail, or replace or remove a resource.",
        columns=(
            *columns("sentences", "resource"),
            *columns("state", ""),
            *columns("sentences", "because of", "what is lost or opened, and what to do instead"),
        ),
        rows=tuple(
            _change_row(change)
            for change in changes.resources
            if _is_stopped(change) or change.action not in ("added", "updated")
        ),
    )


def _is_stopped(change: Change) -> bool:
    return bool(change.lost or change.fails or change.opens)


def _change_row(change: Change) -> Row:
    properties = [
        f"{part.path}: {part.old} to {part.new}" for part in change.properties if part.effect
    ]
    effects = [
        f"{change.verdict}: {change.lost}" if change.lost else "",
        *(f"exposes: {setting}" for setting in change.opens),
        f"fails: {change.fails}" if change.fails else "",
        f"instead: {change.instead}" if change.instead else "",
        "permitted by name" if change.named else "",
    ]
    return row(
        f"{change.type} {change.name} ({change.stack}/{change.logical_id})",
        change.action,
        listed(properties, _MOST_PROPERTIES),
        "; ".join(filter(None, effects)),
        tone="bad" if _is_stopped(change) and not change.named else "warn",
    )


def _nodes_table(changes: Changes) -> Table:
    return Table(
        caption="Running nodes that the deployment concerns.",
        columns=(
            *columns("words", "pool"),
            *columns("state", ""),
            *columns("number", "nodes at most", "USD/hour On-Demand"),
            *columns("sentences", "at a time", "because of"),
        ),
        rows=tuple(_pool_row(index, pool) for index, pool in enumerate(changes.pools)),
    )


def _pool_row(index: int, pool: RolledPool) -> Row:
    at = f"diff.pools.{index}"
    return row(
        f"{pool.pool} ({pool.stack})",
        pool.rolling,
        number_at(f"{at}.nodes", pool.nodes),
        dollars_at(f"{at}.usd_per_hour", pool.usd_per_hour),
        pool.at_once,
        listed(pool.why, _MOST_PROPERTIES) + (f"; lost: {pool.lost}" if pool.lost else ""),
        tone="bad" if pool.protected else "warn",
    )
