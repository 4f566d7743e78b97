"""Mistakes in a cluster file, and the line that tells a user of each."""

import difflib
from collections.abc import Collection, Iterator
from typing import Literal

from msgspec.structs import astuple, replace

from ultrascale.config._document import Document, KeyPath
from ultrascale.errors import Diagnostic, Severity
from ultrascale.frozen import Frozen

Kind = Literal["wrong", "missing", "undurable", "unsupported"]


class Mistake(Frozen, kw_only=False, eq=False):
    """One mistake in a cluster file; two rules that say the same of a value have found one."""

    at: KeyPath  # Keys that lead to the wrong value
    wrong: str  # What is wrong with it
    todo: str = ""  # What to do about it
    # The value; None: as the file spells it at ``at``; empty: ``wrong`` names it.
    got: str | None = None
    # ``unsupported`` where the value is right but nothing builds it yet; ``missing`` where a job
    # leaves out what whoever sends it has to add; ``undurable`` where a template may leave open
    # where output lies, and a job that is sent may not.
    kind: Kind = "wrong"
    rests_on: KeyPath | None = None  # Keys of another value which has to change with this one
    # Name of the rule, which the engine sets; ``form`` where pydantic cannot read the value.
    code: str = "rule"
    severity: Severity = "error"  # Severity of that rule; ``error`` where the file is refused

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mistake) and self._without_code == other._without_code

    def __hash__(self) -> int:
        return hash(self._without_code)

    @property
    def _without_code(self) -> tuple[object, ...]:
        return astuple(replace(self, code=""))

    @property
    def text(self) -> str:
        """The mistake and its remedy, without the value."""
        return f"{self.wrong}; {self.todo}" if self.todo else self.wrong

    def told(self, document: Document) -> Diagnostic:
        """Return what a user is told of it."""
        got = document.got(self.at) if self.got is None else self.got
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
        """Return the line that a user reads."""
        return str(self.told(document))


Mistakes = Iterator[Mistake]


def refuse(
    key: str, wrong: str, todo: str = "", *, got: str | None = None, kind: Kind = "wrong"
) -> Mistake:
    """Return the mistake at ``key``, a path with dots, as ``nodes.max``, in what a rule judges."""
    at = tuple(int(part) if part.isdigit() else part for part in key.split(".") if part)
    return Mistake(at, wrong, todo, got, kind)


def note(key: str, text: str) -> Mistake:
    """Return the mistake at ``key`` that a warning tells; its ``text`` ends with what to do."""
    wrong, _, todo = text.rpartition("; ")
    return refuse(key, wrong or text, todo if wrong else "", got="")


def near(name: str, known: Collection[str], offered: Collection[str] = ()) -> str:
    """Return what to do about the unknown ``name``: its nearest match, or all that is known.

    Args:
        name: The word that nothing is called.
        known: What there is.
        offered: What of it is listed where nothing is near; all of it by default.
    """
    match = difflib.get_close_matches(name, known, n=1)
    if match:
        return f"did you mean {match[0]}?"
    return f"known: {', '.join(sorted(offered or known))}" if known else "there is none"
