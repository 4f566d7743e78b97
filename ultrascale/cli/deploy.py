"""`ultrascale deploy`: everything that can be known is looked at before `cdk deploy` runs."""

import os
import shlex
import sys
import tempfile
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from ultrascale.cdk_cli import find_cdk_cli
from ultrascale.cli.change_views import text_lines
from ultrascale.cli.check import check_file
from ultrascale.cli.deploy_views import (
    Progress,
    interrupted,
    print_failure,
    print_left,
    print_money,
    print_outcomes,
)
from ultrascale.cli.diff import PROTECTED
from ultrascale.cli.needs import BEYOND
from ultrascale.cli.needs_words import beyond
from ultrascale.cli.preflight import FAILED, context_of, look
from ultrascale.deploy.assembly import read_assembly, refuse_other
from ultrascale.deploy.cause import Cause, Events, Left
from ultrascale.deploy.cdk import CdkDeploy, DeployCommand
from ultrascale.deploy.credentials import refuse_two_sources
from ultrascale.deploy.order import waits_for
from ultrascale.deploy.run import Outcome, run_stacks
from ultrascale.errors import ConfigError, UltrascaleError, UnansweredError

if TYPE_CHECKING:
    from ultrascale.preflight.model import Context

STACK_FAILED = 4
"""Exit status where a stack failed."""
INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""

# How old may be what somebody agrees to: a question may be left open over night.
_LONGEST_THOUGHT = timedelta(minutes=30)
# The user's settings of the CDK CLI, in the home folder.
# Source: https://docs.aws.amazon.com/cdk/v2/guide/cli.html
_SETTINGS = ".cdk.json"


def deploy_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The cluster file.")],
    *,
    profile: Annotated[
        str | None, typer.Option(help="Profile of the AWS CLI's configuration to deploy with.")
    ] = None,
    permitted: Annotated[
        list[str] | None,
        typer.Option(
            "--replace", metavar="NAME", help="What is protected and may be lost; repeatable."
        ),
    ] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, max=16, help="How many stacks are deployed at once.")
    ] = 4,
    assembly: Annotated[
        Path | None, typer.Option(help="Folder that `cdk synth` wrote of this very file.")
    ] = None,
    import_existing: Annotated[
        bool,
        typer.Option(
            "--import-existing-resources", help="Take over what an earlier deployment left."
        ),
    ] = False,
    allow_unknown: Annotated[
        bool, typer.Option("--allow-unknown", help="What preflight could not ask is no failure.")
    ] = False,
    skip_preflight: Annotated[
        bool, typer.Option("--skip-preflight", help="Leave out what `ultrascale preflight` asks.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Stop before the first `cdk deploy`, and print each.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Deploy without asking.")] = False,
) -> None:
    """Check, plan, preflight, synthesize, compare, ask, then `cdk deploy` stack by stack.

    Ends with status 1 where the file or an option is wrong or nobody agrees, with 2 beyond what AWS
    publishes that it grants, with 3 where preflight fails or something protected would be lost,
    with 4 where a stack failed, and with 130 after Ctrl-C.
    """
    if not (yes or dry_run or sys.stdin.isatty()):
        raise UltrascaleError("deploy asks before it deploys; without a terminal add --yes")
    cdk = find_cdk_cli()
    refuse_two_sources(os.environ, profile, (Path.home() / _SETTINGS, cdk.project / "cdk.json"))
    check_file(file)
    text = file.read_bytes()
    context = replace(context_of(file, datetime.now(UTC), profile), imports=import_existing)
    _refuse_account(file, context)
    _refuse_beyond(file, context)
    if skip_preflight:
        typer.echo("preflight is skipped: what the account lacks shows when stacks fail", err=True)
    elif status := look(context, as_json=False, allow_unknown=allow_unknown):
        _stop(file, status)
    with _assembly(file, assembly) as folder:
        command = DeployCommand(
            cdk=cdk, assembly=folder, profile=profile, import_existing=import_existing
        )
        if file.read_bytes() != text:
            raise UltrascaleError(f"{file}: was changed meanwhile; run the command again")
        order = _order(context, folder)
        _refuse_stacks(file, context, allow_unknown=allow_unknown)
        _compare(file, context, folder, permitted or ())
        print_money(context.plan, context.needs)
        if dry_run:
            _print_commands(file, command, order, synthesized=assembly is None)
            return
        if not yes:
            _ask(file, context, len(order))
        status = _deploy(file, context, command, order, concurrency)
    if status:
        raise typer.Exit(status)


def _stop(file: Path, status: int) -> NoReturn:
    typer.echo(f"{file}: nothing was deployed", err=True)
    raise typer.Exit(status)


def _refuse_account(file: Path, context: "Context") -> None:
    wanted, has = context.plan.account, context.account.id
    if wanted not in (None, has):
        raise ConfigError(
            [
                f"{file}: account: the credentials are of account {has}, got {wanted}; name a "
                "profile of that account by --profile, or change it"
            ]
        )


def _refuse_beyond(file: Path, context: "Context") -> None:
    found = [*beyond(context.needs)]
    for line in found:
        typer.echo(f"{file}: {line}", err=True)
    if found:
        _stop(file, BEYOND)


@contextmanager
def _assembly(file: Path, given: Path | None) -> Generator[Path]:
    """Give an assembly that nobody else writes to: what is shown is what is deployed."""
    if given is not None:
        yield given.resolve()
        return
    from ultrascale import guard

    with tempfile.TemporaryDirectory(prefix="ultrascale-deploy-") as folder:
        typer.echo(f"synthesizing {file}", err=True)
        guard.synthesize(file, Path(folder))
        yield Path(folder, "cdk.out")


def _order(context: "Context", folder: Path) -> Mapping[str, frozenset[str]]:
    stacks = read_assembly(folder)
    refuse_other(stacks, context.plan, account=context.account.id, folder=folder)
    return waits_for(stacks, context.plan)


def _refuse_stacks(file: Path, context: "Context", *, allow_unknown: bool) -> None:
    """Stop before a stack that cannot be deployed to, whatever was skipped.

    Of one that was rolled back when it was new, the CDK would delete what is left, and ask nobody.
    """
    from ultrascale.preflight.stacks import STACKS

    stops = {"fail"} if allow_unknown else {"fail", "unknown"}
    found = [each for each in STACKS.run(context) if each.state in stops]
    for each in found:
        typer.echo(f"{file}: {each.subject}: {each.evidence}; {each.fix}", err=True)
    if found:
        _stop(file, FAILED)


def _compare(file: Path, context: "Context", folder: Path, permitted: Sequence[str]) -> None:
    """Print what would be replaced, deleted or rolled; stop where nobody permitted the loss."""
    from ultrascale import guard

    new = guard.read_assembly(folder)
    changes = guard.compare_deployed(context.account, context.plan, new).permit(*permitted)
    for line in text_lines(changes):
        typer.echo(line)
    if not changes.is_safe:
        _stop(file, PROTECTED)


def _ask(file: Path, context: "Context", stacks: int) -> None:
    where = f"{context.plan.name} in {context.plan.region}, account {context.account.id}"
    if not typer.confirm(f"deploy {stacks} stacks of {where}?"):
        _stop(file, 1)
    if datetime.now(UTC) - context.at > _LONGEST_THOUGHT:
        # Windows may have ended meanwhile, and others may have deployed.
        raise UltrascaleError(
            f"{file}: what was shown is of {context.at:%Y-%m-%d %H:%M} UTC; run the command again"
        )


def _print_commands(
    file: Path, command: DeployCommand, order: Iterable[str], *, synthesized: bool
) -> None:
    elsewhere = Path.cwd() != command.cdk.project
    if elsewhere:
        typer.echo(shlex.join(("cd", str(command.cdk.project))))
    if synthesized:
        # Ours goes with this process; this is the folder that `make synth` writes.
        named = file.resolve() if elsewhere else file
        typer.echo(f"make synth CLUSTER={shlex.quote(str(named))}")
        command = replace(command, assembly=Path("cdk.out"))
    for stack in order:
        typer.echo(command.by_hand(stack))


def _deploy(
    file: Path,
    context: "Context",
    command: DeployCommand,
    order: Mapping[str, frozenset[str]],
    concurrency: int,
) -> int:
    """Deploy the stacks, print what becomes of them, and return the exit status."""
    events = Events(context.account)

    def launch(stack: str) -> CdkDeploy:
        events.mark(stack)
        return command.start(stack)

    outcomes = run_stacks(order, launch, Progress(len(order)), concurrency=concurrency)
    words = {"file": str(file), "cluster": context.plan.name, "region": context.plan.region}
    for outcome in outcomes:
        _tell(outcome, events, words)
    print_outcomes(outcomes)
    left = [outcome.stack for outcome in outcomes if outcome.state == "interrupted"]
    for stack in left:
        typer.echo(interrupted(stack, context.plan.region), err=True)
    return _status(outcomes)


def _status(outcomes: Sequence[Outcome]) -> int:
    # Nothing that failed keeps these from being begun or ended.
    if any(each.state == "interrupted" for each in outcomes) or any(
        each.state == "not started" and not each.waited_for for each in outcomes
    ):
        return INTERRUPTED
    return STACK_FAILED if any(each.state == "failed" for each in outcomes) else 0


def _tell(outcome: Outcome, events: Events, words: Mapping[str, str]) -> None:
    """Print why a stack failed, and what was taken out of it and is still there."""
    failed = outcome.state == "failed"
    cause: Cause | None = None
    left: Sequence[Left] = ()
    unanswered = None
    try:
        if failed:
            cause = events.first_cause(outcome.stack, words)
        # What is new and was made has left nothing.
        if failed or (outcome.state == "deployed" and events.was_there(outcome.stack)):
            left = events.left(outcome.stack)
    except UnansweredError as error:
        unanswered = str(error)
    if failed:
        print_failure(outcome, cause, unanswered, words)
    elif unanswered is not None:
        typer.echo(f"{outcome.stack}: what it left behind is not known: {unanswered}", err=True)
    print_left(outcome.stack, left)
