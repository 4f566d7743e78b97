"""Arguments and options that several commands have, and the clock that commands read."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultrascale.cli import complete
from ultrascale.cli.output import say

if TYPE_CHECKING:
    from ultrascale.catalog.prices import PriceList


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
AsClusterFile = Annotated[
    bool, typer.Option("--cluster-file", help="Print the smallest cluster file with the pools.")
]
AllAsJson = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]
At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="TIME",
        help="Time against which windows are checked, such as 2026-12-15T00:00Z.",
    ),
]
FactsAt = Annotated[
    str | None,
    typer.Option(
        "--at", metavar="TIME", help="Time at which facts are judged, such as 2026-12-15T00:00Z."
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


# --- Clock of the commands that read the time -----------------------------------------------------


def now() -> datetime:
    """Return the time in UTC."""
    return datetime.now(UTC)


# --- The option `--prices` of all commands that show money ----------------------------------------


PRICES_VARIABLE = "ULTRASCALE_PRICES"
PriceFileOption = Annotated[
    Path | None,
    typer.Option(
        "--prices",
        metavar="FILE",
        envvar=PRICES_VARIABLE,
        help="Price file from `ultrascale prices`, which overrides the catalog's prices.",
    ),
]


def price_list(file: Path | None, region: str | None = None) -> "PriceList | None":
    """Return the catalog's prices, replaced by those that ``file`` states; None without a file.

    Print the remarks about the age of the prices.

    Args:
        file: The user's price file.
        region: AWS Region to price; a file without any price for the Region is reported.

    Raises:
        ConfigError: The file cannot be read, or states something wrong.
    """
    # An empty environment variable names no file.
    if file is None or str(file) in ("", "."):
        return None
    from ultrascale.catalog.prices import catalog_prices
    from ultrascale.pricing.price_file import read_price_file

    found = read_price_file(file, now().date())
    for warning in found.warnings:
        say(warning, err=True)
    held = sorted({price.region for price in found.prices})
    if region is not None and region not in held:
        say(
            f"{file}: warning: it has no price of {region}, only of {', '.join(held)}; "
            f"get them by `ultrascale prices {region}`",
            err=True,
        )
    return catalog_prices().under(found.prices)
