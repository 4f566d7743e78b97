"""`ultrascale schema`: the JSON Schema of cluster files and of job files."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ultrascale.errors import UltrascaleError


class Kind(StrEnum):
    """Kind of file that has a schema."""

    CLUSTER = "cluster"
    JOB = "job"


def schema(
    kind: Annotated[
        Kind, typer.Argument(metavar="cluster|job", help="The kind of file.")
    ] = Kind.CLUSTER,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="File to write instead of printing."),
    ] = None,
) -> None:
    """Print the JSON Schema by which editors check a cluster file or a job file.

    The first line of a cluster or job file names the path of the schema:
    `# yaml-language-server: $schema=PATH`.
    """
    from ultrascale import config

    text = config.schema_text(kind.value)
    if out is None:
        typer.echo(text, nl=False)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UltrascaleError(f"{out}: cannot be written: {reason}; name another file") from None
