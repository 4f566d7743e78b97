"""Sections of the report; the page and Markdown have the same sections."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ultrascale.frozen import Frozen
from ultrascale.guard import Change, Changes, RolledPool
from ultrascale.plan.model import ClusterNeeds
from ultrascale.plan.needs.report import needs_table
from ultrascale.plan.needs.tables import Row, Table, Tone, dollars_at, number_at, table_of
from ultrascale.report.words import listed

# --- Sections of the report, and the blocks that they consist of ----------------------------------


class Block(NamedTuple):
    """A block of a section."""

    table: Table | None = None  # Its table; None without one
    note: str = ""  # Its sentence
    items: tuple[str, ...] = ()  # Its list of sentences
    commands: tuple[str, ...] = ()  # Its list of commands
    heading: str = ""  # Heading above it
    summary: str = ""  # Title of a block that the reader unfolds; empty for an open block
    page_only: bool = False  # Whether Markdown leaves the block out
    open_on_page: bool = False  # Whether only Markdown folds the block


class Section(NamedTuple):
    """A section of the report; it contains the drawing with the section's id."""

    id: str
    title: str
    blocks: tuple[Block, ...]
    tone: Tone | None = None
    verdict: str = ""


# --- Verdict of the change guard, as a section of the report --------------------------------------


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


# --- Sections of the report; the page and Markdown have the same sections -------------------------


_CAPTIONS: Mapping[str, str] = {
    "pools": "Pools at their full size; money is of nodes alone, as the file buys them.",
    "subnets": "Subnets of each kind and zone, held against all nodes at full size.",
    "services": "Services with their fewest and their most replicas; money is of whole nodes, and "
    "a million tokens cost that much while all replicas are fully used.",
    "decisions": "What the file leaves open, and how it was decided.",
    "windows": "Windows of Capacity Blocks and training plans, in UTC.",
    "steps": "Cost a day between any two changes of a window, at full size.",
    "parts": "What each part costs a day, while it is there.",
    "items": "What is paid beside nodes: the baseline while it stands, usage by use and in no sum.",
    "launch": "Time in which all nodes are launched, at best.",
    "placement": "Time in which the scheduler places a gang by network topology.",
    "queues": "Nodes that queues are guaranteed, and the most that they may use with what "
    "others leave idle.",
    "control-plane": "What the tier {tier} is asked for, beside what it has.",
}
_JUDGED = "Load of the control plane that somebody has published, or that a quota bounds."
_OTHER_LOAD = "Load of the control plane by its origin; nobody publishes a limit of these."


def sections_of(needs: ClusterNeeds, comparison: Comparison | None) -> Iterator[Section]:
    """Yield the sections that follow the verdict.

    Args:
        needs: The cluster.
        comparison: Comparison with an earlier state; None without one.
    """
    if comparison is not None:
        yield changes_section(comparison)
    pools = Block(_table(needs, "pools"), heading="Pools")
    subnets = Block(_table(needs, "subnets"), summary="Subnets and their addresses")
    yield Section("topology", "Topology", (pools, subnets))
    yield Section("calendar", "Calendar and cost", tuple(_calendar(needs)))
    if needs.services:
        yield Section("services", "Services", (Block(_table(needs, "services")),))
    yield Section("control-plane", "Control plane", tuple(_control_plane(needs)))
    yield Section("quotas", "Quotas", tuple(_quotas(needs)))
    decisions = Block(
        _table(needs, "decisions"), summary="Decisions and their reasons", open_on_page=True
    )
    money = Block(items=needs.money.assumptions, summary="What the money rests on", page_only=True)
    yield Section("decisions", "Decisions", (decisions, money))


def _table(needs: ClusterNeeds, name: str) -> Table:
    caption = _CAPTIONS[name].format(tier=needs.control_plane.tier)
    return needs_table(needs, name).page(caption)


def _calendar(needs: ClusterNeeds) -> Iterator[Block]:
    spend, command = needs.spend, needs.answer.money.command
    if not needs.calendar:
        yield Block(note="The file has no window: no Capacity Block and no training plan.")
    if spend.without:
        more = "" if command is None else f" Get prices by {command}."
        lacking = ", ".join(spend.without)
        yield Block(note=f"Not in the cost, for want of a price: {lacking}.{more}")
    if needs.calendar:
        yield Block(_table(needs, "windows"))
    if spend.parts:
        yield Block(_table(needs, "steps"))
        yield Block(_table(needs, "parts"), summary="What each part costs a day")
    if needs.money.items:
        yield Block(_table(needs, "items"), summary="What is paid beside nodes")
    yield Block(note=f"Assumed: {'; '.join(spend.assumptions)}.", page_only=True)


def _control_plane(needs: ClusterNeeds) -> Iterator[Block]:
    if (advice := needs.control_plane.advice) is not None:
        yield Block(note=f"Control plane: {advice}.")
    yield Block(_table(needs, "control-plane"))
    load = needs_table(needs, "load")
    yield Block(load.page(_JUDGED, "good", "warn", "bad"))
    yield Block(load.page(_OTHER_LOAD, "plain"), summary="Load by its origin")
    yield Block(_table(needs, "launch"), summary="Launch of all nodes")
    if (gangs := _table(needs, "placement")).rows:
        yield Block(gangs, summary="Gangs by network layer")
    if (queues := _table(needs, "queues")).rows:
        yield Block(queues, summary="Queues and their nodes")


def _quotas(needs: ClusterNeeds) -> Iterator[Block]:
    quotas = needs_table(needs, "quotas")
    if (table := quotas.page("Quotas to raise, or to look up.", "warn", "bad", "plain")).rows:
        yield Block(table)
    else:
        yield Block(note="No quota has to be raised: the defaults hold the cluster.")
    commands = tuple(quota.command for quota in needs.answer.quotas if quota.command is not None)
    if commands:
        yield Block(commands=commands, summary="Commands that ask for them", page_only=True)
    if (table := quotas.page("Quotas that hold the cluster.", "good")).rows:
        yield Block(table, summary="Quotas that hold the cluster")
