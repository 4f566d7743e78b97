"""What commands that change a cluster have in common: whom they ask, and which cluster is meant."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultrascale.errors import UltrascaleError
from ultrascale.operate.clock import Clock

if TYPE_CHECKING:
    from ultrascale.jobs.cluster import Cluster

INTERRUPTED = 130
"""Exit status after Ctrl-C."""

Kubeconfig = Annotated[
    Path | None,
    typer.Option(help="Kubeconfig; by default KUBECONFIG, ~/.kube/config, or the pod's account."),
]
Context = Annotated[str | None, typer.Option(help="Context of the kubeconfig.")]
Profile = Annotated[str | None, typer.Option(help="Profile of the AWS CLI's configuration.")]


def clock() -> Clock:
    """Return the clock of this machine."""
    return Clock()


def connected(file: Path, kubeconfig: Path | None, context: str | None) -> "Cluster":
    """Return the cluster of a kubeconfig, which is to be that of the file.

    Raises:
        ClusterError: It is another, or there is no kubeconfig.
    """
    from ultrascale.jobs.cluster import Cluster
    from ultrascale.jobs.submitted import same_cluster

    found = Cluster.connected(kubeconfig, context)
    if context is None:
        same_cluster(file, found)
    return found


def confirm(question: str, *, yes: bool) -> None:
    """Return where the user agrees.

    Raises:
        UltrascaleError: Nobody can be asked.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise UltrascaleError("nothing was changed: it asks first; without a terminal add --yes")
    typer.confirm(question, abort=True)
