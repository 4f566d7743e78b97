"""Sections of the report, the same for the page and for Markdown."""

from collections.abc import Iterator

from ultrascale.plan.model import ClusterNeeds
from ultrascale.report import tables
from ultrascale.report.changes import Comparison, changes_section
from ultrascale.report.rows import Block, Section


def sections_of(needs: ClusterNeeds, comparison: Comparison | None) -> Iterator[Section]:
    """Yield the sections below the answer.

    Args:
        needs: The cluster.
        comparison: Comparison with an earlier state; None without one.
    """
    if comparison is not None:
        yield changes_section(comparison)
    pools = Block(tables.pools_table(needs), heading="Pools")
    subnets = Block(tables.subnets_table(needs), summary="Subnets and their addresses")
    yield Section("topology", "Topology", (pools, subnets))
    yield Section("calendar", "Calendar and cost", tuple(_calendar(needs)))
    if needs.services:
        yield Section("services", "Services", (Block(tables.services_table(needs)),))
    yield Section("control-plane", "Control plane", tuple(_control_plane(needs)))
    yield Section("quotas", "Quotas", tuple(_quotas(needs)))
    decisions = Block(
        tables.decisions_table(needs), summary="Decisions and their reasons", open_on_page=True
    )
    money = Block(items=needs.money.assumptions, summary="What the money rests on", page_only=True)
    yield Section("decisions", "Decisions", (decisions, money))


def _calendar(needs: ClusterNeeds) -> Iterator[Block]:
    spend, command = needs.spend, needs.answer.money.command
    if not needs.calendar:
        yield Block(note="The file has no window: no Capacity Block and no training plan.")
    if spend.without:
        more = "" if command is None else f" Get prices by {command}."
        lacking = ", ".join(spend.without)
        yield Block(note=f"Not in the cost, for want of a price: {lacking}.{more}")
    if needs.calendar:
        yield Block(tables.calendar_table(needs))
    if spend.parts:
        yield Block(tables.steps_table(needs))
        yield Block(tables.parts_table(needs), summary="What each part costs a day")
    if needs.money.items:
        yield Block(tables.items_table(needs), summary="What is paid beside nodes")
    yield Block(note=f"Assumed: {'; '.join(spend.assumptions)}.", page_only=True)


def _control_plane(needs: ClusterNeeds) -> Iterator[Block]:
    if (advice := needs.control_plane.advice) is not None:
        yield Block(note=f"Control plane: {advice}.")
    yield Block(tables.tier_table(needs))
    yield Block(tables.load_table(needs, judged=True))
    yield Block(tables.load_table(needs, judged=False), summary="Load by its origin")
    yield Block(tables.launch_table(needs), summary="Launch of all nodes")
    if (gangs := tables.placement_table(needs)).rows:
        yield Block(gangs, summary="Gangs by network layer")
    if (queues := tables.queues_table(needs)).rows:
        yield Block(queues, summary="Queues and their nodes")


def _quotas(needs: ClusterNeeds) -> Iterator[Block]:
    if (table := tables.quotas_table(needs, to_raise=True)).rows:
        yield Block(table)
    else:
        yield Block(note="No quota has to be raised: the defaults hold the cluster.")
    commands = tuple(quota.command for quota in needs.answer.quotas if quota.command is not None)
    if commands:
        yield Block(commands=commands, summary="Commands that ask for them", page_only=True)
    if (table := tables.quotas_table(needs, to_raise=False)).rows:
        yield Block(table, summary="Quotas that hold the cluster")
