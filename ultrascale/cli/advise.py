"""`ultrascale advise`: recommend a way to buy capacity."""

import json
import math
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer
from msgspec.structs import replace
from rich.box import SIMPLE

from ultrascale.catalog import eks, matrix
from ultrascale.catalog.provisioners import PROVISIONERS
from ultrascale.cli import complete, options
from ultrascale.cli.options import PriceFileOption, price_list
from ultrascale.cli.output import say
from ultrascale.cli.screen import Table, screen
from ultrascale.frozen import to_document
from ultrascale.plan.advice import (
    REQUIRED,
    Advice,
    Cost,
    Given,
    Judged,
    Reason,
    Step,
    advise,
    read_question,
)
from ultrascale.plan.advice.held import FORM
from ultrascale.plan.advice.model import COMMITMENTS, IMAGES, TOLERANCES

NOTHING = 2
"""Exit status if no way to buy the capacity is allowed."""

_LISTS = ("type", "zone")
_LEGEND = "H: a filter, P: a place in the order of preference; docs/advise.md explains both."


_Types = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        autocompletion=complete.instance_types,
        help=f"{REQUIRED['type']}; repeatable.",
    ),
]
_Region = Annotated[
    str | None, typer.Option(autocompletion=complete.regions, help=REQUIRED["region"] + ".")
]
_HorizonDays = Annotated[
    float | None, typer.Option(help="Expected length of steady work, in days.")
]
_Tolerance = Annotated[
    str | None,
    typer.Option(
        help=f"Tolerance of interruptions: {', '.join(TOLERANCES)}; by default the work's."
    ),
]
_Coupled = Annotated[
    bool | None,
    typer.Option("--coupled/--not-coupled", help="Whether the nodes exchange data over EFA."),
]
_Utilisation = Annotated[
    float, typer.Option(metavar="PERCENT", help="Share of the time with work.")
]
_Commitment = Annotated[
    str, typer.Option(help=f"Term that you would sign: {', '.join(COMMITMENTS)}.")
]
_Provisioner = Annotated[str | None, typer.Option(help=f"Preferred: {', '.join(PROVISIONERS)}.")]
_OutsideAccount = Annotated[
    bool, typer.Option("--hyperpod/--no-hyperpod", help="Whether HyperPod may be used.")
]
_PlacementGroup = Annotated[
    bool, typer.Option("--placement-group", help="Use a cluster placement group.")
]
_CustomKubelet = Annotated[
    bool, typer.Option("--custom-kubelet", help="Use kubelet settings of your own.")
]
_EfaLustre = Annotated[bool, typer.Option("--efa-lustre", help="Use FSx for Lustre over EFA.")]
_Held = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE,...", help=f"Paid for already: {FORM}; repeatable."),
]
_Budget = Annotated[
    float | None,
    typer.Option(metavar="USD", help="Whole budget; for steady work, the budget of a month."),
]
_At = Annotated[
    str | None, typer.Option(metavar="TIME", help="Time of the advice; by default now.")
]
_Explain = Annotated[
    bool, typer.Option("--explain", help="Print every candidate with its reasons.")
]


def advise_command(
    *,
    workload: Annotated[str | None, typer.Option(help=REQUIRED["workload"] + ".")] = None,
    instance_type: _Types = None,
    nodes: Annotated[int | None, typer.Option(help=REQUIRED["nodes"] + ".")] = None,
    region: _Region = None,
    zone: Annotated[list[str] | None, typer.Option(help=f"{REQUIRED['zone']}; repeatable.")] = None,
    days: Annotated[str | None, typer.Option(help=REQUIRED["days"] + ".")] = None,
    starts: Annotated[str | None, typer.Option(help="Earliest start; by default now.")] = None,
    until: Annotated[str | None, typer.Option(help="Latest start; by default any.")] = None,
    horizon_days: _HorizonDays = None,
    tolerance: _Tolerance = None,
    coupled: _Coupled = None,
    utilisation: _Utilisation = 100,
    commitment: _Commitment = "none",
    provisioner: _Provisioner = None,
    outside_account: _OutsideAccount = True,
    kubernetes: Annotated[str, typer.Option(help="Kubernetes version.")] = eks.DEFAULT_VERSION,
    placement_group: _PlacementGroup = False,
    image: Annotated[str, typer.Option(help=f"Of the nodes: {', '.join(IMAGES)}.")] = "any",
    custom_kubelet: _CustomKubelet = False,
    efa_lustre: _EfaLustre = False,
    held: _Held = None,
    budget: _Budget = None,
    at: _At = None,
    prices: PriceFileOption = None,
    as_json: options.AllAsJson = False,
    cluster_file: options.AsClusterFile = False,
    explain: _Explain = False,
) -> None:
    """Recommend a way to buy capacity, with its pools for a cluster file. Needs no account.

    Asks for missing answers in a terminal. Ends with status 2 if no candidate is allowed.
    """
    given = Given(
        at=at or datetime.now(UTC),
        workload=workload,
        type=instance_type or (),
        nodes=nodes,
        region=region,
        zone=zone or (),
        days=days,
        starts=starts,
        until=until,
        horizon_days=horizon_days,
        tolerance=tolerance,
        coupled=coupled,
        utilisation=utilisation,
        commitment=commitment,
        provisioner=provisioner,
        outside_account=outside_account,
        kubernetes=kubernetes,
        placement_group=placement_group,
        image=image,
        custom_kubelet=custom_kubelet,
        efa_lustre=efa_lustre,
        held=held or (),
        budget=budget,
    )
    known = price_list(prices, region)
    answer = advise(
        read_question(_completed_answers(given) if sys.stdin.isatty() else given), known
    )
    if as_json:
        typer.echo(json.dumps(to_document(answer), indent=2, ensure_ascii=False, default=time_text))
    elif cluster_file and answer.choice is not None:
        typer.echo(answer.cluster_file, nl=False)
    else:
        _print(answer, explain=explain or answer.choice is None)
    if answer.choice is None:
        say("nothing fits: no way to buy that capacity is legal", err=True)
        raise typer.Exit(NOTHING)


def _completed_answers(given: Given) -> Given:
    for name in given.missing():
        text = REQUIRED[name]
        if name in _LISTS:
            words: str = typer.prompt(f"{text} (several with commas)", err=True)
            found = tuple(word.strip() for word in words.split(",") if word.strip())
            given = replace(given, **{name: found})
        elif name == "nodes":
            given = replace(given, nodes=typer.prompt(text, type=int, err=True))
        else:
            given = replace(given, **{name: typer.prompt(text, err=True)})
    return given


def time_text(value: object) -> str:
    """Return a time as JSON has it."""
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{value!r} has no form in JSON")


def _print(answer: Advice, *, explain: bool) -> None:
    console = screen()

    def say_all(lines: Iterator[str] | Sequence[str]) -> None:
        for line in lines:
            say(line)

    if answer.choice is not None:
        console.print(_steps(answer.steps))
        say_all(
            ["how to get it:", *_way_lines(answer.steps), "", "money:", *_money(answer.steps), ""]
        )
        say_all(["before you pay:", *(list(_warnings(answer)) or ["  nothing to warn of"]), ""])
        console.print(_quotas(answer))
        typer.echo(answer.fragment)
    say_all(["", "what else was weighed:"])
    say_all(_candidate_lines(answer.candidates) if explain else _other_candidates(answer))
    say_all(["", _LEGEND])


def _steps(steps: Sequence[Step]) -> Table:
    table = Table("", "option", "provisioner", "types", "zones", box=SIMPLE)
    for title in ("nodes", "usable hours", "USD"):
        table.add_column(title, justify="right")
    table.add_column("why")
    for number, step in enumerate(steps):
        candidate, hours = step.judged.candidate, step.usable_hours
        table.add_row(
            "then" if number else "buy",
            candidate.option,
            candidate.provisioner,
            ", ".join(candidate.instance_types),
            ", ".join(candidate.zones),
            f"{step.nodes:,}",
            "" if hours is None or hours.value is None else f"{hours.value:,.1f}",
            _range(step.cost),
            step.judged.place.code,
        )
    return table


def _range(cost: Cost) -> str:
    if cost.low is None or cost.high is None:
        return "unknown"
    if cost.low == cost.high:
        return f"{cost.high:,.0f} {cost.period}"
    return f"{cost.low:,.0f} to {cost.high:,.0f} {cost.period}"


def _way_lines(steps: Sequence[Step]) -> Iterator[str]:
    for step in steps:
        option, place = step.judged.candidate.option, step.judged.place
        yield f"  {option}: {place.code}: {place.text}"
        yield from (f"    {line}" for line in step.get)


def _money(steps: Sequence[Step]) -> Iterator[str]:
    for step in steps:
        cost = step.cost
        yield f"  {step.judged.candidate.option}: {_range(cost)}: {cost.formula}"
        yield from (f"    {page}" for page in cost.sources)


def _warnings(answer: Advice) -> Iterator[str]:
    yield from (f"  {reason.code}: {reason.text}" for reason in answer.warnings)


def _quotas(answer: Advice) -> Table:
    table = Table("quota", "name", box=SIMPLE)
    for title in ("needed", "default"):
        table.add_column(title, justify="right")
    table.add_column("unit")
    table.add_column("for choice and fallback together")
    for need in answer.quotas:
        if need.state != "within":
            value = need.needed.value
            table.add_row(
                need.code or "",
                need.name,
                "unknown" if value is None else f"{math.ceil(value):,}",
                "unknown" if need.default is None else f"{need.default:,}",
                need.needed.unit,
                need.advice or need.state,
            )
    return table


def _other_candidates(answer: Advice) -> Iterator[str]:
    """Yield the best candidate of each purchase option that the answer does not recommend."""
    taken = {step.judged.candidate.option for step in answer.steps}
    for option in matrix.PURCHASE_OPTIONS:
        of_option = [each for each in answer.candidates if each.candidate.option == option]
        # Refused candidates come last; fewer reasons come first.
        nearest = min(
            of_option, key=lambda each: (_is_never_legal(each), len(each.refused), each.rank)
        )
        if option not in taken:
            yield f"  {_candidate_line(nearest)}"


def _is_never_legal(judged: Judged) -> bool:
    """Return whether a candidate would be refused for any request."""
    return not matrix.cell(judged.candidate.provisioner, judged.candidate.option).works


def _candidate_lines(candidates: Sequence[Judged]) -> Iterator[str]:
    """Yield lines of candidates; candidates with the same reasons share a line."""
    alike: dict[tuple[str, str], list[str]] = {}
    for each in candidates:
        candidate = each.candidate
        name = f"{candidate.option} on {candidate.provisioner}"
        alike.setdefault((_where(each), _verdict(each)), []).append(name)
    for (where, verdict), names in alike.items():
        every = len(names) == len(matrix.MATRIX)
        yield f"  {'every way' if every else ', '.join(names)}, {where}: {verdict}"


def _candidate_line(judged: Judged) -> str:
    candidate = judged.candidate
    return f"{candidate.option} on {candidate.provisioner}, {_where(judged)}: {_verdict(judged)}"


def _where(judged: Judged) -> str:
    candidate = judged.candidate
    return f"{', '.join(candidate.instance_types)} in {', '.join(candidate.zones)}"


def _verdict(judged: Judged) -> str:
    reasons: Sequence[Reason] = judged.refused or (judged.place, *judged.doubts)
    said = "; ".join(f"{reason.code}: {reason.text}" for reason in reasons)
    verdict = "refused" if judged.refused else "legal"
    return f"{verdict}: {said}"
