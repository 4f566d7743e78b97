"""What is wrong with a cluster file, and what is to be known of it."""

from pathlib import Path

import typer

from ultrascale import config
from ultrascale.plan.network.vpc import network_warnings
from ultrascale.plan.pipeline import load_pipeline


def check_file(file: Path) -> None:
    """Refuse a cluster file with mistakes, and print what is to be known of one without.

    Raises:
        ConfigError: It has some; one line for each.
    """
    from ultrascale.jobs.preparation import read_cluster
    from ultrascale.jobs.templates import check_templates

    cluster = read_cluster(file)
    check_templates(cluster)
    load_pipeline(file)
    for warning in (*config.warnings(cluster.cluster), *network_warnings(cluster.plan.network)):
        typer.echo(f"{file}: warning: {warning}", err=True)
