"""`ultrascale plan`: what a cluster file needs of AWS, before any of it is paid for."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.box import MARKDOWN, SIMPLE, Box
from rich.console import Console
from rich.table import Table

from ultrascale import plan
from ultrascale.plan.model import ClusterNeeds, Figure, QuotaNeed
from ultrascale.plan.needs import MONEY, plan_needs

BEYOND = 2
"""Exit status where no limit that AWS publishes allows the cluster."""

_WIDTH = 160
_COLUMNS = {
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


def plan_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The cluster file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print tables for a page or a review.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print the sum of each number and its sources.")
    ] = False,
) -> None:
    """Say what a cluster file needs: nodes, addresses, quotas and money, with no account.

    Ends with status 2 where it needs more than AWS publishes that it grants.
    """
    needs = plan_needs(plan.load(file))
    if as_json:
        typer.echo(json.dumps(asdict(needs), indent=2, ensure_ascii=False))
    else:
        _print(needs, MARKDOWN if as_markdown else SIMPLE, explain=explain)
    beyond = [need for need in needs.quotas if need.state == "beyond"]
    for need in beyond:
        typer.echo(f"{file}: {_told(need)}", err=True)
    if beyond:
        raise typer.Exit(BEYOND)


def _print(needs: ClusterNeeds, box: Box, *, explain: bool) -> None:
    console = Console(width=max(Console().width, _WIDTH), highlight=False, markup=False)
    console.print(f"{needs.name} in {needs.region}")
    console.print(_pools(needs, box))
    console.print(_quotas(needs.quotas, box))
    for line in (*_remarks(needs), *_LEGEND):
        console.print(line, soft_wrap=True)
    if explain:
        console.print()
        for line in _explained(needs):
            console.print(line, soft_wrap=True)


def _pools(needs: ClusterNeeds, box: Box) -> Table:
    table = Table("pool", box=box)
    for title in _COLUMNS.values():
        table.add_column(title, justify="right")
    for pool in needs.pools:
        table.add_row(pool.pool, *(_cell(key, pool.figures[key]) for key in _COLUMNS))
    table.add_row("total", *(_cell(key, needs.totals[key]) for key in _COLUMNS))
    return table


def _cell(key: str, figure: Figure) -> str:
    if figure.value is None:
        return "unknown"
    text = _number(figure.value, places=2 if key == MONEY[0] else 0)
    return f"over {text}" if figure.without else text


def _quotas(needs: Sequence[QuotaNeed], box: Box) -> Table:
    table = Table("quota", "name", box=box)
    for title in ("needed", "default", "at most"):
        table.add_column(title, justify="right")
    table.add_column("")
    for need in needs:
        value = need.needed.value
        table.add_row(
            need.code or "",
            need.name,
            "unknown" if value is None else _number(value, places=1),
            "" if need.default is None else _number(need.default, places=0),
            "" if need.most is None else _number(need.most, places=0),
            _state(need),
        )
    return table


def _state(need: QuotaNeed) -> str:
    if need.state == "agreed" and need.agreed is not None:
        return f"agreed: {_number(need.agreed.value, places=0)}, {need.agreed.reference}"
    return _STATES[need.state]


def _remarks(needs: ClusterNeeds) -> Iterator[str]:
    for pool in needs.pools:
        if pool.usable_hours is not None and pool.usable_hours.value is not None:
            hours = _number(pool.usable_hours.value, places=1)
            yield f"{pool.pool}: {hours} usable hours: {pool.usable_hours.formula}."
    for key in MONEY[:1]:
        for name in needs.totals[key].without:
            (why,) = [pool.figures[key].formula for pool in needs.pools if pool.pool == name]
            yield f"{name}: no price: {why}."
    bound, leases = needs.totals["binding_seconds"], needs.totals["leases_per_second"]
    if bound.value is not None and leases.value is not None:
        seconds = _number(bound.value, places=1)
        yield f"A pod on each node is scheduled within {seconds} seconds at best: {bound.formula}."
        writes = _number(leases.value, places=1)
        yield f"Kubelets write {writes} leases a second: {leases.formula}."
    minutes = needs.totals["launch_minutes"]
    if minutes.value:
        text = _number(minutes.value, places=0)
        yield f"Launching all nodes takes {text} minutes at least: {minutes.formula}."


def _explained(needs: ClusterNeeds) -> Iterator[str]:
    figures: list[Figure] = []
    for pool in needs.pools:
        figures += pool.figures.values()
        figures += [pool.usable_hours] if pool.usable_hours is not None else []
    figures += [*needs.totals.values(), *(need.needed for need in needs.quotas)]
    for figure in figures:
        value = "unknown" if figure.value is None else _number(figure.value, places=2)
        yield f"{figure.id} = {value} {figure.unit}".rstrip() + f": {figure.formula}"
        yield from (f"    {page}" for page in figure.sources)


def _told(need: QuotaNeed) -> str:
    needed = _number(need.needed.value or 0, places=0)
    agreed = f", of which {need.agreed.value:,} are agreed" if need.agreed is not None else ""
    return (
        f"{need.name} ({need.code}): {needed} needed{agreed}, and AWS publishes {need.most:,} as "
        "the most that it grants; ask your account team for more in writing, or use fewer nodes "
        "or network interfaces in one VPC, or several clusters"
    )


def _number(value: float, *, places: int) -> str:
    """Return a number as a reader wants it: no places where there is nothing in them."""
    rounded = round(value, places)
    if rounded == int(rounded):
        return f"{int(rounded):,}"
    return f"{rounded:,.{places}f}"
