"""`ultrascale destroy`: take a cluster down in an order that leaves nothing running."""

import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultrascale import plan
from ultrascale.errors import ClusterError, QuestionError
from ultrascale.plan.model import ClusterPlan

if TYPE_CHECKING:
    from ultrascale.account import Account
    from ultrascale.cluster_api.server import Cluster
    from ultrascale.config.pipeline import ConnectionId
    from ultrascale.teardown import Sweep, Teardown

UNFINISHED = 3
"""Exit status where a step stopped, an orphan is left, or a question was refused."""
_INTERRUPTED = 130
_SHOWN = 5
# States in which the API server answers. Nobody else can end the nodes of NodePools.
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
            help="Skip Kubernetes cleanup; refused while a node of a NodePool runs.",
        ),
    ] = False,
) -> None:
    """Take a cluster down: jobs first, the VPC last; storage stays unless it is named.

    Prints what goes and what stays, and asks for the cluster's name. An interrupted teardown
    goes on where it stopped when the command is run again. Exits with 3 where a step stopped, where
    an orphan is left, or where AWS refused a question.
    """
    from ultrascale import account, teardown

    cluster = plan.load(file)
    asked = teardown.Asked(storage=frozenset(delete_storage or ()), logs=delete_logs)
    teardown.refuse_unknown(cluster, asked)
    _refuse_confirmation(cluster.name, confirm, dry_run=dry_run)
    seen = account.connect(cluster.region, profile)
    _refuse_account(cluster, seen)
    status = teardown.eks_status(seen, cluster.name)
    if skip_kubernetes:
        _refuse_nodes(cluster, seen)
        api = None
    else:
        api = _api_server(cluster, seen, status, kubeconfig, context)
    try:
        found = teardown.read_findings(seen, cluster, api, status, _pipeline_home(file))
        planned = teardown.plan_teardown(seen, cluster, found, asked)
    except ClusterError as error:
        raise ClusterError(f"{error}; {_how_to_reach(cluster)}") from error
    _print_plan(planned)
    if dry_run:
        raise typer.Exit(_foresee(seen, cluster, planned))
    if planned.steps:
        _agree(cluster.name, confirm)
    path = journal or Path(f"destroy-{cluster.name}-{cluster.region}.jsonl")
    raise typer.Exit(_carry_out(seen, cluster, planned, path))


def _refuse_confirmation(cluster: str, confirm: str | None, *, dry_run: bool) -> None:
    """Refuse a name that is another's, before anything is asked.

    Raises:
        QuestionError: It is another name, or nobody is there to type it.
    """
    if confirm is not None and confirm != cluster:
        raise QuestionError(
            [f"--confirm: the cluster file names {cluster}, got {confirm!r}; confirm that name"]
        )
    if confirm is None and not dry_run and not sys.stdin.isatty():
        raise QuestionError(
            [f"--confirm: without a terminal nobody is asked; add --confirm {cluster}"]
        )


def _refuse_account(cluster: ClusterPlan, seen: "Account") -> None:
    if cluster.account is not None and cluster.account != seen.id:
        raise QuestionError(
            [
                f"account: the cluster file names account {cluster.account}, the credentials "
                f"belong to {seen.id}; name another profile by --profile"
            ]
        )


def _refuse_nodes(cluster: ClusterPlan, seen: "Account") -> None:
    """Refuse to do without the API server while it alone can end nodes.

    EKS ends those of Auto Mode with the cluster.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/delete-cluster.html

    Raises:
        QuestionError: Some run.
    """
    from ultrascale.teardown import nodes_of_pools

    running = [node.thing.id for node in nodes_of_pools(seen, cluster.name)]
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
    """Return the exit status of a dry run; search for orphans where no step is left."""
    from ultrascale.teardown import sweep

    if teardown.steps:
        # Everything of a cluster that runs would look like an orphan.
        return UNFINISHED if any(step.stops for step in teardown.steps) else 0
    left = sweep(seen, cluster, teardown)
    _print_left(left)
    return UNFINISHED if left.orphans or left.unknown else 0


def _print_plan(teardown: "Teardown") -> None:
    from ultrascale.cli.destroy_views import plan_lines

    for line in plan_lines(teardown):
        typer.echo(line)


def _agree(cluster: str, confirm: str | None) -> None:
    if confirm is None and typer.prompt(f"Type {cluster} to delete all of this") != cluster:
        raise QuestionError(["nothing was deleted: what was typed is not the cluster's name"])


def _carry_out(seen: "Account", cluster: ClusterPlan, planned: "Teardown", path: Path) -> int:
    """Run the steps, print what is left, and return the exit status."""
    from ultrascale import teardown

    try:
        outcome = teardown.destroy(
            seen, cluster, planned, journal=path, clock=SystemClock(), tell=typer.echo
        )
    except KeyboardInterrupt:
        typer.echo(
            "interrupted: what was asked for goes on in AWS, and what is left is paid for; run the "
            "command again: it goes on here, and --dry-run lists what is left",
            err=True,
        )
        return _INTERRUPTED
    if outcome.stopped is not None:
        typer.echo(f"stopped: {outcome.stopped}", err=True)
    _print_left(outcome.left)
    if outcome.unwritten is not None:
        typer.echo(str(outcome.unwritten), err=True)
    return 0 if outcome.is_complete else UNFINISHED


def _print_left(left: "Sweep") -> None:
    from ultrascale.cli.destroy_views import sweep_lines

    for line in sweep_lines(left):
        typer.echo(line)
