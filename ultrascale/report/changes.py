"""Verdict of the change guard, as a section of the report."""

from collections import Counter

from ultrascale.frozen import Frozen
from ultrascale.guard import Change, Changes, RolledPool
from ultrascale.plan.needs.tables import Row, Table, dollars_at, number_at, table_of
from ultrascale.report.blocks import Block, Section
from ultrascale.report.words import listed

_MOST_PROPERTIES = 3


class Comparison(Frozen):
    """Comparison of the cluster with an earlier state."""

    against: str  # Name of the earlier state
    changes: Changes  # Changes that a deployment would make


def changes_section(comparison: Comparison) -> Section:
    """Return the verdict, the number of changes of each kind, and the changes that matter."""
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
    rows = (
        _change_row(change)
        for change in changes.resources
        if _is_stopped(change) or change.action not in ("added", "updated")
    )
    caption = "Changes that lose or open something, fail, or replace or remove a resource."
    return table_of(["changes"], rows).page(caption)


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
    cells = {
        "resource": f"{change.type} {change.name} ({change.stack}/{change.logical_id})",
        "action": change.action,
        "properties": listed(properties, _MOST_PROPERTIES),
        "effects": "; ".join(filter(None, effects)),
    }
    return Row("", cells, "bad" if _is_stopped(change) and not change.named else "warn")


def _nodes_table(changes: Changes) -> Table:
    rows = (_pool_row(f"diff.pools.{index}", pool) for index, pool in enumerate(changes.pools))
    return table_of(["nodes"], rows).page("Running nodes that the deployment concerns.")


def _pool_row(at: str, pool: RolledPool) -> Row:
    lost = f"; lost: {pool.lost}" if pool.lost else ""
    cells = {
        "pool": f"{pool.pool} ({pool.stack})",
        "rolling": pool.rolling,
        "nodes": number_at(f"{at}.nodes", pool.nodes),
        "usd_per_hour": dollars_at(f"{at}.usd_per_hour", pool.usd_per_hour),
        "at_once": pool.at_once,
        "why": f"{listed(pool.why, _MOST_PROPERTIES)}{lost}",
    }
    return Row("", cells, "bad" if pool.protected else "warn")
