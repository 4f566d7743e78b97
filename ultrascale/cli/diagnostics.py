"""Mistakes in files as text, as JSON and as annotations of GitHub."""

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum

from ultrascale.errors import Diagnostic, printable

VERSION = 1
"""Version of the JSON; a new one where a key changes its meaning or goes."""


class Format(StrEnum):
    """Forms of the answer."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


def as_json(files: Sequence[str], diagnostics: Sequence[Diagnostic]) -> str:
    """Return what was found in ``files`` as JSON."""
    found = [_data(each) for each in diagnostics]
    wrong = any(each.severity == "error" for each in diagnostics)
    answer = {"version": VERSION, "ok": not wrong, "files": [*files], "diagnostics": found}
    return json.dumps(answer, indent=2, ensure_ascii=False)


def _data(told: Diagnostic) -> Mapping[str, str | int | None]:
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
    """Return the workflow command that shows ``told`` beside its line in GitHub.

    Source: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
    """
    command = "notice" if told.severity == "note" else told.severity
    places: list[tuple[str, object]] = [("file", told.file)] if told.file else []
    if told.file and told.span is not None:
        places += [("line", told.span.line), ("col", told.span.column)]
        # GitHub takes columns of an end on the line of the start alone.
        if told.span.end_line == told.span.line and told.span.end_column is not None:
            places += [("endLine", told.span.end_line), ("endColumn", told.span.end_column)]
    properties = ",".join(f"{name}={_property(str(value))}" for name, value in places)
    return f"::{command}{' ' if properties else ''}{properties}::{_data_of(printable(told.keyed))}"


def _data_of(text: str) -> str:
    """Source: https://github.com/actions/toolkit/blob/main/packages/core/src/command.ts."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data_of(text).replace(":", "%3A").replace(",", "%2C")
