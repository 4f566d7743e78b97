"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from ultrascale.cli import complete

ClusterFile = Annotated[Path, typer.Argument(metavar="FILE", help="The cluster file.")]
DeployedFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="The cluster file as it was deployed.")
]
JobName = Annotated[str, typer.Argument(metavar="JOB", help="The job.")]
PoolOrShard = Annotated[
    str,
    typer.Argument(
        metavar="POOL", autocompletion=complete.pools, help="A pool, or a shard of a pool."
    ),
]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
AllAsJson = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]
At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="TIME",
        help="Time against which windows are checked, such as 2026-12-15T00:00Z.",
    ),
]
AllowUnknown = Annotated[
    bool, typer.Option("--allow-unknown", help="Count a check that could not ask AWS as passed.")
]
NoQuestion = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]

Kubeconfig = Annotated[
    Path | None,
    typer.Option(help="Kubeconfig; by default KUBECONFIG, ~/.kube/config, or the pod's account."),
]
Context = Annotated[str | None, typer.Option(help="Context of the kubeconfig.")]
Profile = Annotated[str | None, typer.Option(help="Profile of the AWS CLI's configuration.")]
AskingProfile = Annotated[
    str | None, typer.Option(help="Profile of the AWS CLI's configuration for requests to AWS.")
]
Region = Annotated[str | None, typer.Option(autocompletion=complete.regions, help="AWS Region.")]

Manifests = Annotated[Path, typer.Option(help="Folder of the manifests.")]
Assembly = Annotated[Path, typer.Option(help="Folder that `cdk synth` wrote.")]

Image = Annotated[str | None, typer.Option(help="Container image.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY.PATH=VALUE", help="Set any key of the job; repeatable."),
]
