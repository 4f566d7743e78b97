"""Headline of the report: the verdict, the price, the next window and the largest risk."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ultrascale.plan.amounts import SPOT, UNKNOWN
from ultrascale.plan.model import ClusterNeeds
from ultrascale.plan.needs.report import verdict_line
from ultrascale.plan.needs.tables import (
    Content,
    Datum,
    Line,
    Tone,
    figure_at,
    number_at,
    plain,
    time_at,
)
from ultrascale.report.words import listed

_TONES: Mapping[str, Tone] = {"fits": "good", "raise": "warn", "beyond": "bad", "over": "bad"}


class Tile(NamedTuple):
    """A figure of the headline, with its name."""

    name: str
    value: Content


def tone(needs: ClusterNeeds) -> Tone:
    """Return the tone in which the verdict is shown."""
    return _TONES[needs.answer.verdict]


def verdict(needs: ClusterNeeds) -> Line:
    """Return the verdict as a sentence."""
    first, *rest = verdict_line(needs)
    words = plain((first,))
    return (f"{words[0].upper()}{words[1:]}", *rest)


def tiles(needs: ClusterNeeds) -> Iterator[Tile]:
    """Yield the figures that a reader looks for first."""
    answer = needs.answer
    yield Tile("nodes at full size", figure_at("totals.nodes", needs.totals["nodes"]))
    yield Tile("accelerators", figure_at("totals.accelerators", needs.totals["accelerators"]))
    money = answer.money
    of_nodes = ""
    if money.nodes_priced < money.nodes:
        of_nodes = f", {money.nodes_priced:,} of {money.nodes:,} nodes"
    if money.spot_at_on_demand:
        of_nodes = f"{of_nodes}, {SPOT}"
    for name, key, own in (
        ("USD an hour", "usd_per_hour", money.usd_per_hour),
        ("USD a month", "usd_per_month", money.usd_per_month),
    ):
        # A sum without nodes would not be the price of the cluster.
        cell = figure_at(f"answer.money.{key}", own)
        if money.nodes and not money.nodes_priced:
            cell = Datum(f"answer.money.{key}.value", own.value, UNKNOWN, UNKNOWN)
        yield Tile(f"{name}{of_nodes}", cell)
    yield Tile("quotas to raise", number_at("answer.quota_count", answer.quota_count))
    yield Tile("control-plane tier", needs.control_plane.tier)


def facts(needs: ClusterNeeds) -> Iterator[tuple[str, Line]]:
    """Yield the reasons for the verdict, each with a label and a line."""
    answer = needs.answer
    for reason in answer.why:
        yield "Why", (reason,)
    if answer.quotas:
        yield "Raise", _quotas(needs)
    if answer.quotas_unknown:
        yield "Look up", (listed(answer.quotas_unknown, 6),)
    yield "Money", _money(needs)
    yield "Window", _window(needs)
    risk = answer.risk
    yield "Largest risk", (f"{risk.text}; {risk.advice}" if risk.advice else risk.text,)


def _quotas(needs: ClusterNeeds) -> Line:
    return tuple(
        part
        for index, quota in enumerate(needs.answer.quotas)
        for part in (
            f"{', ' if index else ''}{quota.name} to ",
            number_at(f"answer.quotas.{index}.needed", quota.needed),
        )
    )


def _money(needs: ClusterNeeds) -> Line:
    money = needs.answer.money
    line: list[Content] = [
        number_at("answer.money.nodes", money.nodes),
        " nodes at most, ",
        number_at("answer.money.nodes_at_first", money.nodes_at_first),
        " at first, ",
        number_at("answer.money.nodes_priced", money.nodes_priced),
        " with a price; ",
    ]
    if money.usd_per_hour.value is None:
        line.append("no price is known")
    else:
        line.append(f"prices of {money.oldest}")
        if money.newest != money.oldest:
            line.append(f" to {money.newest}")
    if money.spot_at_on_demand:
        line.append("; all nodes, Spot at On-Demand prices")
    if money.lacking:
        line.append(f"; no price of: {listed(money.lacking, 8)}")
    if money.command is not None:
        line.append(f"; get prices by: {money.command}")
    if money.excluded:
        line.append(f"; never in it: {', '.join(money.excluded)}")
    return tuple(line)


def _window(needs: ClusterNeeds) -> Line:
    window = needs.answer.window
    if window is None:
        return ("none",)
    at = "answer.window"
    drain = figure_at(f"{at}.figures.drain_minutes", window.figures["drain_minutes"])
    return (
        f"{window.pool}: ",
        time_at(f"{at}.starts", window.starts),
        " to ",
        time_at(f"{at}.ends", window.ends),
        " UTC, with a drain of ",
        drain,
        " minutes",
    )
