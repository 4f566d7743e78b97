"""Sections of the report, the same for the page and for Markdown."""

from collections.abc import Iterator

from ultrascale.plan.model import ClusterNeeds
from ultrascale.plan.needs.calendar import windows_table
from ultrascale.plan.needs.control_plane import tier_table
from ultrascale.plan.needs.decisions import decisions_table
from ultrascale.plan.needs.launch import launch_table, placement_table
from ultrascale.plan.needs.load import load_table
from ultrascale.plan.needs.pools import pools_table
from ultrascale.plan.needs.queues import queues_table
from ultrascale.plan.needs.quotas import quotas_table
from ultrascale.plan.needs.services import services_table
from ultrascale.plan.needs.spend import parts_table, steps_table
from ultrascale.plan.needs.standing import items_table
from ultrascale.plan.needs.subnets import subnets_table
from ultrascale.report.blocks import Block, Section
from ultrascale.report.changes import Comparison, changes_section

_JUDGED = "Load of the control plane that somebody has published, or that a quota bounds."
_OTHER_LOAD = "Load of the control plane by its origin; nobody publishes a limit of these."


def sections_of(needs: ClusterNeeds, comparison: Comparison | None) -> Iterator[Section]:
    """Yield the sections below the answer.

    Args:
        needs: The cluster.
        comparison: Comparison with an earlier state; None without one.
    """
    if comparison is not None:
        yield changes_section(comparison)
    pools = Block(pools_table(needs).of("page"), heading="Pools")
    subnets = Block(subnets_table(needs).of("page"), summary="Subnets and their addresses")
    yield Section("topology", "Topology", (pools, subnets))
    yield Section("calendar", "Calendar and cost", tuple(_calendar(needs)))
    if needs.services:
        yield Section("services", "Services", (Block(services_table(needs).of("page")),))
    yield Section("control-plane", "Control plane", tuple(_control_plane(needs)))
    yield Section("quotas", "Quotas", tuple(_quotas(needs)))
    decisions = Block(
        decisions_table(needs).of("page"), summary="Decisions and their reasons", open_on_page=True
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
        yield Block(windows_table(needs).of("page"))
    if spend.parts:
        yield Block(steps_table(needs).of("page"))
        yield Block(parts_table(needs).of("page"), summary="What each part costs a day")
    if needs.money.items:
        yield Block(items_table(needs).of("page"), summary="What is paid beside nodes")
    yield Block(note=f"Assumed: {'; '.join(spend.assumptions)}.", page_only=True)


def _control_plane(needs: ClusterNeeds) -> Iterator[Block]:
    if (advice := needs.control_plane.advice) is not None:
        yield Block(note=f"Control plane: {advice}.")
    yield Block(tier_table(needs).of("page"))
    load = load_table(needs)
    yield Block(load.part(_JUDGED, "good", "warn", "bad"))
    yield Block(load.part(_OTHER_LOAD, "plain"), summary="Load by its origin")
    yield Block(launch_table(needs).of("page"), summary="Launch of all nodes")
    if (gangs := placement_table(needs).of("page")).rows:
        yield Block(gangs, summary="Gangs by network layer")
    if (queues := queues_table(needs).of("page")).rows:
        yield Block(queues, summary="Queues and their nodes")


def _quotas(needs: ClusterNeeds) -> Iterator[Block]:
    quotas = quotas_table(needs)
    if (table := quotas.part("Quotas to raise, or to look up.", "warn", "bad", "plain")).rows:
        yield Block(table)
    else:
        yield Block(note="No quota has to be raised: the defaults hold the cluster.")
    commands = tuple(quota.command for quota in needs.answer.quotas if quota.command is not None)
    if commands:
        yield Block(commands=commands, summary="Commands that ask for them", page_only=True)
    if (table := quotas.part("Quotas that hold the cluster.", "good")).rows:
        yield Block(table, summary="Quotas that hold the cluster")
