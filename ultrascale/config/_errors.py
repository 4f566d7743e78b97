"""Mistakes in a cluster file, and the line that tells a user of each."""

import difflib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

from ultrascale.config._document import Document, KeyPath

Code = Literal["form", "missing", "rule", "unsupported"]


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake in a cluster file.

    Attributes:
        at: Keys that lead to the wrong value.
        wrong: What is wrong with it.
        todo: What to do about it.
        got: The value; None: as the file spells it at ``at``; empty: ``wrong`` names it.
        code: ``form`` where pydantic cannot read the value; ``rule`` where a rule refuses it;
            ``unsupported`` where it is right but nothing builds it yet; ``missing`` where a job
            leaves out what whoever sends it has to add.
        rests_on: Keys that lead to another value which has to change with this one.
    """

    at: KeyPath
    wrong: str
    todo: str = ""
    got: str | None = None
    code: Code = "rule"
    rests_on: KeyPath | None = None

    def line(self, document: Document) -> str:
        """Return the line that a user reads."""
        got = document.got(self.at) if self.got is None else self.got
        text = f"{self.wrong}, got {got}" if got else self.wrong
        if self.todo:
            text = f"{text}; {self.todo}"
        key = dotted(self.at)
        return ": ".join(part for part in (document.source, key, text) if part)


Mistakes = Iterator[Mistake]


def dotted(at: KeyPath) -> str:
    """Return the keys ``at`` as a user reads them."""
    return ".".join(str(key) for key in at)


def refuse(
    key: str, wrong: str, todo: str = "", *, got: str | None = None, code: Code = "rule"
) -> Mistake:
    """Return the mistake at ``key``, a dotted path within the part that a rule judges."""
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
