"""`ultrascale facts`: list the facts that a cluster file rests on, with their age and expiry."""

import json
import re
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultrascale.cli import options
from ultrascale.cli.options import PriceFileOption, price_list
from ultrascale.cli.output import say
from ultrascale.errors import UsageError
from ultrascale.frozen import to_document

if TYPE_CHECKING:
    from ultrascale.plan.facts import Fact

EXPIRED = 3
_DAYS = re.compile(r"[0-9]{1,4}d")


def facts_command(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="The cluster file; without it, all of the catalog."),
    ] = None,
    expired: Annotated[
        bool, typer.Option("--expired", help="List only those that have expired, or do so soon.")
    ] = False,
    within: Annotated[
        str,
        typer.Option(metavar="DAYS", help="Count what expires within these days, such as 30d."),
    ] = "0d",
    at: options.FactsAt = None,
    as_json: options.AsJson = False,
    prices: PriceFileOption = None,
) -> None:
    """List the facts that a cluster file rests on: value, source, age, expiry, and their users.

    Prices, images, charts, add-ons, AMI releases, limits and pages age. Templates do not depend on
    the day: the same file gives the same bytes. Ends with status 3 if a fact that the file uses has
    expired, or does so within the days of --within.
    """
    if _DAYS.fullmatch(within) is None:
        raise UsageError([f"--within: no days, got {within!r}; write them as 30d"])
    from ultrascale import plan
    from ultrascale.plan import facts
    from ultrascale.plan.needs.calendar import read_time

    day = (options.now() if at is None else read_time(at)).date()
    until = day + timedelta(days=int(within[:-1]))
    if file is None:
        listed = facts.all_facts()
    else:
        cluster = plan.load(file)
        listed = facts.facts_of(cluster, price_list(prices, cluster.region))
    old = [fact for fact in listed if fact.has_expired(until)]
    shown = old if expired else listed
    if as_json:
        rows = [
            {
                **to_document(fact),
                "age_days": (day - fact.seen).days,
                "expired": fact.has_expired(day),
            }
            for fact in shown
        ]
        document = {"at": day, "facts": rows, "count": len(listed), "expired_count": len(old)}
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False, default=str))
    else:
        _print(shown, day)
        soon = "" if until == day else f" or do so by {until}"
        say(f"{len(old)} of {len(listed)} facts have expired{soon}")
    if old and file is not None:
        raise typer.Exit(EXPIRED)


def _print(facts: "Sequence[Fact]", day: date) -> None:
    from rich.box import SIMPLE

    from ultrascale.cli.screen import Table, screen

    table = Table("kind", "fact", "value", "age", "expires", "used by", "source", box=SIMPLE)
    for fact in facts:
        age, first, *others = f"{(day - fact.seen).days} d", *(fact.used_by or ("",))
        users = f"{first} and {len(others)} more" if others else first
        expires = f"{fact.expires}{' (over)' if fact.has_expired(day) else ''}"
        table.add_row(fact.kind, fact.name, fact.value, age, expires, users, fact.source)
    if facts:
        screen().print(table)
