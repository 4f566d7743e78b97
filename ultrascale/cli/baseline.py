"""`ultrascale baseline`: the nodes to buy ahead, from a trace of jobs."""

import json
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

import typer

from ultrascale.catalog.prices import catalog_prices
from ultrascale.cli import complete, options
from ultrascale.cli.advise import time_text
from ultrascale.cli.ledger import Source, open_ledger
from ultrascale.cli.options import PriceFileOption, price_list
from ultrascale.cli.output import FAILED, say
from ultrascale.errors import UsageError
from ultrascale.frozen import to_document
from ultrascale.lambdas.ledger import DAY
from ultrascale.plan.advice import REQUIRED, Given, read_question
from ultrascale.plan.baseline import baseline, render
from ultrascale.plan.baseline.traces import Trace, formats, read_traces

_Option = typer.Option
_DAYS = 364  # Of a ledger


def _zone(text: str) -> ZoneInfo:
    try:
        return ZoneInfo(text)
    except (LookupError, OSError, ValueError):
        raise typer.BadParameter(f"no time zone, got {text!r}; write UTC") from None


def baseline_command(
    *,
    traces: Annotated[
        list[Path] | None, typer.Argument(metavar="TRACE", help="Traces of one fleet.")
    ] = None,
    from_ledger: Annotated[
        Path | None, _Option(metavar="FILE", help="Take jobs of this cluster's ledger instead.")
    ] = None,
    source: Source = None,
    profile: options.AskingProfile = None,
    kind: Annotated[str, _Option("--type", autocompletion=complete.instance_types, help="Type.")],
    region: Annotated[str, _Option(autocompletion=complete.regions, help="AWS Region.")],
    form: Annotated[str | None, _Option("--format", help="By default by the header.")] = None,
    timezone: Annotated[
        ZoneInfo | None,
        _Option(metavar="ZONE", parser=_zone, help="Zone of times without an offset."),
    ] = None,
    workload: Annotated[str, _Option(help=REQUIRED["workload"] + ".")] = "pre-training",
    zone: Annotated[list[str] | None, _Option(help=f"{REQUIRED['zone']}; repeatable.")] = None,
    days: Annotated[int, _Option(help="Days of a Capacity Block.")] = 28,
    block_price: Annotated[
        float | None, _Option(metavar="USD", min=0.01, help="Of a node-hour of a block.")
    ] = None,
    spot_loss: Annotated[
        float, _Option(metavar="PERCENT", min=0, max=100, help="Work that Spot loses.")
    ] = 10,
    at: options.At = None,
    prices: PriceFileOption = None,
    as_json: options.AllAsJson = False,
    cluster_file: options.AsClusterFile = False,
) -> None:
    """Tell how many nodes to buy ahead, from a trace of jobs. Needs no account but for a ledger.

    Ends with status 3 if the trace carries no answer.
    """
    given = Given(
        at=at or options.now(),
        workload=workload,
        type=(kind,),
        nodes=1,
        region=region,
        zone=zone or (f"{region}a",),
        days=str(days),
    )
    question = read_question(given)
    if form not in (None, *formats()):
        raise UsageError(
            [f"--format: no format, got {form!r}; write one of {', '.join(formats())}"]
        )
    if (from_ledger is None) != bool(traces):
        raise UsageError(["TRACE: give traces of jobs, or --from-ledger FILE"])
    if from_ledger is not None:
        trace = _trace(from_ledger, source, profile, kind)
    else:
        trace = read_traces(traces or [], form, timezone)
    known = price_list(prices, region) or catalog_prices()
    answer = baseline(trace, question, known, block_price, spot_loss / 100)
    if as_json:
        document = to_document(answer)
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False, default=time_text))
    elif cluster_file and answer.cluster_file:
        typer.echo(answer.cluster_file, nl=False)
    else:
        say(render(answer))
        typer.echo(answer.fragment, nl=False)
    if answer.no_answer:
        say(f"no answer: {answer.no_answer}", err=True)
        raise typer.Exit(FAILED)


def _trace(file: Path, source: str | None, profile: str | None, kind: str) -> Trace:
    """Return the jobs of the last year of a cluster's ledger."""
    from ultrascale import plan
    from ultrascale.ledger.trace import trace_of

    ends = int(options.now().timestamp()) // DAY * DAY
    ledger = open_ledger(file, plan.load(file), source, None, profile)
    trace = trace_of(ledger, ends - _DAYS * DAY, ends, kind)
    if not trace.jobs:
        raise UsageError(["--from-ledger: no job with accelerators ran in the last year"])
    return trace
