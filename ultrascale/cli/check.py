"""`ultrascale check`: mistakes and warnings of a cluster file."""

from pathlib import Path
from typing import Annotated

import typer

from ultrascale.errors import printable
from ultrascale.jobs.preparation import check_file


def check(file: Annotated[Path, typer.Argument(metavar="FILE", help="The cluster file.")]) -> None:
    """Name every mistake in a cluster file at once, and warn of surprises."""
    checked = check_file(file)
    for warning in checked.warnings:
        typer.echo(f"{file}: warning: {printable(warning)}", err=True)
    for note in checked.notes:
        typer.echo(f"{file}: note: {printable(note)}", err=True)
    typer.echo(f"{file}: ok")
