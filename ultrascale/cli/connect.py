"""`ultrascale connect`: the way to a private endpoint, and a kubeconfig for it."""

import os
import shlex
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

# The status of a program that a signal ended is this and the signal's number.
_ENDED_BY_SIGNAL = 128
_STOP_SECONDS = 5.0


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
        typer.Option(help="File to write; by default one in ~/.kube/ultrascale."),
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
    # One that stays has a name that stays; commands beside it, and each other, have files as well.
    name = f"{cluster.name}-{local}" if command else cluster.name
    path = (kubeconfig or Path(f"~/.kube/ultrascale/{name}.yaml")).expanduser()
    words = tunnel.command(instance, found.host, port=local, region=cluster.region, profile=profile)
    status = 0
    try:
        with (
            tunnel.opened(words, local, clock=ask.clock()) as session,
            # As `aws eks update-kubeconfig` has it: another terminal may name another profile.
            endpoint.lent_kubeconfig(
                path, found, port=local, profile=profile or os.environ.get("AWS_PROFILE")
            ),
        ):
            typer.echo(f"{cluster.name}: port {local} leads to it through {instance}", err=True)
            status = _run(command, path, session) if command else _stay(session, path)
    except KeyboardInterrupt:
        typer.echo("", err=True)
        status = ask.INTERRUPTED if command else 0
    raise typer.Exit(status)


def _run(command: list[str], kubeconfig: Path, session: "Process") -> int:
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig.absolute())}
    running: subprocess.Popen[bytes] | None = None
    try:
        with _ctrl_c_is_the_commands():
            with _signals_held_back():
                running = subprocess.Popen(command, env=environment)
            status = running.wait()
    except OSError as error:
        raise ClusterError(f"{command[0]}: {error.strerror}; write a command after --") from error
    finally:
        if running is not None:
            _stop(running)
    if session.poll() is not None:
        typer.echo(f"{_ended(session)}: {command[0]} may have lost its way meanwhile", err=True)
    # As a shell has it.
    return status if status >= 0 else _ENDED_BY_SIGNAL - status


@contextmanager
def _ctrl_c_is_the_commands() -> Generator[None]:
    """Let Ctrl-C end what a command does, as in a shell, and not the way that it takes."""
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _stop(running: subprocess.Popen[bytes]) -> None:
    """End a command that still runs; a shell that talks to somebody takes no SIGTERM."""
    if running.poll() is not None:
        return
    running.terminate()
    try:
        running.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()


@contextmanager
def _signals_held_back() -> Generator[None]:
    """Let a signal end this program only after what is begun within is known: it would run on."""
    missed: list[int] = []
    ending = (signal.SIGTERM, signal.SIGHUP)
    before = {each: signal.signal(each, lambda number, _: missed.append(number)) for each in ending}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    if missed:
        raise KeyboardInterrupt


def _stay(session: "Process", kubeconfig: Path) -> int:
    typer.echo(f"export KUBECONFIG={shlex.quote(str(kubeconfig.absolute()))}")
    typer.echo("Ctrl-C ends it", err=True)
    session.wait()
    raise ClusterError(
        f"{_ended(session)}; Session Manager ends idle ones after 20 minutes, unless its "
        "preferences say otherwise: connect again"
    )


def _ended(session: "Process") -> str:
    return f"the session ended with status {session.returncode}"
