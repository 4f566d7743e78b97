"""`ultrascale check` and `ultrascale schema`: mistakes of cluster files, and their JSON Schema."""

import json
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ultrascale.cli import options
from ultrascale.cli.output import say
from ultrascale.errors import ConfigError, Diagnostic, UltrascaleError, UsageError, printable

VERSION = 1
"""Version of the JSON document; it rises when a key goes or changes its meaning."""


class Format(StrEnum):
    """Output format of `check`."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


def as_json(files: Sequence[str], diagnostics: Sequence[Diagnostic]) -> str:
    """Return the mistakes and warnings of ``files`` as JSON."""
    found = [_json_fields(diagnostic) for diagnostic in diagnostics]
    wrong = any(each.severity == "error" for each in diagnostics)
    answer = {"version": VERSION, "ok": not wrong, "files": [*files], "diagnostics": found}
    return json.dumps(answer, indent=2, ensure_ascii=False)


def _json_fields(told: Diagnostic) -> Mapping[str, str | int | None]:
    span = told.span
    return {
        "file": printable(told.file) or None,
        "line": span.line if span else None,
        "column": span.column if span else None,
        "end_line": span.end_line if span else None,
        "end_column": span.end_column if span else None,
        "key": printable(told.key) or None,
        "severity": told.severity,
        "code": told.code,
        "message": printable(told.message),
        "value": printable(told.value) or None,
        "fix": printable(told.fix) or None,
    }


def as_annotation(told: Diagnostic) -> str:
    """Return GitHub's workflow command that shows a mistake or warning beside its line.

    Source: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
    """
    command = "notice" if told.severity == "note" else told.severity
    places: list[tuple[str, object]] = [("file", told.file)] if told.file else []
    if told.file and told.span is not None:
        places += [("line", told.span.line), ("col", told.span.column)]
        # GitHub allows an end column only if the annotation ends on the line of its start.
        if told.span.end_line == told.span.line and told.span.end_column is not None:
            places += [("endLine", told.span.end_line), ("endColumn", told.span.end_column)]
    properties = ",".join(f"{name}={_property(str(value))}" for name, value in places)
    return f"::{command}{' ' if properties else ''}{properties}::{_data_of(printable(told.keyed))}"


def _data_of(text: str) -> str:
    """Return text as the data of a workflow command.

    Source: https://github.com/actions/toolkit/blob/main/packages/core/src/command.ts
    """
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data_of(text).replace(":", "%3A").replace(",", "%2C")


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
    """Name all mistakes in cluster files at once, and warn of settings with surprising effects."""
    if as_data and form not in (None, Format.JSON):
        raise UsageError([f"--json: contradicts --format {form}; leave one of them out"])
    chosen = Format.JSON if as_data else form or Format.TEXT
    distinct = [*dict.fromkeys(files)]
    stand_ins: dict[Path, Sequence[Diagnostic]] = {}
    told = {file: [*_diagnostics_of(file, stand_ins)] for file in distinct}
    found = [*dict.fromkeys(each for diagnostics in told.values() for each in diagnostics)]
    if chosen == Format.JSON:
        typer.echo(as_json([_file_name(file) for file in distinct], found))
    elif chosen == Format.GITHUB:
        for each in found:
            typer.echo(as_annotation(each))
    else:
        for each in found:
            say(printable(str(each)), err=True)
        for file, diagnostics in told.items():
            if not _is_refused(diagnostics):
                say(f"{_file_name(file)}: ok{_but(stand_ins.get(file, ()))}")
    if _is_refused(found):
        raise typer.Exit(1)


def _but(stand_ins: "Sequence[Diagnostic]") -> str:
    """Return the rest of the line of a good file: the values that are not the user's own."""
    if not stand_ins:
        return ""
    some = ", ".join([*dict.fromkeys(each.key for each in stand_ins)][:2])
    number = f"{len(stand_ins)} values are" if len(stand_ins) > 1 else "1 value is"
    return f", but {number} of documentation, which preflight and deploy refuse: {some}" + (
        ", …" if len(stand_ins) > 2 else ""
    )


def _diagnostics_of(
    file: Path, stand_ins: "dict[Path, Sequence[Diagnostic]]"
) -> Iterator[Diagnostic]:
    from ultrascale.jobs.checked_file import check_file

    try:
        checked = check_file(file, options.now().date())
    except ConfigError as error:
        yield from error.diagnostics
    except UltrascaleError as error:
        yield Diagnostic(message=str(error), file=_file_name(file), code="catalog")
    else:
        yield from (*checked.warnings, *checked.notes)
        stand_ins[file] = checked.stand_ins


def _file_name(file: Path) -> str:
    return "<stdin>" if str(file) == "-" else str(file)


def _is_refused(diagnostics: list[Diagnostic]) -> bool:
    return any(each.severity == "error" for each in diagnostics)


# --- `ultrascale schema`: the JSON Schema of cluster files and of job files -----------------------


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
