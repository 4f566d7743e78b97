"""`ultrascale ledger`: show who used the paid hours of accelerators, why others stood idle."""

import csv
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from importlib.resources import files
from itertools import groupby
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
_INTERVAL = "{:,.0f} ({:,.0f} to {:,.0f})"
# Columns of a line beside its key.
_PRICED = ("cost_center", "node_hours", "usd", "basis")


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
    if bills and any(at % _HOUR for at in period):
        raise UsageError(["--reconcile: the bill has whole hours; name them by --from and --until"])
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
        for shape in held.shapes:
            typer.echo(shape)
    else:
        _print(result, held, by, "csv" if as_csv else "json" if as_json else "table")
        verdict = () if held is None else _bill_notes(held, tolerance)
        for note in (*(() if as_json else _notes(result)), *verdict):
            say(note, err=as_csv or as_json)
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
        words = f"{option}: no time, got {text!r}; write it as {example}"
        raise UsageError([words]) from None


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

    # Readers of a bucket may be of another account.
    owner = cluster.account if source is None else None

    def account_of() -> Account:
        return connect_to_owner(cluster.region, owner, profile)

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

    ids = {
        pool.reservation.id or f"RESERVATION-OF-{pool.pool}": None
        for pool in cluster.pools
        if pool.reservation
    }
    costs = filter(None, terms("item", "net" if net else "use").values())
    text = files("ultrascale.ledger").joinpath("setup.txt").read_text(encoding="utf-8")
    return Template(text).substitute(
        cluster=cluster.name,
        columns=", ".join(dict.fromkeys((*terms("column"), *costs))),
        reservations="\n    OR ".join(f"{ARN} LIKE '%{name}'" for name in ids) or "FALSE",
    )


# --- Output ---------------------------------------------------------------------------------------


def _hours(line: "Line | Group") -> float:
    return round(float(line.node_seconds) / _HOUR, 4)


def _print(
    result: "Showback",
    held: "Reconciled | None",
    by: str,
    form: Literal["csv", "json", "table"],
) -> None:
    from rich.box import SIMPLE

    from ultrascale.cli.screen import Table, screen
    from ultrascale.ledger.price import Key, dollars, group_by
    from ultrascale.ledger.showback import groupings

    if form == "csv":
        rows = csv.DictWriter(sys.stdout, [*Key._fields, *_PRICED], lineterminator="\n")
        rows.writeheader()
        rows.writerows(_rows(result))
        return
    groups = group_by(result.lines, groupings(result.centers)[by])
    if form == "json":
        document = {"by": by, **_document(result, held, groups)}
        typer.echo(json.dumps(document, indent=2, default=str))
        return
    table = Table(by, box=SIMPLE)
    for name in ("node-hours", "USD", "estimate", "share"):
        table.add_column(name, justify="right")
    for name, group in groups.items():
        share = f"{100 * group.total / result.cents:.1f} %" if result.cents else ""
        amounts = dollars(group.cents), dollars(group.estimate)
        table.add_row(name, f"{_hours(group):,.1f}", *amounts, share)
    screen().print(table)


def _notes(result: "Showback") -> Iterator[str]:
    """Yield the sums of a period, what was not measured, and prices."""
    from ultrascale.ledger.price import dollars
    from ultrascale.ledger.showback import price_words

    first, last = (
        f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}" for at in (result.starts, result.ends)
    )
    estimates = sum(line.cents or 0 for line in result.lines if line.basis == "estimate")
    note = f", of which {dollars(estimates)} are estimates" if estimates else ""
    yield f"{first} to {last} UTC: sum {dollars(result.cents)}{note}"
    for paid in result.prepaid:
        fee = dollars(paid.before + paid.within + paid.after)
        within = f"{dollars(paid.within)} = {fee} - {dollars(paid.before)} - {dollars(paid.after)}"
        yield f"{paid.reservation}: {within}: fee, used before, carried out"
    shares = f"{100 * result.unmeasured_hours:.2f} % of the node-hours"
    shares += f", {100 * result.unmeasured:.2f} % of the time"
    yield f"measured every {result.every} s; not measured: {shares}"
    if result.missing_days:
        yield f"days without a file: {', '.join(_spans(result.missing_days))}"
    yield from price_words(result)


def _spans(days: Iterable[date]) -> Iterator[str]:
    """Yield days, those that follow each other as one span."""
    for _, group in groupby(enumerate(days), lambda pair: pair[1].toordinal() - pair[0]):
        span = [day for _, day in group]
        yield f"{span[0]} to {span[-1]}" if len(span) > 1 else str(span[0])


def _print_outlooks(outlooks: "Sequence[Outlook]", *, as_json: bool) -> None:
    from rich.box import SIMPLE

    from ultrascale.cli.screen import Table, screen
    from ultrascale.frozen import to_document

    if as_json:
        typer.echo(json.dumps([to_document(pool) for pool in outlooks], indent=2))
        return
    table = Table("pool", box=SIMPLE)
    for name in ("node-hours", "USD", "unused (80 % interval)", "USD (80 % interval)", "error"):
        table.add_column(name, justify="right")
    for pool in outlooks:
        words = [
            _INTERVAL.format(*amounts) if amounts else "" for amounts in (pool.unused, pool.usd)
        ]
        error = "under 2 weeks of use" if pool.error is None else f"{100 * pool.error:.1f} %"
        cost = "" if pool.cost is None else f"{pool.cost:,.0f}"
        table.add_row(pool.pool, f"{pool.node_hours:,.0f}", cost, *words, error)
    screen().print(table)
    for pool in outlooks:
        for way in pool.ways:
            words = "; ".join(way[key] for key in ("note", "price") if way[key])
            say(f"{pool.pool}: {way['way']}: {way['allowed']}: {words}")
            say("\n".join(f"    {way[key]}" for key in ("command", "source") if way[key]))


def _bill_notes(held: "Reconciled", tolerance: float) -> Iterator[str]:
    for difference in held.differences:
        note = "" if difference.counts else " (does not count)"
        yield f"bill less ledger {difference.usd:,.2f}: {difference.name}{note}"
    yield from held.remarks
    word = "beyond" if held.share * 100 > tolerance else "within"
    yield f"the bill differs by {100 * held.share:.2f} %, {word} the tolerance of {tolerance:g} %"


def _rows(result: "Showback") -> Iterator[dict[str, object]]:
    for line in result.lines:
        usd = None if line.cents is None else f"{line.cents / 100:.2f}"
        center = result.centers.get(line.key.queue) or result.centers.get(line.key.team, "")
        cells = center, _hours(line), usd, line.basis
        yield {**line.key._asdict(), **dict(zip(_PRICED, cells, strict=True))}


def _document(
    result: "Showback", held: "Reconciled | None", groups: "Mapping[str, Group]"
) -> Mapping[str, object]:
    from ultrascale.ledger.showback import price_words

    differences = [] if held is None else [item._asdict() for item in held.differences]
    edges = result.starts, result.ends
    return {
        "cluster": result.cluster,
        "period": [datetime.fromtimestamp(edge, UTC).isoformat() for edge in edges],
        "every_seconds": result.every,
        "unmeasured_share": result.unmeasured,
        "unmeasured_hours_share": result.unmeasured_hours,
        "missing_days": result.missing_days,
        "cents": result.cents,
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
        "prices": [*price_words(result)],
        "bill": held and {"share": held.share, "differences": differences, "remarks": held.remarks},
    }
