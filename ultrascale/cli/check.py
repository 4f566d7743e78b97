"""`ultrascale check`: mistakes and warnings of a cluster file."""

from pathlib import Path
from typing import Annotated

import typer

from ultrascale import config
from ultrascale.plan.network.vpc import network_warnings
from ultrascale.plan.pipeline import load_pipeline


def check(file: Annotated[Path, typer.Argument(metavar="FILE", help="The cluster file.")]) -> None:
    """Name every mistake in a cluster file at once, and warn of what surprises."""
    check_file(file)
    typer.echo(f"{file}: ok")


def check_file(file: Path) -> None:
    """Refuse a cluster file with mistakes, and print what is to be known of one without.

    Raises:
        ConfigError: It has some; one line for each.
    """
    from ultrascale.jobs.preparation import check_templates, read_cluster

    cluster = read_cluster(file)
    check_templates(cluster)
    load_pipeline(file)
    for warning in (*config.warnings(cluster.cluster), *network_warnings(cluster.plan.network)):
        typer.echo(f"{file}: warning: {warning}", err=True)
