"""`ultrascale destroy`: a cluster, taken down in an order that leaves nothing running."""

import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultrascale import plan
from ultrascale.errors import ClusterError, QuestionError, UltrascaleError
from ultrascale.plan.model import ClusterPlan

if TYPE_CHECKING:
    from ultrascale.account import Account
    from ultrascale.cluster_api.server import Cluster
    from ultrascale.config.pipeline import ConnectionId
    from ultrascale.teardown.model import Teardown
    from ultrascale.teardown.sweep import Sweep

UNFINISHED = 3
"""Exit status where a step stopped, something is left that nobody kept, or something is unknown."""
_INTERRUPTED = 130
_SHOWN = 5
# In these its API server answers. It must be asked: nobody else can end the nodes of NodePools.
_ANSWERING = frozenset({"ACTIVE", "UPDATING"})
_GOING = frozenset({"", "DELETING", "FAILED"})


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """Return the time, in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


def destroy_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The cluster file.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would go and what stays; delete nothing.")
    ] = False,
    confirm: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The cluster's name: delete without asking for it."),
    ] = None,
    delete_storage: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A file system, bucket or repository of the file that goes with all its data.",
        ),
    ] = None,
    delete_logs: Annotated[bool, typer.Option("--delete-logs", help="Log groups go, too.")] = False,
    journal: Annotated[
        Path | None,
        typer.Option(help="Where to write what was done; without it destroy-NAME-REGION.jsonl."),
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="Profile of the AWS CLI's configuration to use.")
    ] = None,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Kubeconfig that names the cluster by its ARN.")
    ] = None,
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig.")] = None,
    skip_kubernetes: Annotated[
        bool,
        typer.Option(
            "--skip-kubernetes",
            help="Do without the API server; refused while a node of a NodePool runs.",
        ),
    ] = False,
) -> None:
    """Take a cluster down: jobs first, the VPC last; storage stays unless it is named.

    Prints what goes and what stays, and asks for the cluster's name. What was interrupted goes on
    where it stopped when the command is run again. Ends with status 3 where a step stopped, where
    something is left that nobody kept, or where something could not be asked.
    """
    from ultrascale import account
    from ultrascale.teardown import keeping
    from ultrascale.teardown.findings import eks_status, look
    from ultrascale.teardown.plan import plan_teardown

    cluster = plan.load(file)
    asked = keeping.Asked(storage=frozenset(delete_storage or ()), logs=delete_logs)
    keeping.refuse_unknown(cluster, asked)
    _refuse_confirmation(cluster.name, confirm, dry_run=dry_run)
    seen = account.connect(cluster.region, profile)
    _refuse_account(cluster, seen)
    status = eks_status(seen, cluster.name)
    if skip_kubernetes:
        _refuse_nodes(cluster, seen)
        api = None
    else:
        api = _api_server(cluster, seen, status, kubeconfig, context)
    try:
        found = look(seen, cluster, api, status, _pipeline_home(file))
        teardown = plan_teardown(seen, cluster, found, asked)
    except ClusterError as error:
        raise ClusterError(f"{error}; {_how_to_reach(cluster)}") from error
    _print_plan(teardown)
    if dry_run:
        raise typer.Exit(_foresee(seen, cluster, teardown))
    if teardown.steps:
        _agree(cluster.name, confirm)
    path = journal or Path(f"destroy-{cluster.name}-{cluster.region}.jsonl")
    raise typer.Exit(_carry_out(seen, cluster, teardown, path))


def _refuse_confirmation(cluster: str, confirm: str | None, *, dry_run: bool) -> None:
    """Refuse a name that is another's, before anything is asked.

    Raises:
        QuestionError: It is another name, or nobody is there to type it.
    """
    if confirm is not None and confirm != cluster:
        raise QuestionError(
            [f"--confirm: the file is of the cluster {cluster}, got {confirm!r}; name that one"]
        )
    if confirm is None and not dry_run and not sys.stdin.isatty():
        raise QuestionError(
            [f"--confirm: without a terminal nobody is asked; add --confirm {cluster}"]
        )


def _refuse_account(cluster: ClusterPlan, seen: "Account") -> None:
    if cluster.account is not None and cluster.account != seen.id:
        raise QuestionError(
            [
                f"account: the file is of {cluster.account}, and the credentials of {seen.id}; "
                "name another profile by --profile"
            ]
        )


def _refuse_nodes(cluster: ClusterPlan, seen: "Account") -> None:
    """Refuse to do without the API server while it alone can end nodes.

    EKS ends those of Auto Mode with the cluster.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/delete-cluster.html

    Raises:
        QuestionError: Some run.
    """
    from ultrascale.teardown.tagged import nodes_of_pools

    running = [each.thing.id for each in nodes_of_pools(seen, cluster.name)]
    if running and not cluster.control_plane.auto_mode:
        shown = ", ".join(running[:_SHOWN])
        raise QuestionError(
            [
                f"--skip-kubernetes: {len(running)} nodes of NodePools run ({shown}), and nobody "
                "else would end them; leave it out, or wait until they are gone"
            ]
        )


def _api_server(
    cluster: ClusterPlan,
    seen: "Account",
    status: str,
    kubeconfig: Path | None,
    context: str | None,
) -> "Cluster | None":
    """Return the API server of exactly this cluster; None where EKS has none any longer.

    Raises:
        QuestionError: EKS is still making it, or the kubeconfig is another cluster's.
        ClusterError: There is no kubeconfig.
    """
    from ultrascale.cluster_api.identity import ClusterArn
    from ultrascale.cluster_api.server import Cluster

    if status in _GOING:
        return None
    if status not in _ANSWERING:
        raise QuestionError(
            [f"EKS cluster {cluster.name}: it is {status}; wait until that has ended"]
        )
    how = _how_to_reach(cluster)
    try:
        api = Cluster.connected(kubeconfig, context)
    except ClusterError as error:
        raise ClusterError(f"{error}; {how}") from error
    wanted = ClusterArn(region=cluster.region, account=seen.id, cluster=cluster.name)
    if api.arn != wanted:
        raise QuestionError(
            [
                f"--kubeconfig: it is of {api.name or 'this pod'}, not of the EKS cluster "
                f"{cluster.name} of {seen.id} in {cluster.region}; {how}"
            ]
        )
    return api


def _how_to_reach(cluster: ClusterPlan) -> str:
    return (
        "name a kubeconfig that reaches it by --kubeconfig: `ultrascale connect` writes one, or "
        f"`aws eks update-kubeconfig --name {cluster.name} --region {cluster.region}`. Once no "
        "node of a NodePool runs, --skip-kubernetes does without"
    )


def _pipeline_home(file: Path) -> "ConnectionId | None":
    """Return where the pipeline of a cluster file lies; None for a file without one."""
    from ultrascale import config

    pipeline = config.load(file).pipeline
    return None if pipeline is None else pipeline.home


def _foresee(seen: "Account", cluster: ClusterPlan, teardown: "Teardown") -> int:
    """Return the exit status of a dry run; look for what is left where there is nothing to do."""
    if teardown.steps:
        # Everything of a cluster that runs would look like an orphan.
        return UNFINISHED if any(step.stops for step in teardown.steps) else 0
    left = _search(seen, cluster, teardown)
    return UNFINISHED if left.orphans or left.unknown else 0


def _print_plan(teardown: "Teardown") -> None:
    from ultrascale.cli.destroy_views import plan_lines

    for line in plan_lines(teardown):
        typer.echo(line)


def _agree(cluster: str, confirm: str | None) -> None:
    if confirm is None and typer.prompt(f"Type {cluster} to delete all of this") != cluster:
        raise QuestionError(["nothing was deleted: what was typed is not the cluster's name"])


def _carry_out(seen: "Account", cluster: ClusterPlan, teardown: "Teardown", path: Path) -> int:
    """Run the steps, look what is left, and return the exit status."""
    from ultrascale.teardown.journal import Journal
    from ultrascale.teardown.model import StoppedError
    from ultrascale.teardown.runner import Runner

    clock = SystemClock()
    journal = Journal.opened(path, clock)
    if journal.unfinished:
        typer.echo(f"{path}: an earlier run ended at {journal.unfinished}; this one goes on")
    typer.echo(f"{path}: what is asked for and what is gone")
    stopped = False
    try:
        try:
            Runner(clock=clock, journal=journal, tell=typer.echo).run(teardown)
        except StoppedError as error:
            stopped = True
            typer.echo(f"stopped: {error}", err=True)
        found = _search(seen, cluster, teardown)
    except KeyboardInterrupt:
        typer.echo(
            "interrupted: what was asked for goes on in AWS, and what is left is paid for; run the "
            "command again: it goes on here, and --dry-run lists what is left",
            err=True,
        )
        return _INTERRUPTED
    try:
        journal.write(left=[str(each.thing) for each in found.left], unknown=list(found.unknown))
        if not stopped:
            journal.write(end=True)
    except UltrascaleError as error:
        typer.echo(str(error), err=True)
        stopped = True
    return UNFINISHED if stopped or found.orphans or found.unknown else 0


def _search(seen: "Account", cluster: ClusterPlan, teardown: "Teardown") -> "Sweep":
    """Look for what is left, and print it."""
    from ultrascale.cli.destroy_views import sweep_lines
    from ultrascale.teardown.sweep import sweep

    found = sweep(seen, cluster, teardown)
    for line in sweep_lines(found):
        typer.echo(line)
    return found
