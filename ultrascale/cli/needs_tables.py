"""What a cluster needs, as tables and remarks that a person reads."""

from collections.abc import Iterator, Sequence

from rich.box import MARKDOWN, Box
from rich.console import Console
from rich.table import Table

from ultrascale.cli.needs_words import cell, explained, number, remarks
from ultrascale.plan.model import (
    ClusterNeeds,
    ControlPlaneNeeds,
    Figure,
    Figures,
    MoneyNeeds,
    PoolNeeds,
    QuotaNeed,
    SubnetNeeds,
    WindowNeeds,
)
from ultrascale.plan.needs.quota_advice import beyond_limits
from ultrascale.plan.needs.report import MONEY

_WIDTH = 160
# A row of Markdown is one line, whatever its width.
_MARKDOWN_WIDTH = 1_000
_POOLS = {
    "nodes": "nodes",
    "vcpus": "vCPUs",
    "accelerators": "accelerators",
    "neuron_cores": "NeuronCores",
    "efa_interfaces": "EFA",
    "network_interfaces": "interfaces",
    "address_usage": "NAU",
    "usd_per_hour": "USD/hour",
    "usd_per_month": "USD/month",
}
_SUBNETS = {
    "addresses": "addresses",
    "addresses_needed": "needed",
    "prefixes": "/28 prefixes",
    "prefixes_needed": "needed",
    "full": "% full",
    "nodes": "nodes",
    "nodes_most": "at most",
    "pods": "pods",
    "nodes_of_skew": "all here",
}
_CONTROL_PLANE = (
    ("pods_per_second", "tier_pods_per_second", "pods scheduled a second, one for each node"),
    ("write_seats", "tier_api_seats", "API seats, of writes alone"),
    ("database", "tier_database", "GB stored, one pod of a job on each node"),
    ("database_most", "tier_database", "GB stored, every node full of pods"),
)
_LAUNCH = {
    "run_instances_minutes": ("minutes", "RunInstances, as throttled by default"),
    "binding_seconds": ("seconds", "a pod for each node is scheduled"),
    "image_pull_seconds": ("seconds", "ECR answers for one image on each node"),
    "minutes_to_first_step": ("minutes", "to the first step, one after the other"),
}
_STATES = {
    "within": "the default holds it",
    "ask": "ask for more",
    "beyond": "more than AWS publishes",
    "unknown": "look it up",
}
_LEGEND = (
    "At full size. NAU: Network Address Usage. Money: EC2 On-Demand, nodes alone.",
    "--explain prints the sum and the sources of each number.",
)


def print_needs(needs: ClusterNeeds, box: Box, *, explain: bool) -> None:
    """Print ``needs`` to the terminal, as tables with borders of ``box``."""
    width = _MARKDOWN_WIDTH if box is MARKDOWN else max(Console().width, _WIDTH)
    console = Console(width=width, highlight=False, markup=False, emoji=False)
    at = "" if needs.at is None else f" at {needs.at:%Y-%m-%d %H:%M} UTC"
    heading = "## " if box is MARKDOWN else ""
    console.print(f"{heading}{needs.name} in {needs.region}{at}")
    console.print(_pools(needs, box))
    console.print(_quotas(needs.quotas, box))
    console.print(_subnets(needs.subnets, box))
    console.print(_control_plane(needs.control_plane, box))
    console.print(_launch(needs.launch, box))
    if needs.calendar:
        console.print(_calendar(needs.calendar, box))
    console.print(_money(needs.money, needs.pools, box))
    for line in (*_told(needs, box), *_LEGEND):
        console.print(f"- {line}" if box is MARKDOWN else line, soft_wrap=True)
    if explain:
        console.print()
        # As code: what Markdown makes of the lines is not what they say.
        lines = explained(needs)
        for line in ("```text", *lines, "```") if box is MARKDOWN else lines:
            console.print(line, soft_wrap=True)


def _told(needs: ClusterNeeds, box: Box) -> Iterator[str]:
    # Who reads a page does not see the errors of the command.
    if box is MARKDOWN:
        yield from (f"{line}." for line in beyond_limits(needs))
    yield from remarks(needs)


def _table(box: Box, first: str, *titles: str, numbers: Sequence[str] = ()) -> Table:
    """Return a table whose rows go by their first cell: where it is wide, others are wrapped."""
    table = Table(box=box)
    table.add_column(first, no_wrap=True)
    for title in titles:
        table.add_column(title)
    for title in numbers:
        table.add_column(title, justify="right")
    return table


def _pools(needs: ClusterNeeds, box: Box) -> Table:
    table = _table(box, "pool", numbers=[*_POOLS.values()])
    for pool in needs.pools:
        table.add_row(pool.pool, *(_money_or_count(key, pool.figures[key]) for key in _POOLS))
    table.add_row("total", *(_money_or_count(key, needs.totals[key]) for key in _POOLS))
    return table


def _money_or_count(key: str, figure: Figure) -> str:
    return cell(figure, places=2 if key == MONEY[0] else 0)


def _quotas(needs: Sequence[QuotaNeed], box: Box) -> Table:
    table = _table(box, "quota", "name", numbers=("needed", "default", "at most"))
    table.add_column("")
    for need in needs:
        table.add_row(
            need.code or "",
            need.name,
            cell(need.needed, places=1),
            "" if need.default is None else number(need.default, places=0),
            "" if need.most is None else number(need.most, places=0),
            _plain(_state(need), box),
        )
    return table


def _state(need: QuotaNeed) -> str:
    if need.agreed is None:
        return _STATES[need.state]
    agreed = f"agreed: {number(need.agreed.value, places=0)}, {need.agreed.reference}"
    return agreed if need.state == "agreed" else f"{_STATES[need.state]}; {agreed}"


def _plain(text: str, box: Box) -> str:
    """Return what a user wrote as one line, of which Markdown makes one cell."""
    line = " ".join(text.split())
    return line.replace("|", "\\|") if box is MARKDOWN else line


def _subnets(needs: Sequence[SubnetNeeds], box: Box) -> Table:
    table = _table(box, "subnets", "zone", "ranges", numbers=[*_SUBNETS.values()])
    table.add_column("")
    for each in needs:
        ranges = ", ".join(f"{count} x {mask}" for mask, count in each.ranges.items())
        cells = (cell(each.figures.get(key), places=1 if key == "full" else 0) for key in _SUBNETS)
        skew = {None: "", True: "held", False: "too many"}
        table.add_row(each.kind, each.zone, ranges, *cells, skew[each.holds_skew])
    return table


def _control_plane(needs: ControlPlaneNeeds, box: Box) -> Table:
    table = _table(box, "control plane", numbers=("needed", needs.tier))
    for key, limit, title in _CONTROL_PLANE:
        own = needs.figures[limit]
        has = "not fixed" if own.value is None else cell(own, places=0)
        table.add_row(title, cell(needs.figures[key], places=2), has)
    return table


def _launch(figures: Figures, box: Box) -> Table:
    table = _table(box, "launch of all nodes", numbers=("at best",))
    table.add_column("")
    for key, (unit, title) in _LAUNCH.items():
        table.add_row(title, cell(figures[key], places=1), unit)
    return table


def _calendar(windows: Sequence[WindowNeeds], box: Box) -> Table:
    times = ("starts (UTC)", "drained", "ends")
    table = _table(box, "window", "of", *times, numbers=("usable hours", "drain min"))
    table.add_column("")
    for window in windows:
        moments = (window.starts, window.usable_until, window.ends)
        table.add_row(
            window.pool,
            window.purchase,
            *(f"{moment:%Y-%m-%d %H:%M}" for moment in moments),
            cell(window.figures["usable_hours"], places=1),
            cell(window.figures["drain_minutes"], places=0),
            _window_state(window),
        )
    return table


def _window_state(window: WindowNeeds) -> str:
    ahead, left = window.figures.get("hours_ahead"), window.figures.get("hours_left")
    if ahead is not None:
        return f"starts in {cell(ahead, places=1)} hours"
    if left is not None:
        return f"running, {cell(left, places=1)} usable hours left"
    return window.state or ""


def _money(money: MoneyNeeds, pools: Sequence[PoolNeeds], box: Box) -> Table:
    table = _table(box, "pool", "bought as", numbers=("On-Demand USD/h", "as bought USD/h"))
    table.add_column("costs less than On-Demand where")
    for each, pool in zip(money.pools, pools, strict=True):
        own = cell(pool.figures[MONEY[0]], places=2)
        table.add_row(
            each.pool,
            each.purchase,
            cell(each.figures["on_demand_usd_per_hour"], places=2),
            f"at most {own}" if each.purchase == "spot" and own != "unknown" else own,
            each.holds_when,
        )
    table.add_row("total", "", cell(money.figures["on_demand_usd_per_hour"], places=2), "", "")
    return table
