"""Options and questions of commands that change a running cluster."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ultrascale.cli.output import INTERRUPTED, say
from ultrascale.errors import InterruptedWorkError, QuestionError, UltrascaleError

if TYPE_CHECKING:
    from ultrascale.account import Account
    from ultrascale.cluster_api.identity import ClusterArn
    from ultrascale.cluster_api.server import Cluster
    from ultrascale.operate import Clock
    from ultrascale.plan.model import ClusterIdentity


def clock() -> "Clock":
    """Return the clock of this machine."""
    from ultrascale.operate import Clock

    return Clock()


@contextmanager
def interruptible() -> Generator[None]:
    """End the command with status 130 if the user stops work that has begun."""
    try:
        yield
    except InterruptedWorkError as error:
        say(f"\n{error}", err=True)
        raise typer.Exit(INTERRUPTED) from None


def connected(file: Path, kubeconfig: Path | None, context: str | None) -> "Cluster":
    """Return the API server of a kubeconfig, after a check that it is the cluster file's.

    Print the cluster's ARN, as files often name no account, or that the ARN is not known.

    Raises:
        ClusterError: The kubeconfig names another cluster, or there is no kubeconfig.
    """
    from ultrascale.cluster_api.identity import same_cluster
    from ultrascale.cluster_api.server import Cluster

    found = Cluster.connected(kubeconfig, context)
    same_cluster(file, found, context)
    if (arn := found.arn) is None:
        called = found.name or "the one that this pod runs in"
        say(f"{file}: check that {called} is its cluster: no ARN says so", err=True)
    else:
        _print_arn(arn)
    return found


def owner(
    plan: "ClusterIdentity", profile: str | None, cluster: "Cluster | None" = None
) -> "Account":
    """Return the AWS account of the cluster, and print it.

    Args:
        plan: The cluster.
        profile: Profile of the AWS CLI's configuration; None for the environment's, if any.
        cluster: API server where the nodes of the account are watched; None without one.

    Raises:
        AccountError: AWS does not answer.
        QuestionError: The file or the kubeconfig names another account, or another cluster.
    """
    from ultrascale import account
    from ultrascale.cluster_api.identity import ClusterArn

    seen = account.connect_to_owner(plan.region, plan.account, profile)
    named = cluster.arn if cluster is not None else None
    wanted = ClusterArn(region=plan.region, account=seen.id, cluster=plan.name)
    if named is not None and named != wanted:
        raise QuestionError(
            [
                f"--kubeconfig: it is of {named.cluster} of {named.account} in {named.region}, not "
                f"of {plan.name} of {seen.id} in {plan.region}; name that by --context, or another "
                "profile by --profile"
            ]
        )
    if named is None:
        _print_arn(wanted)
    return seen


def _print_arn(cluster: "ClusterArn") -> None:
    say(f"{cluster.cluster} in {cluster.region} of account {cluster.account}", err=True)


def confirm(question: str, *, yes: bool) -> None:
    """Ask the user to agree; abort the command otherwise.

    Raises:
        UltrascaleError: There is no terminal to ask in.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise UltrascaleError(
            "nothing was changed: the command asks first; without a terminal add --yes"
        )
    typer.confirm(question, abort=True)
