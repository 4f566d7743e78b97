"""Sections of the report; the page and Markdown have the same sections."""

from collections.abc import Iterator, Mapping

from ultrascale.plan.model import ClusterNeeds
from ultrascale.plan.needs.report import needs_table
from ultrascale.plan.needs.tables import Table
from ultrascale.report.blocks import Block, Section
from ultrascale.report.changes import Comparison, changes_section

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
