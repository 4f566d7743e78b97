"""`ultrascale plan`: show what a cluster file needs of AWS."""

import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.box import MARKDOWN, SIMPLE

from ultrascale import config, plan
from ultrascale.cli.needs_tables import print_needs
from ultrascale.errors import UsageError
from ultrascale.plan.model import ClusterNeeds
from ultrascale.plan.needs.calendar import read_time, window_mistakes
from ultrascale.plan.needs.load import beyond_published
from ultrascale.plan.needs.quotas import beyond_limits
from ultrascale.plan.needs.report import plan_needs

BEYOND = 2
"""Exit status where no limit that AWS publishes allows the cluster."""


def plan_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The cluster file.")],
    at: Annotated[
        str | None,
        typer.Option(
            "--at", metavar="TIME", help="Time to check windows against, as 2026-12-15T00:00Z."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print tables in Markdown.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print the formula of each number and its sources.")
    ] = False,
) -> None:
    """Show what a cluster file needs: nodes, addresses, quotas, time and money. Asks no account.

    Ends with status 2 where a need exceeds the limit that AWS publishes, or a
    control plane carries more than anybody published, and with 1 where a window
    is over at the time of --at.
    """
    if as_json and as_markdown:
        raise UsageError(["--markdown: --json prints no tables; leave one of them out"])
    moment = None if at is None else read_time(at)
    needs = plan_needs(plan.load(file), moment)
    if as_json:
        typer.echo(json.dumps(asdict(needs), indent=2, ensure_ascii=False, default=_time))
    else:
        print_needs(needs, MARKDOWN if as_markdown else SIMPLE, explain=explain)
    for line in (*beyond_limits(needs), *beyond_published(needs.load)):
        typer.echo(f"{file}: {line}", err=True)
    if moment is not None:
        _refuse_what_is_over(file, needs, moment)
    if any(need.state == "beyond" for need in (*needs.quotas, *needs.load)):
        raise typer.Exit(BEYOND)


def _time(value: object) -> str:
    """Return a time as JSON has none of its own."""
    if not isinstance(value, datetime):
        raise TypeError(type(value).__name__)
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _refuse_what_is_over(file: Path, needs: ClusterNeeds, at: datetime) -> None:
    if not any(window.state == "over" for window in needs.calendar):
        return
    reading = config.read(file)
    if reading.cluster is not None:
        raise reading.refusal(window_mistakes(reading.cluster, needs.calendar, at))
