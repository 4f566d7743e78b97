"""`ultrascale destroy`: take a cluster down in an order that leaves nothing running."""

import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultrascale.cli import complete, options
from ultrascale.cli.output import INTERRUPTED, say
from ultrascale.errors import QuestionError, printable
from ultrascale.progress import progress

if TYPE_CHECKING:
    from ultrascale.teardown import Scope, Sweep, Teardown

UNFINISHED = 3
"""Exit status if a step stopped, an orphan is left, or AWS refused a request."""


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """Return the time, in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


_Confirmation = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Name of the cluster; delete without asking for it."),
]
_Storage = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        autocompletion=complete.storage,
        help="Also delete this file system, bucket or repository of the file, with all data.",
    ),
]
_Journal = Annotated[
    Path | None,
    typer.Option(help="File to record every step in; by default destroy-NAME-REGION.jsonl."),
]
_SkipKubernetes = Annotated[
    bool,
    typer.Option(
        "--skip-kubernetes",
        help="Skip Kubernetes cleanup; refused while a node of a NodePool runs.",
    ),
]


def destroy_command(
    file: options.ClusterFile,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would go and what stays; delete nothing.")
    ] = False,
    confirm: _Confirmation = None,
    delete_storage: _Storage = None,
    delete_logs: Annotated[
        bool, typer.Option("--delete-logs", help="Also delete log groups.")
    ] = False,
    journal: _Journal = None,
    profile: Annotated[
        str | None, typer.Option(help="Profile of the AWS CLI's configuration to use.")
    ] = None,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Kubeconfig that names the cluster by its ARN.")
    ] = None,
    context: options.Context = None,
    skip_kubernetes: _SkipKubernetes = False,
) -> None:
    """Take a cluster down: jobs first, the VPC last; storage stays unless it is named.

    Prints what goes and what stays, and asks for the cluster's name. An interrupted teardown
    goes on where it stopped when the command is run again. Ends with status 3 if a step stopped, if
    an orphan is left, or if AWS refused a request.
    """
    from ultrascale import account, plan, teardown

    cluster, mistakes = plan.load_to_destroy(file)
    for mistake in mistakes:
        say(f"{printable(str(mistake))} (destroy goes on)", err=True)
    asked = teardown.Asked(storage=frozenset(delete_storage or ()), logs=delete_logs)
    teardown.refuse_unknown(cluster, asked)
    _refuse_confirmation(cluster.name, confirm, dry_run=dry_run)
    owner = account.connect_to_owner(cluster.region, cluster.account, profile)
    scope = teardown.Scope(account=owner, plan=cluster)
    with progress(f"looking for what {cluster.name} has"):
        planned = teardown.survey(
            scope,
            asked,
            kubeconfig=kubeconfig,
            context=context,
            skip_kubernetes=skip_kubernetes,
        )
    _print_plan(planned)
    if dry_run:
        raise typer.Exit(_foresee(scope, planned))
    if planned.steps:
        _agree(cluster.name, confirm)
    path = journal or Path(f"destroy-{cluster.name}-{cluster.region}.jsonl")
    raise typer.Exit(_carry_out(scope, planned, path))


def _refuse_confirmation(cluster: str, confirm: str | None, *, dry_run: bool) -> None:
    """Refuse a confirmation by another cluster's name before AWS is asked.

    Raises:
        QuestionError: The name is wrong, or there is no terminal to ask in.
    """
    if confirm is not None and confirm != cluster:
        raise QuestionError(
            [f"--confirm: the cluster file names {cluster}, got {confirm!r}; confirm that name"]
        )
    if confirm is None and not dry_run and not sys.stdin.isatty():
        raise QuestionError(
            [f"--confirm: without a terminal nobody is asked; add --confirm {cluster}"]
        )


def _foresee(scope: "Scope", teardown: "Teardown") -> int:
    """Return the exit status of a dry run, after a search for orphans if no step is left."""
    from ultrascale.teardown import sweep

    if teardown.steps:
        # While the cluster runs, all of its resources would look like orphans.
        return UNFINISHED if any(step.stops for step in teardown.steps) else 0
    with progress(f"looking for what is left of {teardown.cluster}"):
        left = sweep(scope, teardown)
    _print_left(left)
    return UNFINISHED if left.orphans or left.unknown else 0


def _print_plan(teardown: "Teardown") -> None:
    from ultrascale.cli.destroy_views import plan_lines

    for line in plan_lines(teardown):
        say(line)


def _agree(cluster: str, confirm: str | None) -> None:
    if confirm is None and typer.prompt(f"Type {cluster} to delete all of this") != cluster:
        raise QuestionError(["nothing was deleted: what was typed is not the cluster's name"])


def _carry_out(scope: "Scope", planned: "Teardown", path: Path) -> int:
    """Run the steps, print what is left, and return the exit status."""
    from ultrascale import teardown

    try:
        outcome = teardown.destroy(
            scope, planned, journal=path, clock=SystemClock(), tell=typer.echo
        )
    except KeyboardInterrupt:
        say(
            "interrupted: what was asked for goes on in AWS, and what is left is paid for; run the "
            "command again: it goes on here, and --dry-run lists what is left",
            err=True,
        )
        return INTERRUPTED
    if outcome.stopped is not None:
        say(f"stopped: {outcome.stopped}", err=True)
    _print_left(outcome.left)
    if outcome.unwritten is not None:
        say(str(outcome.unwritten), err=True)
    return 0 if outcome.is_complete else UNFINISHED


def _print_left(left: "Sweep") -> None:
    from ultrascale.cli.destroy_views import sweep_lines

    for line in sweep_lines(left):
        say(line)
