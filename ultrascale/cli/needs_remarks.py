"""Remarks of `ultrascale plan` beside its tables, and the formula behind each number."""

from collections.abc import Iterator

from ultrascale.plan.amounts import cell, name_list, number
from ultrascale.plan.model import ClusterNeeds, Figures
from ultrascale.plan.needs.report import MONEY, all_figures

# Longer lists of names end with the number of further names.
_NAMES = 8


def remarks(needs: ClusterNeeds) -> Iterator[str]:
    """Yield the remarks of a plan beside its tables."""
    for window in needs.calendar:
        if window.note is not None:
            yield f"{window.pool}: {window.note}."
    for subnets in needs.subnets:
        if subnets.holds_skew is False:
            yield (
                f"{subnets.zone}: does not hold all nodes that may launch in its {subnets.kind} "
                f"subnets, as pools of several zones may all at once: "
                f"{subnets.figures['nodes_of_skew'].formula}. Nodes beyond that find no address."
            )
    if needs.queues is not None:
        yield (
            "Queues: a queue gets its guaranteed nodes back when it waits for them; at most are "
            "those with all that others leave idle."
        )
    if needs.services:
        yield (
            "Services: dollars are of whole nodes, idle or not; a million tokens cost that much "
            "while all replicas are fully used, and twice as much while they are half used."
        )
    yield from (line for part in needs.parts for line in part.remarks)
    yield from _remarks_on_money(needs)
    if needs.control_plane.advice is not None:
        yield f"Control plane: {needs.control_plane.advice}."
    leases = needs.control_plane.figures["leases_per_second"]
    yield f"Kubelets write {cell(leases, places=1)} leases a second: {leases.formula}."
    yield from (f"{line}." for line in needs.remarks)
    yield from (
        f"{row.name}: {row.advice}." for row in needs.load if row.state == "ask" and row.advice
    )
    yield from _remarks_on_launch(needs.launch)


def unpriced(needs: ClusterNeeds) -> Iterator[str]:
    """Yield the pools without a price, each with the reason."""
    reasons: dict[str, list[str]] = {}
    for pool in needs.pools:
        if pool.figures[MONEY[0]].value is None:
            reasons.setdefault(pool.figures[MONEY[0]].formula, []).append(pool.pool)
    for why, names in reasons.items():
        yield f"{name_list(names, _NAMES)}: no price: {why}."


def _remarks_on_money(needs: ClusterNeeds) -> Iterator[str]:
    yield from unpriced(needs)
    yield f"{needs.money.half[0].upper()}{needs.money.half[1:]}."
    money = needs.money
    if money.unpriced:
        count = len(money.unpriced)
        counted = "1 thing beside nodes has" if count == 1 else f"{count} things beside nodes have"
        yield f"{counted} no price: {name_list(money.unpriced, _NAMES)}."
    if needs.answer.money.command is not None:
        yield f"Prices that are missing: {needs.answer.money.command}, then --prices prices.csv."


def _remarks_on_launch(launch: Figures) -> Iterator[str]:
    wanted, most = launch["coredns_replicas"], launch["coredns_replicas_most"]
    if wanted.value is not None and most.value is not None:
        yield (
            f"CoreDNS: EKS would take {cell(wanted, places=0)} replicas ({wanted.formula}), and "
            f"may take {cell(most, places=0)}."
        )
    minutes, measured = launch["run_instances_minutes"], launch["measured_minutes"]
    if minutes.value:
        text = cell(minutes, places=0)
        yield f"Launching all nodes takes about {text} minutes: {minutes.formula}."
        text = cell(measured, places=1)
        yield f"{text} minutes instead, for which to open a support case: {measured.formula}."


def explained(needs: ClusterNeeds) -> Iterator[str]:
    """Yield each number with its formula and sources, and the sources of the prices."""
    for figure in all_figures(needs):
        value = "unknown"
        if figure.value is not None:
            value = number(figure.value, places=2 if abs(figure.value) >= 1 else 4)
        yield f"{figure.id} = {value} {figure.unit}".rstrip() + f": {figure.formula}"
        yield from (f"    {page}" for page in figure.sources)
    yield from (f"assumed: {each}" for each in needs.money.assumptions)
