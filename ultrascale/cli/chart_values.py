"""`ultrascale chart-values`: print the cluster's values of the chart `training-job`."""

from pathlib import Path
from typing import Annotated

import typer

_COMMENT = """\
# What follows from a cluster, from `ultrascale chart-values {file}`: each kind of job as it is
# rendered, with markers for what the other values say. Beside those above are `template`, the one
# of jobTemplates that a release is, and `image`, a whole reference.
"""


def chart_values(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The cluster file.")],
    queue: Annotated[
        str | None, typer.Option(help="Queue of all jobs; needed where the file has several.")
    ] = None,
) -> None:
    """Print the values of the chart training-job that follow from the cluster."""
    from ultrascale.jobs.chart_values import chart_values as values_of
    from ultrascale.jobs.manifests import as_yaml
    from ultrascale.jobs.preparation import read_cluster

    found = as_yaml([values_of(read_cluster(file), queue=queue)], compact=True)
    typer.echo(_COMMENT.format(file=file) + found, nl=False)
