"""Mistakes in a cluster file, and the line in which a user reads one."""

import difflib
from collections.abc import Collection, Iterator
from typing import Literal

from msgspec.structs import astuple, replace

from ultrascale.config._document import Document, KeyPath
from ultrascale.errors import Diagnostic, Severity
from ultrascale.frozen import Frozen

Kind = Literal["wrong", "missing", "undurable", "unsupported"]


class Mistake(Frozen, kw_only=False, eq=False):
    """One mistake in a cluster file; equal where two rules say the same of one value."""

    at: KeyPath  # Keys that lead to the wrong value
    wrong: str  # What is wrong with it
    todo: str = ""  # What to do about it
    # The value; None takes the file's spelling at ``at``; empty where ``wrong`` names the value.
    got: str | None = None
    # ``unsupported``: the value is right but nothing builds it yet. ``missing``: the sender of a
    # job has to add it. ``undurable``: a job template may leave the place of output open, a job
    # that is sent may not.
    kind: Kind = "wrong"
    rests_on: KeyPath | None = None  # Keys of another value which has to change with this one
    # Name of its rule, which the engine sets; ``form`` where pydantic cannot read the value.
    code: str = "rule"
    severity: Severity = "error"  # Severity of its rule; ``error`` refuses the file

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mistake) and self._without_code == other._without_code

    def __hash__(self) -> int:
        return hash(self._without_code)

    @property
    def _without_code(self) -> tuple[object, ...]:
        return astuple(replace(self, code=""))

    @property
    def text(self) -> str:
        return f"{self.wrong}; {self.todo}" if self.todo else self.wrong

    def diagnostic(self, document: Document) -> Diagnostic:
        got = document.spelling(self.at) if self.got is None else self.got
        return Diagnostic(
            message=self.wrong,
            file=document.source,
            span=document.span(self.at),
            key=document.key(self.at),
            value=got or "",
            fix=self.todo,
            code=self.code,
            severity=self.severity,
        )

    def line(self, document: Document) -> str:
        return str(self.diagnostic(document))


Mistakes = Iterator[Mistake]


def refuse(
    key: str, wrong: str, todo: str = "", *, got: str | None = None, kind: Kind = "wrong"
) -> Mistake:
    """Return a mistake of the judged part; ``key`` is a path with dots, as ``nodes.max``."""
    at = tuple(int(part) if part.isdigit() else part for part in key.split(".") if part)
    return Mistake(at, wrong, todo, got, kind)


def note(key: str, text: str) -> Mistake:
    """Return a warning at ``key``; its ``text`` ends with the remedy."""
    wrong, _, todo = text.rpartition("; ")
    return refuse(key, wrong or text, todo if wrong else "", got="")


def near(name: str, known: Collection[str], offered: Collection[str] = ()) -> str:
    """Return the remedy for the unknown ``name``: its nearest match, or all known names.

    Args:
        name: The unknown word.
        known: The known names.
        offered: Names to list where no match is near; all known ones by default.
    """
    match = difflib.get_close_matches(name, known, n=1)
    if match:
        return f"did you mean {match[0]}?"
    return f"known: {', '.join(sorted(offered or known))}" if known else "add it first"
