"""`ultrascale ledger`: show who used the paid hours of accelerators, why others stood idle."""

import csv
import json
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from msgspec.structs import replace

from ultrascale.cli import options
from ultrascale.cli.options import PriceFileOption, price_list
from ultrascale.cli.output import FAILED, say
from ultrascale.errors import UsageError

if TYPE_CHECKING:
    from ultrascale.ledger.ahead import Outlook
    from ultrascale.ledger.price import Group, Line
    from ultrascale.ledger.reconcile import Reconciled
    from ultrascale.ledger.showback import Ledger, Showback
    from ultrascale.plan import ClusterPlan

By = Literal["team", "queue", "job", "pool", "node-type", "reservation", "reason", "cost-center"]
Source = Annotated[
    str | None,
    typer.Option(
        "--source",
        metavar="DIR|s3://…",
        help="The ledger's folder or bucket; by default its bucket.",
    ),
]
_HOUR = 3600


def ledger_command(
    file: options.DeployedFile,
    by: Annotated[By, typer.Option(help="Grouping of the lines.")] = "team",
    month: Annotated[
        str | None, typer.Option(metavar="YYYY-MM", help="Month; by default that of yesterday.")
    ] = None,
    starts: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="First day or time, in UTC.")
    ] = None,
    ends: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="End; by default today's start.")
    ] = None,
    source: Source = None,
    prices: PriceFileOption = None,
    bills: Annotated[
        list[Path] | None,
        typer.Option("--reconcile", metavar="CUR.csv[.gz]", help="AWS's bill; repeatable."),
    ] = None,
    net: Annotated[
        bool, typer.Option("--net", help="Take the bill's costs after discounts.")
    ] = False,
    tolerance: Annotated[
        float, typer.Option(metavar="PERCENT", help="Difference that the bill may have.")
    ] = 0.5,
    redact: Annotated[
        bool, typer.Option("--redact", help="Print what has no match, without ids and amounts.")
    ] = False,
    setup: Annotated[
        bool,
        typer.Option("--setup", help="Print export, queries and tags for the bill; ask nothing."),
    ] = False,
    ahead: Annotated[
        int | None,
        typer.Option(
            "--ahead", metavar="DAYS", min=1, max=182, help="Show reserved hours that lie ahead."
        ),
    ] = None,
    as_json: options.AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print one row a finest line.")] = False,
    profile: options.AskingProfile = None,
) -> None:
    """Show who used the paid hours of accelerators, why others stood idle, and their cost.

    Ends with status 3 if a bill differs from the ledger by more than the tolerance.
    """
    from ultrascale import plan
    from ultrascale.ledger.ahead import look_ahead
    from ultrascale.ledger.bill import read_bill
    from ultrascale.ledger.reconcile import Uses, reconcile

    cluster = plan.load(file)
    if setup:
        typer.echo(_setup(cluster, net=net))
        return
    if ahead is not None:
        ledger = open_ledger(file, cluster, source, prices, profile)
        now = int(options.now().timestamp())
        _print_outlooks([*look_ahead(ledger, str(file), now, ahead)], as_json=as_json)
        return
    period = read_period(month, starts, ends, options.now())
    if redact and not bills:
        raise UsageError(["--redact: needs --reconcile CUR.csv, whose lines it prints"])
    uses = Uses({pool.pool for pool in cluster.pools if not pool.facts.in_account})
    ledger = open_ledger(file, cluster, source, prices, profile)
    result = ledger.showback(*period, uses.add if bills else None)
    held = None
    if bills:
        kinds = {name for pool in cluster.pools if pool.accelerator for name in pool.instance_types}
        kinds |= {name.removeprefix("ml.") for name in result.sizes}
        held = reconcile(result, uses, read_bill(bills, cluster.name, kinds, net=net))
        result = replace(result, lines=held.lines)
    if redact and held is not None:
        typer.echo("\n".join(held.shapes))
    elif as_csv:
        _print_csv(result)
    elif as_json:
        typer.echo(json.dumps(_document(result, held, by), indent=2, default=str))
    else:
        _print(result, by)
        if held is not None:
            _print_bill(held, tolerance)
    if held is not None and held.share * 100 > tolerance:
        raise typer.Exit(FAILED)


def read_period(
    month: str | None, starts: str | None, ends: str | None, now: datetime
) -> tuple[int, int]:
    """Return the period that options name, in seconds since the epoch; it ends before today.

    Raises:
        UsageError: An option is no month or time, or the period is empty or to come.
    """
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if starts is None and ends is None:
        named = month or f"{today - timedelta(days=1):%Y-%m}"
        first = _time("--month", named, "2027-01", "%Y-%m")
        last = (first + timedelta(days=31)).replace(day=1)
    elif month is not None or starts is None:
        raise UsageError(["--until: needs --from, and neither goes with --month"])
    else:
        first, last = _time("--from", starts), today if ends is None else _time("--until", ends)
    # Open intervals end at midnight.
    last = min(last, today)
    if first >= last:
        raise UsageError(
            [f"the period from {first:%Y-%m-%d} is to come, or empty: it ends at {today:%Y-%m-%d}"]
        )
    return int(first.timestamp()), int(last.timestamp())


def _time(option: str, text: str, example: str = "2027-01-15T11:30Z", form: str = "") -> datetime:
    try:
        time = datetime.strptime(text, form) if form else datetime.fromisoformat(text)
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        wrong = f"{option}: no time, got {text!r}; write it as {example}"
        raise UsageError([wrong]) from None


def open_ledger(
    file: Path, cluster: "ClusterPlan", source: str | None, prices: Path | None, profile: str | None
) -> "Ledger":
    """Return the ledger of a cluster in a folder or bucket, by default that of its stack.

    Raises:
        UsageError: The stack has no ledger.
        UnansweredError: AWS does not tell its outputs.
    """
    from ultrascale import config
    from ultrascale.account import Account, bucket_of_stack, connect_to_owner
    from ultrascale.catalog.prices import catalog_prices
    from ultrascale.ledger.showback import Ledger, centers_of, fees_of
    from ultrascale.plan.stacks import stack_of

    def account_of() -> Account:
        return connect_to_owner(cluster.region, cluster.account, profile)

    if source is None:
        stack = stack_of(cluster.name, "observability")
        if (name := bucket_of_stack(account_of(), stack, "ledger")) is None:
            todo = "write observability.ledger and deploy, or name the ledger's folder"
            raise UsageError([f"--source: stack {stack} has no bucket of a ledger; {todo}"])
        source = f"s3://{name}/ledger"
    known = price_list(prices, cluster.region) or catalog_prices()
    stated = config.read(file).cluster
    assert stated is not None
    return Ledger(cluster, source, account_of, known, fees_of(stated), centers_of(stated), {})


def _setup(cluster: "ClusterPlan", *, net: bool) -> str:
    from ultrascale.ledger.bill import ARN, terms

    ids = [
        pool.reservation.id for pool in cluster.pools if pool.reservation and pool.reservation.id
    ]
    costs = terms("item", "net" if net else "use").values()
    text = files("ultrascale.ledger").joinpath("setup.txt").read_text(encoding="utf-8")
    return Template(text).substitute(
        cluster=cluster.name,
        columns=", ".join(dict.fromkeys((*terms("column"), *costs))),
        reservations="\n    OR ".join(f"{ARN} LIKE '%{name}'" for name in dict.fromkeys(ids))
        or "FALSE",
    )


# --- Output ---------------------------------------------------------------------------------------


def _hours(line: "Line | Group") -> float:
    return round(float(line.node_seconds) / _HOUR, 4)


def _print(result: "Showback", by: str) -> None:
    from rich.box import SIMPLE

    from ultrascale.cli.screen import Table, screen
    from ultrascale.ledger.price import dollars, grouped

    table = Table(by, box=SIMPLE)
    for name in ("node-hours", "USD", "estimate", "share"):
        table.add_column(name, justify="right")
    groups = grouped(result.lines, result.groupings[by])
    for name, group in groups.items():
        share = f"{100 * group.total / result.cents:.1f} %" if result.cents else ""
        amounts = dollars(group.cents), dollars(group.estimate)
        table.add_row(name, f"{_hours(group):,.1f}", *amounts, share)
    screen().print(table)
    first, last = (
        f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}" for at in (result.starts, result.ends)
    )
    estimates = sum(group.estimate or 0 for group in groups.values())
    note = f", of which {dollars(estimates)} are estimates" if estimates else ""
    say(f"{first} to {last} UTC: sum {dollars(result.cents)}{note}")
    for paid in result.prepaid:
        fee = dollars(paid.before + paid.within + paid.after)
        within = f"{dollars(paid.within)} = {fee} - {dollars(paid.before)} - {dollars(paid.after)}"
        say(f"{paid.reservation}: {within}: fee, used before, carried out")
    say(f"measured every {result.every} s; not measured {100 * result.unmeasured:.2f} %")
    if result.missing_days:
        say(f"days without a file: {', '.join(map(str, result.missing_days))}")
    say("\n".join(result.prices))


def _print_outlooks(outlooks: "Sequence[Outlook]", *, as_json: bool) -> None:
    from rich.box import SIMPLE

    from ultrascale.cli.screen import Table, screen
    from ultrascale.frozen import to_document

    if as_json:
        typer.echo(json.dumps([to_document(pool) for pool in outlooks], indent=2))
        return
    table = Table("pool", box=SIMPLE)
    for name in ("node-hours", "unused (80 % interval)", "USD (80 % interval)", "error"):
        table.add_column(name, justify="right")
    for pool in outlooks:
        words = [_interval(amounts) for amounts in (pool.unused, pool.usd)]
        error = f"{100 * pool.error:.1f} %" if pool.unused else "under 2 weeks of use"
        table.add_row(pool.pool, f"{pool.node_hours:,.0f}", *words, error)
    screen().print(table)
    for pool in outlooks:
        for way in pool.ways:
            words = way["note"] if way["allowed"] != "yes" else f"{way['note']}; {way['price']}"
            say(f"{pool.pool}: {way['way']}: {way['allowed']}: {words}")
            say("\n".join(f"    {way[key]}" for key in ("command", "source") if way[key]))


def _interval(amounts: Sequence[float]) -> str:
    return "{:,.0f} ({:,.0f} to {:,.0f})".format(*amounts) if amounts else ""


def _print_bill(held: "Reconciled", tolerance: float) -> None:
    for each in held.differences:
        note = "" if each.counts else " (does not count)"
        say(f"bill less ledger {each.usd:,.2f}: {each.name}{note}")
    word = "beyond" if held.share * 100 > tolerance else "within"
    say("\n".join(held.remarks))
    say(f"the bill differs by {100 * held.share:.2f} %, {word} the tolerance of {tolerance:g} %")


def _rows(result: "Showback") -> Iterator[dict[str, object]]:
    for line in result.lines:
        usd = None if line.cents is None else f"{line.cents / 100:.2f}"
        center = result.centers.get(line.key.queue) or result.centers.get(line.key.team, "")
        own = {"cost_center": center, "node_hours": _hours(line), "usd": usd, "basis": line.basis}
        yield {**line.key._asdict(), **own}


def _print_csv(result: "Showback") -> None:
    rows = [*_rows(result)]
    writer = csv.DictWriter(sys.stdout, [*rows[0]] if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def _document(result: "Showback", held: "Reconciled | None", by: str) -> dict[str, object]:
    from ultrascale.ledger.price import grouped

    groups = grouped(result.lines, result.groupings[by])
    bill = None
    if held is not None:
        differences = [each._asdict() for each in held.differences]
        bill = {"share": held.share, "differences": differences, "remarks": held.remarks}
    return {
        "cluster": result.cluster,
        "period": [
            datetime.fromtimestamp(at, UTC).isoformat() for at in (result.starts, result.ends)
        ],
        "every_seconds": result.every,
        "unmeasured_share": result.unmeasured,
        "missing_days": result.missing_days,
        "cents": result.cents,
        "by": by,
        "groups": [
            {
                "name": name,
                "node_hours": _hours(group),
                "cents": group.cents,
                "estimate_cents": group.estimate,
            }
            for name, group in groups.items()
        ],
        "lines": [*_rows(result)],
        "prepaid_cents": [paid._asdict() for paid in result.prepaid],
        "prices": result.prices,
        "bill": bill,
    }
