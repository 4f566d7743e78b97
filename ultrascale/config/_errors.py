"""What is wrong with a cluster file, and how it is said."""

import difflib
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import pydantic
from pydantic_core import ErrorDetails

from ultrascale.config._base import WrongValueError
from ultrascale.config._document import Document, KeyPath


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake in a cluster file.

    Attributes:
        at: Keys that lead to the wrong value.
        wrong: What is wrong with it.
        todo: What to do about it.
        got: The value; None: as the file spells it at ``at``; empty: ``wrong`` names it.
        judged: Keys of the values that it rests on, where a rule found it.
    """

    at: KeyPath
    wrong: str
    todo: str = ""
    got: str | None = None
    judged: frozenset[KeyPath] = frozenset()

    def line(self, document: Document) -> str:
        """Return the line that a user reads."""
        got = document.got(self.at) if self.got is None else self.got
        text = f"{self.wrong}, got {got}" if got else self.wrong
        if self.todo:
            text = f"{text}; {self.todo}"
        key = ".".join(str(part) for part in self.at)
        return ": ".join(part for part in (document.source, key, text) if part)


def refuse(key: str, wrong: str, todo: str = "", *, got: str | None = None) -> Mistake:
    """Return the mistake at ``key``, a dotted path within the part that a rule judges."""
    at = tuple(int(part) if part.isdigit() else part for part in key.split(".") if part)
    return Mistake(at, wrong, todo, got)


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


def form_mistakes(error: pydantic.ValidationError, at: KeyPath) -> Iterator[Mistake]:
    """Yield what pydantic found wrong with the value at ``at``."""
    for item in error.errors(include_url=False):
        if item["type"] == "too_short" and item["input"]:
            continue  # pydantic counts the items that are right
        # In a mapping, pydantic marks a wrong key by a last part that is no key of the file.
        where = tuple(part for part in item["loc"] if part != "[key]")
        wrong, todo, got = _text(item)
        if got is None and item["loc"][-1:] == ("[key]",):
            got = repr(item["input"])
        yield Mistake((*at, *where), wrong, todo, got)


_TYPES = {
    "int_type": ("not a whole number", "write digits alone"),
    "float_type": ("not a number", "write digits alone"),
    "bool_type": ("not true or false", "write true or false"),
    "tuple_type": ("not a list", "write it in brackets, as [a, b]"),
    "dict_type": ("not a mapping", "write it as {key: value}"),
    "mapping_type": ("not a mapping", "write it as {key: value}"),
}


def _text(item: ErrorDetails) -> tuple[str, str, str | None]:
    """Return what is wrong, what to do, and the value where the file does not spell it."""
    context = item.get("ctx", {})
    refusal = context.get("error")
    if isinstance(refusal, WrongValueError):
        return refusal.wrong, refusal.todo, "" if refusal.complete else None
    if item["type"] == "string_type":
        if isinstance(item["input"], dict | tuple) or item["input"] is None:
            return "not text", "write one word", None
        return "not text", "put it in quotes", None
    if item["type"] in _TYPES:
        return (*_TYPES[item["type"]], None)
    if item["type"] == "literal_error":
        expected = str(context["expected"]).replace("'", "")
        choices = expected.replace(" or ", ", ").split(", ")
        return "unknown value", _choice(item["input"], choices), None
    bounds = {
        "greater_than_equal": "at least {ge:g}",
        "greater_than": "more than {gt:g}",
        "less_than_equal": "at most {le:g}",
        "less_than": "less than {lt:g}",
    }
    if item["type"] in bounds:
        bound = bounds[item["type"]].format(**context)
        return "out of range", f"write {bound}", None
    if item["type"] in ("too_short", "string_too_short"):
        return "empty", "write at least one", None
    message = item["msg"]
    return message[:1].lower() + message[1:], "", None


def _choice(value: object, choices: list[str]) -> str:
    match = difflib.get_close_matches(value, choices, n=1) if isinstance(value, str) else []
    if match:
        return f"did you mean {match[0]}?"
    *others, last = choices
    return f"write {', '.join(others)} or {last}" if others else f"write {last}"
