"""What a cluster needs, in words: of what there are no tables, and how each number comes about."""

from collections.abc import Iterator, Sequence

from ultrascale.plan.model import ClusterNeeds, Figure, Figures
from ultrascale.plan.needs.report import MONEY, all_figures

# More names than these are counted.
_NAMES = 8


def number(value: float, *, places: int) -> str:
    """Return a number as a reader wants it: no places where there is nothing in them."""
    rounded = round(value, places)
    if rounded == int(rounded):
        return f"{int(rounded):,}"
    return f"{rounded:,.{places}f}"


def cell(figure: Figure | None, *, places: int) -> str:
    """Return a number as a table shows it, and that it is not known, or not all of it."""
    if figure is None:
        return ""
    if figure.value is None:
        return "unknown"
    text = number(figure.value, places=places)
    if not figure.without:
        return text
    return "unknown" if text == "0" else f"over {text}"


def remarks(needs: ClusterNeeds) -> Iterator[str]:
    """Yield what is to be known of a plan beside its tables."""
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
    yield from _remarks_on_money(needs)
    if needs.control_plane.advice is not None:
        yield f"Control plane: {needs.control_plane.advice}."
    leases = needs.control_plane.figures["leases_per_second"]
    yield f"Kubelets write {cell(leases, places=1)} leases a second: {leases.formula}."
    yield from _remarks_on_launch(needs.launch)


def unpriced(needs: ClusterNeeds) -> Iterator[str]:
    """Yield which pools have no price, and why."""
    reasons: dict[str, list[str]] = {}
    for pool in needs.pools:
        if pool.figures[MONEY[0]].value is None:
            reasons.setdefault(pool.figures[MONEY[0]].formula, []).append(pool.pool)
    for why, names in reasons.items():
        yield f"{_listed(names)}: no price: {why}."


def _remarks_on_money(needs: ClusterNeeds) -> Iterator[str]:
    yield from unpriced(needs)
    yield f"{needs.money.half[0].upper()}{needs.money.half[1:]}."
    for key in ("cluster_usd_per_hour", "tier_usd_per_hour"):
        fee = needs.money.figures[key]
        if fee.value:
            yield f"EKS: {cell(fee, places=2)} USD/hour for {fee.formula}."
    if fee.value is None:
        yield f"EKS: the fees of a cluster and its tier are unknown: {fee.formula}."


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
    """Yield each number with its sum and its sources, and what the money rests on."""
    for figure in all_figures(needs):
        value = "unknown"
        if figure.value is not None:
            value = number(figure.value, places=2 if abs(figure.value) >= 1 else 4)
        yield f"{figure.id} = {value} {figure.unit}".rstrip() + f": {figure.formula}"
        yield from (f"    {page}" for page in figure.sources)
    yield from (f"assumed: {each}" for each in needs.money.assumptions)


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMES
    return ", ".join(names[:_NAMES]) + (f" and {more} more" if more > 0 else "")
