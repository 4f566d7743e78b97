"""Mistakes in a cluster file, and the line that tells a user of each."""

import difflib
from collections.abc import Collection, Iterator
from typing import Literal

from ultrascale.config._document import Document, KeyPath
from ultrascale.errors import Diagnostic, Severity
from ultrascale.frozen import Frozen

Code = Literal["form", "missing", "rule", "undurable", "unsupported"]


class Mistake(Frozen, kw_only=False):
    """One mistake in a cluster file."""

    at: KeyPath  # Keys that lead to the wrong value
    wrong: str  # What is wrong with it
    todo: str = ""  # What to do about it
    # The value; None: as the file spells it at ``at``; empty: ``wrong`` names it.
    got: str | None = None
    # ``form`` where pydantic cannot read the value; ``rule`` where a rule refuses it;
    # ``unsupported`` where it is right but nothing builds it yet; ``missing`` where a job leaves
    # out what whoever sends it has to add.
    code: Code = "rule"
    # Keys that lead to another value which has to change with this one.
    rests_on: KeyPath | None = None

    @property
    def text(self) -> str:
        """The mistake and its remedy, without the value."""
        return f"{self.wrong}; {self.todo}" if self.todo else self.wrong

    def told(self, document: Document, *, severity: Severity = "error") -> Diagnostic:
        """Return what a user is told of it."""
        got = document.got(self.at) if self.got is None else self.got
        return Diagnostic(
            message=self.wrong,
            file=document.source,
            span=document.span(self.at),
            key=document.key(self.at),
            value=got or "",
            fix=self.todo,
            code=self.code if severity == "error" else severity,
            severity=severity,
        )

    def line(self, document: Document) -> str:
        """Return the line that a user reads."""
        return str(self.told(document))


Mistakes = Iterator[Mistake]


def refuse(
    key: str, wrong: str, todo: str = "", *, got: str | None = None, code: Code = "rule"
) -> Mistake:
    """Return the mistake at ``key``, a path with dots, as ``nodes.max``, in what a rule judges."""
    at = tuple(int(part) if part.isdigit() else part for part in key.split(".") if part)
    return Mistake(at, wrong, todo, got, code)


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
