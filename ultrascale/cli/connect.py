"""`ultrascale connect`: open a connection to a private endpoint, with a kubeconfig for it."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from ultrascale.cli import ask, options
from ultrascale.cli.output import INTERRUPTED, say
from ultrascale.errors import ClusterError

if TYPE_CHECKING:
    from ultrascale.operate import Connection


def connect(
    file: options.DeployedFile,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- COMMAND", help="Command to run; the connection ends with it."),
    ] = None,
    *,
    port: Annotated[
        int | None, typer.Option(min=1, max=65_535, help="Local port; by default a free one.")
    ] = None,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(help="File to write; by default one in ~/.kube/ultrascale."),
    ] = None,
    profile: options.Profile = None,
) -> None:
    """Open a connection to the cluster's private endpoint through a system node, until Ctrl-C.

    Writes a separate kubeconfig, and deletes it at the end. Ends with COMMAND's status.
    """
    from ultrascale import operate, plan

    cluster = plan.load(file)
    operate.refuse_missing_programs()
    account = ask.owner(cluster, profile)
    status = 0
    try:
        with operate.connect(
            account,
            cluster,
            cluster.system_pools,
            port=port,
            kubeconfig=kubeconfig,
            profile=profile,
            shared=not command,
            clock=ask.clock(),
        ) as connection:
            say(
                f"{cluster.name}: port {connection.port} leads to it through {connection.instance}",
                err=True,
            )
            status = _run_command(command, connection) if command else _wait_for_end(connection)
    except KeyboardInterrupt:
        say("", err=True)
        status = INTERRUPTED if command else 0
    raise typer.Exit(status)


def _run_command(command: list[str], connection: "Connection") -> int:
    status = connection.run(command)
    if end := connection.end:
        say(f"{end}: {command[0]} may have lost its connection meanwhile", err=True)
    return status


def _wait_for_end(connection: "Connection") -> NoReturn:
    typer.echo(f"export KUBECONFIG={shlex.quote(str(connection.kubeconfig.absolute()))}")
    say("Ctrl-C ends it", err=True)
    connection.stay()
    raise ClusterError(
        f"{connection.end}; Session Manager ends idle sessions after 20 minutes, unless its "
        "preferences say otherwise: connect again"
    )
