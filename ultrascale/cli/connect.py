"""`ultrascale connect`: the way to a private endpoint, and a kubeconfig for it."""

import os
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultrascale import plan
from ultrascale.cli import ask
from ultrascale.errors import ClusterError

if TYPE_CHECKING:
    from ultrascale.operate.tunnel import Process


def connect(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The cluster file, as deployed.")],
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- COMMAND", help="Run this, and end with it; else with Ctrl-C."),
    ] = None,
    *,
    port: Annotated[
        int | None, typer.Option(min=1, max=65_535, help="Local port; by default a free one.")
    ] = None,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(help="File to write; by default ~/.kube/ultrascale/CLUSTER.yaml."),
    ] = None,
    profile: ask.Profile = None,
) -> None:
    """Open a way to the cluster's private endpoint through a system node, until Ctrl-C.

    Writes a kubeconfig of its own, and takes it away at the end. Ends with COMMAND's status.
    """
    from ultrascale.operate import endpoint, tunnel

    cluster = plan.load(file)
    tunnel.refuse_missing_programs()
    seen = ask.owner(cluster, profile)
    found = endpoint.find_endpoint(seen, cluster)
    instance = endpoint.find_forwarder(seen, cluster)
    local = port or tunnel.free_port()
    path = kubeconfig or Path("~/.kube/ultrascale").expanduser() / f"{cluster.name}.yaml"
    words = tunnel.command(instance, found.host, port=local, region=cluster.region, profile=profile)
    endpoint.write_kubeconfig(path, found, port=local, profile=profile)
    status = 0
    try:
        with tunnel.opened(words, local, clock=ask.clock()) as session:
            typer.echo(f"{cluster.name}: port {local} leads to it through {instance}", err=True)
            status = _run(command, path) if command else _stay(session, path)
    except KeyboardInterrupt:
        typer.echo("", err=True)
    finally:
        # It leads nowhere any more.
        path.unlink(missing_ok=True)
    raise typer.Exit(status)


def _run(command: list[str], kubeconfig: Path) -> int:
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    running: subprocess.Popen[bytes] | None = None
    try:
        with _signals_held_back():
            running = subprocess.Popen(command, env=environment)
        return running.wait()
    except OSError as error:
        raise ClusterError(f"{command[0]}: {error.strerror}; write a command after --") from error
    finally:
        if running is not None and running.poll() is None:
            running.terminate()
            running.wait()


@contextmanager
def _signals_held_back() -> Generator[None]:
    """Let a signal end this program only after what is begun within is known: it would run on."""
    missed: list[int] = []
    ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {each: signal.signal(each, lambda number, _: missed.append(number)) for each in ending}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    if missed:
        raise KeyboardInterrupt


def _stay(session: "Process", kubeconfig: Path) -> int:
    typer.echo(f"export KUBECONFIG={kubeconfig}")
    typer.echo("Ctrl-C ends it", err=True)
    status = session.wait()
    raise ClusterError(
        f"the session ended with status {status}; Session Manager ends idle ones after 20 minutes, "
        "unless its preferences say otherwise: connect again"
    )
