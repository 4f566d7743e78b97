"""`ultrascale plan`: show what a cluster file needs of AWS."""

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultrascale.cli import complete, options
from ultrascale.cli.options import PriceFileOption, price_list
from ultrascale.cli.output import BEYOND, print_lines, say
from ultrascale.cli.table_names import PARTS, TABLES
from ultrascale.documents import Json, JsonObject
from ultrascale.errors import UsageError
from ultrascale.frozen import to_document

if TYPE_CHECKING:
    from ultrascale.plan.model import ClusterNeeds, PartNeeds, WindowNeeds


_Tables = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TABLE",
        autocompletion=complete.tables,
        help=f"Tables to print: {', '.join(TABLES)}.",
    ),
]


def plan_command(
    file: options.ClusterFile,
    tables: _Tables = None,
    every_table: Annotated[bool, typer.Option("--all", help="Print every table.")] = False,
    at: options.At = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print all needs as JSON, or the needs of the named tables."),
    ] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print in Markdown.")] = False,
    prices: PriceFileOption = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print the formula of each number, and the sources.")
    ] = False,
) -> None:
    """Show what a cluster file needs: nodes, addresses, quotas, time and money. Asks no account.

    Begins with the verdict: whether the cluster fits, quotas to raise, price, next window and
    largest risk. Ends with status 2 if a need exceeds the limit that AWS publishes, or the load of
    the control plane exceeds all published loads; with 1 if a window is over at the time of --at,
    by default now.
    """
    _refuse_options(tables or (), as_json=as_json, as_markdown=as_markdown, every=every_table)
    from rich.box import MARKDOWN, SIMPLE

    from ultrascale import plan
    from ultrascale.cli.needs_views import answer_lines, print_needs
    from ultrascale.plan.needs.calendar import plan_calendar, read_time
    from ultrascale.plan.needs.load import beyond_published
    from ultrascale.plan.needs.quotas import beyond_limits
    from ultrascale.plan.needs.report import plan_needs

    moment = None if at is None else read_time(at)
    cluster = plan.load(file)
    now = moment or options.now()
    needs = plan_needs(cluster, moment, price_list(prices, cluster.region), now=now)
    if as_json and tables:
        shown_parts = (part for part in needs.parts if part.name in tables)
        typer.echo(json.dumps([each for part in shown_parts for each in part.answers], indent=2))
    elif as_json:
        document = _document(needs)
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False, default=_time_text))
    else:
        lines = answer_lines(needs, file)
        print_lines(("```text", *lines, "```", "") if as_markdown else lines)
        shown = TABLES if every_table else tables or ()
        print_needs(needs, MARKDOWN if as_markdown else SIMPLE, shown, explain=explain)
    for line in (*beyond_limits(needs), *beyond_published(needs.load)):
        say(f"{file}: {line}", err=True)
    _refuse_what_is_over(file, plan_calendar(cluster.all_pools, now), now)
    if any(need.state == "beyond" for need in (*needs.quotas, *needs.load, needs.control_plane)):
        raise typer.Exit(BEYOND)


def _refuse_options(
    tables: Sequence[str], *, as_json: bool, as_markdown: bool, every: bool
) -> None:
    wrong: list[str] = []
    if as_json and as_markdown:
        wrong.append("--markdown: --json prints no tables; leave one of them out")
    # Reason: a security team receives these statements.
    others = [name for name in tables if name not in PARTS]
    if as_json and (every or others):
        told = others[0] if others else "--all"
        parts = " or ".join(PARTS)
        wrong.append(f"{told}: --json prints everything, or the table {parts} alone; leave it out")
    for name in tables:
        if name not in TABLES:
            known = ", ".join(TABLES)
            wrong.append(f"TABLE: no table of that name, got {name!r}; write one of: {known}")
    if wrong:
        raise UsageError(wrong)


def _document(needs: "ClusterNeeds") -> JsonObject:
    """Return needs in the form of the JSON; each part's needs are under its name."""
    document: JsonObject = {}
    for key, value in to_document(needs).items():
        if key != "parts":
            document[key] = value
            continue
        for part in sorted(needs.parts, key=lambda part: part.name):
            document[part.name] = _needs_of(part)
    return document


def _needs_of(part: "PartNeeds") -> Json:
    if isinstance(part.needs, tuple):
        return [to_document(need) for need in part.needs]
    return None if part.needs is None else to_document(part.needs)


def _time_text(value: object) -> str:
    """Return a time or a day as text, as JSON has no type for it."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(type(value).__name__)


def _refuse_what_is_over(file: Path, calendar: "Sequence[WindowNeeds]", at: datetime) -> None:
    if not any(window.state == "over" for window in calendar):
        return
    from ultrascale import config
    from ultrascale.plan.needs.calendar import window_mistakes

    reading = config.read(file)
    if reading.cluster is not None:
        raise reading.refusal(window_mistakes(reading.cluster, calendar, at))
