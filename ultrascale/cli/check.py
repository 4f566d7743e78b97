"""`ultrascale check`: mistakes and warnings of cluster files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from ultrascale.cli.diagnostics import Format, as_annotation, as_json
from ultrascale.cli.output import say
from ultrascale.errors import ConfigError, Diagnostic, UltrascaleError, UsageError, printable


def check(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Cluster files; - reads standard input.")
    ],
    form: Annotated[
        Format | None,
        typer.Option("--format", help="Form of the answer; github: annotations of a workflow."),
    ] = None,
    as_data: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Name every mistake in cluster files at once, and warn of surprises."""
    if as_data and form not in (None, Format.JSON):
        raise UsageError([f"--json: contradicts --format {form}; leave one of them out"])
    chosen = Format.JSON if as_data else form or Format.TEXT
    distinct = [*dict.fromkeys(files)]
    told = {file: [*_judged(file)] for file in distinct}
    found = [*dict.fromkeys(each for diagnostics in told.values() for each in diagnostics)]
    if chosen == Format.JSON:
        typer.echo(as_json([_name(file) for file in distinct], found))
    elif chosen == Format.GITHUB:
        for each in found:
            typer.echo(as_annotation(each))
    else:
        for each in found:
            say(printable(str(each)), err=True)
        for file, diagnostics in told.items():
            if not _is_refused(diagnostics):
                say(f"{_name(file)}: ok")
    if _is_refused(found):
        raise typer.Exit(1)


def _judged(file: Path) -> Iterator[Diagnostic]:
    from ultrascale.jobs.preparation import check_file

    try:
        checked = check_file(file)
    except ConfigError as error:
        yield from error.diagnostics
    except UltrascaleError as error:
        yield Diagnostic(message=str(error), file=_name(file), code="catalog")
    else:
        yield from (*checked.warnings, *checked.notes)


def _name(file: Path) -> str:
    return "<stdin>" if str(file) == "-" else str(file)


def _is_refused(diagnostics: list[Diagnostic]) -> bool:
    return any(each.severity == "error" for each in diagnostics)
