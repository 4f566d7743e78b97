"""`ultrascale accept`: hold a deployed cluster against its file."""

import json
import secrets
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from ultrascale.cli import ask, complete, options
from ultrascale.cli.output import FAILED, say
from ultrascale.errors import QuestionError
from ultrascale.progress import progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ultrascale.accept.model import Acceptance, Check, Level, Run
    from ultrascale.catalog.prices import PriceList


class LevelName(StrEnum):
    """A level of checks, or all of them."""

    OBJECTS = "objects"
    NODES = "nodes"
    STORAGE = "storage"
    QUEUE = "queue"
    FABRIC = "fabric"
    SERVING = "serving"
    ALARMS = "alarms"
    ALL = "all"


_Levels = Annotated[
    list[LevelName] | None,
    typer.Option("--level", help="Level of checks, with those it needs; repeatable."),
]
_Pool = Annotated[
    str,
    typer.Option(autocompletion=complete.pools, help="Of checks of pools, those of this pool."),
]
_Anyway = Annotated[
    bool,
    typer.Option("--anyway", help="Go on if the deployed templates are not those of the file."),
]
_Budget = Annotated[
    float | None,
    typer.Option(min=0, metavar="USD", help="Most that the nodes of the checks may cost."),
]
_Grow = Annotated[
    bool, typer.Option("--grow", help="Add a node to pools without one, within the budget.")
]
_Clean = Annotated[
    str | None,
    typer.Option(metavar="RUN", help="Delete what is left of a run that was killed, and stop."),
]
_Record = Annotated[
    bool, typer.Option("--record", help="Write measured sizes of nodes into the facts of FILE.")
]
_Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="DIR", help="New folder for the evidence of the run."),
]
_Verify = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Check evidence and whether it is of this file, and stop."),
]
_Names = Annotated[
    bool, typer.Option("--names", help="Keep names of cluster and accounts in the evidence.")
]


def accept(
    file: options.DeployedFile,
    *,
    level: _Levels = None,
    pool: _Pool = "",
    budget: _Budget = None,
    prices: options.PriceFileOption = None,
    grow: _Grow = False,
    clean: _Clean = None,
    record: _Record = False,
    output: _Output = None,
    names: _Names = False,
    verify: _Verify = None,
    anyway: _Anyway = False,
    yes: options.NoQuestion = False,
    as_json: options.AllAsJson = False,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    profile: options.AskingProfile = None,
) -> None:
    """Hold a deployed cluster against its file. Level objects changes nothing, and costs nothing.

    AWS is asked too if the kubeconfig names an EKS cluster, or with --profile.
    Ends with status 3 if something differs, failed or was not run, with 1 if there is no cluster or
    no right, and with 130 after Ctrl-C. --verify ends with 3 if evidence was changed, or is of
    another file.
    """
    from ultrascale.accept import levels as table
    from ultrascale.accept.bundle import answers_of, documents_of, refuse_output, write_bundle
    from ultrascale.cli.findings_views import OF_ACCEPT, counts

    if verify is not None:
        _verify(file, verify)
        return
    if output is not None:
        refuse_output(output)
    chosen: Sequence[Level] = [*table.with_needs(_levels(level))]
    with TemporaryDirectory(prefix="ultrascale-accept-") as folder:
        run = _begin(
            file, Path(folder), kubeconfig, context, profile, anyway=anyway or clean is not None
        )
        if pool and pool not in {each.pool for each in run.plan.all_pools}:
            raise QuestionError([f"--pool: the file has no such pool, got {pool}"])
        if clean is not None:
            _clean_up(replace(run, id=clean))
            return
        run = replace(run, grows=grow)
        checks = table.checks(run.plan, chosen, pool, grows=grow)
        checks = _agree(run, checks, options.price_list(prices, run.plan.region), budget, yes=yes)
        documents = {} if output is None else documents_of(run)
        acceptance = _run(run, checks, chosen)
        if as_json:
            findings = [outcome.finding for outcome in acceptance.outcomes]
            told = {"status": _status(acceptance), "counts": counts(findings, OF_ACCEPT)}
            document = {**answers_of(run, acceptance), **told}
            typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
        else:
            _print(run, acceptance)
        if record:
            from ultrascale.record import record_facts

            # Before the evidence, which holds the file as it is from then on.
            for line in record_facts(file, acceptance.kept.facts, run.at.date()):
                say(f"{file}: recorded {line}", err=True)
        if output is not None:
            write_bundle(output, run, acceptance, documents, names=names)
            say(f"wrote {output}", err=True)
    if status := _status(acceptance):
        raise typer.Exit(status)


def _verify(file: Path, folder: Path) -> None:
    from ultrascale import guard
    from ultrascale.accept.bundle import faults, input_hashes

    with TemporaryDirectory(prefix="ultrascale-accept-") as made:
        guard.synthesize(file, Path(made))
        today = input_hashes(file, Path(made) / "cdk.out", Path(made) / "dist")
        if wrong := [*faults(folder, today)]:
            for line in wrong:
                say(f"{folder}: {line}", err=True)
            raise typer.Exit(FAILED)
    say(f"{folder}: evidence as it was written, of {file} as it is")


def _levels(names: list[LevelName] | None) -> "Sequence[Level]":
    from ultrascale.accept.model import NEEDS

    chosen = {name.value for name in names or [LevelName.OBJECTS]}
    return [level for level in NEEDS if level in chosen or LevelName.ALL.value in chosen]


def _begin(
    file: Path,
    folder: Path,
    kubeconfig: Path | None,
    context: str | None,
    profile: str | None,
    *,
    anyway: bool,
) -> "Run":
    """Return the input of all checks, with the file synthesized into ``folder``."""
    from ultrascale import guard, plan
    from ultrascale.accept.deployed import differing_stacks
    from ultrascale.accept.model import Run

    cluster = plan.load(file)
    api = ask.connected(file, kubeconfig, context)
    account = None
    if profile is not None or api.arn is not None:
        account = ask.owner(cluster, profile, api)
    else:
        say("AWS is not asked: the kubeconfig names no EKS cluster; --profile asks it", err=True)
    at = options.now()
    templates = guard.synthesize(file, folder)
    if account is not None and (others := differing_stacks(account, cluster, templates, at)):
        differs = f"the deployed templates are not those of the file: {others}"
        if not anyway:
            todo = "deploy the file, take the one that is deployed, or add --anyway"
            raise QuestionError([f"{file}: {differs}; {todo}"])
        say(f"{file}: {differs}", err=True)
    return Run(
        id=f"{at:%Y%m%d%H%M%S}{secrets.token_hex(2)}",
        file=file,
        plan=cluster,
        cluster=api,
        at=at,
        manifests=folder / "dist",
        assembly=folder / "cdk.out",
        account=account,
        say=lambda line: say(line, err=True),
    )


def _agree(
    run: "Run",
    checks: "Sequence[Check]",
    prices: "PriceList | None",
    budget: float | None,
    *,
    yes: bool,
) -> "Sequence[Check]":
    """Show what the checks cost, ask the user to agree, and return those that have the time."""
    from ultrascale.accept import budget as money
    from ultrascale.catalog.prices import catalog_prices

    timed = [*money.in_time(checks, run.plan, run.at)]
    priced = money.with_prices(timed, run.plan, prices or catalog_prices())
    for line in money.cost_lines(priced):
        say(line, err=True)
    money.refuse_beyond(priced, budget)
    if any(check.costs or check.leaves for check in priced):
        ask.confirm(f"run {len(priced)} checks in {run.plan.name}, as run {run.id}?", yes=yes)
    return priced


def _clean_up(run: "Run") -> None:
    from ultrascale.accept import jobs

    if left := jobs.clean(run):
        for line in left:
            say(f"left behind: {line}")
        raise typer.Exit(FAILED)
    say(f"nothing is left of run {run.id}")


def _run(run: "Run", checks: "Sequence[Check]", names: "Sequence[Level]") -> "Acceptance":
    from ultrascale.accept.run import accept

    with progress(f"accepting {run.plan.name}") as step:

        def show(check: "Check") -> None:
            step.say(f"{check.level}: {check.title}")

        return accept(run, checks, names, progress=show)


def _status(acceptance: "Acceptance") -> int:
    return acceptance.stopped or (0 if acceptance.has_passed else FAILED)


def _print(run: "Run", acceptance: "Acceptance") -> None:
    from ultrascale.cli.findings_views import OF_ACCEPT, print_findings

    levels = ", ".join(acceptance.levels)
    say(f"{run.plan.name} in {run.plan.region}, server {acceptance.versions['server']}: {levels}")
    print_findings([outcome.finding for outcome in acceptance.outcomes], OF_ACCEPT)
    for line in acceptance.left:
        say(f"left behind: {line}")
