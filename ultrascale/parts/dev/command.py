"""`ultrascale dev`: a person's notebook or shell on a part of a node."""

from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultrascale.cli import ask, complete, options
from ultrascale.cli.job_options import changes_of
from ultrascale.cli.output import INTERRUPTED, say
from ultrascale.errors import UsageError
from ultrascale.progress import progress

if TYPE_CHECKING:
    from ultrascale import operate
    from ultrascale.cluster_api.server import Cluster
    from ultrascale.jobs.submitted import SubmittedJob
    from ultrascale.parts.dev.pod import DevPod


_Pod = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        autocompletion=complete.jobs_of_kind("dev"),
        help="A job of the file, of kind dev.",
    ),
]
_Command = Annotated[
    list[str] | None,
    typer.Argument(metavar="-- COMMAND", help="Command to run in the pod, in place of a shell."),
]
_Shell = Annotated[
    bool, typer.Option("--shell", help="Open a shell in the pod; the pod's notebook keeps running.")
]
_Port = Annotated[
    int | None,
    typer.Option(min=1, max=65_535, help="Local port; by default the pod's, or a free one."),
]
_Detach = Annotated[bool, typer.Option("--detach", help="Start the pod, and return once it runs.")]
_Name = Annotated[str | None, typer.Option(help="Name of the pod; by default NAME-USER.")]
_Connect = Annotated[
    bool,
    typer.Option("--connect", help="First connect to a private endpoint by a system node."),
]


def dev(
    file: options.ClusterFile,
    job: _Pod,
    command: _Command = None,
    *,
    shell: _Shell = False,
    port: _Port = None,
    stop: Annotated[bool, typer.Option("--stop", help="Delete the pod; its volumes stay.")] = False,
    detach: _Detach = False,
    name: _Name = None,
    image: options.Image = None,
    set_: options.Settings = None,
    connect: _Connect = False,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    profile: options.Profile = None,
) -> None:
    """Start a pod of your own, and open its notebook at a port of this machine until Ctrl-C.

    The pod stays, and ends after its idle_hours without use. Called again, the command opens the
    same pod.
    """
    from ultrascale.cluster_api.server import Cluster
    from ultrascale.parts.dev import pod as dev_pod

    if stop and (shell or command or detach):
        raise UsageError(["--stop: goes with no other action"])
    if not stop:
        dev_pod.refuse_missing_kubectl()
    status = 0
    with ExitStack() as stack:
        if connect:
            _refuse_kubeconfig(kubeconfig, context)
            kubeconfig = stack.enter_context(_connection(file, profile)).kubeconfig
        cluster = Cluster.connected(kubeconfig, context)
        own = name or dev_pod.own_name(job)
        if stop:
            _stop_pod(file, job, own, cluster, checks_file=context is None)
            return
        with progress(f"starting {own}"):
            submitted = dev_pod.start(
                file,
                job,
                cluster=cluster,
                context=context,
                report=_print_line,
                clock=ask.clock(),
                name=own,
                image=image,
                changes=changes_of(set_ or [], []),
            )
        for note in submitted.notes:
            _print_line(f"{own}: {note}")
        try:
            _wait_for_pod(submitted)
            if not detach:
                kubectl = dev_pod.Kubectl(kubeconfig=kubeconfig, context=context)
                pod = dev_pod.running_pod(submitted, cluster, kubectl)
                status = _open_pod(pod, command, shell=shell, port=port)
        except KeyboardInterrupt:
            _print_line(
                f"\n{own} stays; run the same command to return, or with --stop to delete it"
            )
            raise typer.Exit(INTERRUPTED if shell or command else 0) from None
    raise typer.Exit(status)


def _refuse_kubeconfig(kubeconfig: Path | None, context: str | None) -> None:
    if kubeconfig is not None or context is not None:
        raise UsageError(
            ["--connect: writes a kubeconfig of its own; leave --kubeconfig and --context out"]
        )


def _stop_pod(file: Path, job: str, own: str, cluster: "Cluster", *, checks_file: bool) -> None:
    from ultrascale.cluster_api.identity import same_cluster
    from ultrascale.parts.dev import pod as dev_pod

    if checks_file:
        same_cluster(file, cluster)
    dev_pod.stop(cluster, dev_pod.namespace_of(file, job), own)
    say(f"{own}: deleted; its pod stops within its grace period")


def _connection(file: Path, profile: str | None) -> "AbstractContextManager[operate.Connection]":
    from ultrascale import operate, plan

    cluster = plan.load(file)
    operate.refuse_missing_programs()
    return operate.connect(
        ask.owner(cluster, profile),
        cluster,
        cluster.system_pools,
        port=None,
        kubeconfig=None,
        profile=profile,
        shared=False,
        clock=ask.clock(),
    )


def _open_pod(pod: "DevPod", command: list[str] | None, *, shell: bool, port: int | None) -> int:
    """Open a pod's notebook, or a shell in it, and return the exit status."""
    if shell or command:
        return pod.shell(command or ())
    notebook = pod.notebook(ask.clock())
    if notebook.port is None:
        _print_line(f"{pod.job}: no JupyterLab in its image; a shell is opened")
        return pod.shell()
    _print_line("Ctrl-C closes the port; the pod stays until nobody has used it for long")
    told = pod.forward(notebook, port=port, clock=ask.clock(), show=typer.echo, report=_print_line)
    _print_line(f"{pod.job}: {told}")
    return 0


def _wait_for_pod(submitted: "SubmittedJob") -> None:
    from ultrascale.cli.job_views import progress_display

    with progress_display() as show:
        submitted.wait(report=show)


def _print_line(line: str) -> None:
    say(line, err=True)
