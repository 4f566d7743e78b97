"""Mistakes of form: pydantic's errors in the user's words."""

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, get_args, get_origin

import pydantic
from pydantic_core import ErrorDetails

from ultrascale.catalog import addons
from ultrascale.config._base import UNKNOWN_OPTION, Model, Seen
from ultrascale.config._document import Key, KeyPath, is_list, is_mapping
from ultrascale.config._errors import Mistake, near
from ultrascale.config._values import WrongValueError

_KEY = "[key]"
"""Pydantic's last part of the place of a wrong key."""

# Keys that users look for, with the remedy where no key has a near name.
_OTHER_WAYS: Mapping[KeyPath, str] = {
    ("hyperpod", "inference_operator"): addons.REFUSED[addons.INFERENCE_OPERATOR][1]
}

_FOLLOWS = "default_factory_not_called"
"""A default that would follow from a value with a mistake of its own."""

_TYPES = {
    "int_type": ("not a whole number", "write digits alone"),
    "float_type": ("not a number", "write digits alone"),
    "bool_type": ("not true or false", "write true or false"),
    "tuple_type": ("not a list", "write it in brackets, as [a, b]"),
    "dict_type": ("not a mapping", "write it as {key: value}"),
    "mapping_type": ("not a mapping", "write it as {key: value}"),
    "model_type": ("not a mapping", "write it as key: value"),
}
_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}


def form_mistakes(
    error: pydantic.ValidationError,
    document: Mapping[str, object],
    seen: Seen,
    *,
    laid_over: bool = False,
) -> Iterator[Mistake]:
    """Yield the mistakes of form that pydantic finds in ``document``.

    Args:
        error: Pydantic's error.
        document: The document that it read.
        seen: The mappings that it read.
        laid_over: Whether the document's keys were laid over those of another document, so that
            an existing key need not be the user's.
    """
    items = [
        (_place(item, document), item)
        for item in error.errors(include_url=False)
        if item["type"] != _FOLLOWS
    ]
    hints = {
        at: _unknown_key(at, document, seen, laid_over=laid_over)
        for at, item in items
        if item["type"] == "extra_forbidden"
    }
    # A misspelt key gets one line: it is not reported as missing too.
    meant = {(*at[:-1], key) for at, (key, _) in hints.items()}
    for at, item in items:
        if item["type"] == "extra_forbidden":
            yield _mistake(at, f"unknown key {str(at[-1])!r}", hints[at][1], got="")
        elif item["type"] == "missing":
            if at not in meant:
                yield _mistake(at, "missing", "add it", got="")
        elif item["type"] == "too_short" and item["input"]:
            continue  # pydantic counts the valid items only
        elif item["type"] == UNKNOWN_OPTION:
            yield _unknown_option(at, item, document)
        else:
            yield from _wrong_values(at, item)


def empty_keys(
    value: object, seen: Seen, broken: Collection[KeyPath] = (), at: KeyPath = ()
) -> Iterator[Mistake]:
    """Yield keys without a value, which would fall back to their defaults in silence.

    Args:
        value: A part of the document.
        seen: The mappings that pydantic read.
        broken: Places with another mistake of form.
        at: Keys that lead to the part.
    """
    if is_mapping(value):
        kind = seen.kinds.get(id(value))
        for key, item in value.items():
            place = (*at, key)
            if item is not None:
                yield from empty_keys(item, seen, broken, place)
            elif kind is not None and key in keys_of(kind) and place not in broken:
                yield _mistake(place, "no value", "write one, or leave the key out", got="")
    elif is_list(value):
        for number, item in enumerate(value):
            yield from empty_keys(item, seen, broken, (*at, number))


def broken_places(
    error: pydantic.ValidationError, document: Mapping[str, object]
) -> frozenset[KeyPath]:
    return frozenset(_place(item, document) for item in error.errors(include_url=False))


def value_at(document: Mapping[str, object], at: KeyPath) -> object:
    """Return the value at ``at``.

    Raises:
        KeyError: There is no value.
    """
    value: object = document
    for key in at:
        value = _inner(value, key)
    return value


def _inner(value: object, key: Key) -> object:
    if isinstance(key, str) and is_mapping(value):
        return value[key]
    if isinstance(key, int) and is_list(value) and key < len(value):
        return value[key]
    raise KeyError(key)


def _place(item: ErrorDetails, document: Mapping[str, object]) -> KeyPath:
    """Return the keys that lead to a value; pydantic adds the tags of types to them."""
    at: KeyPath = ()
    for key in item["loc"]:
        try:
            value_at(document, (*at, key))
        except KeyError:
            if item["type"] == "missing" and key == item["loc"][-1]:
                at = (*at, key)
        else:
            at = (*at, key)
    return at


def _unknown_key(
    at: KeyPath, document: Mapping[str, object], seen: Seen, *, laid_over: bool
) -> tuple[str, str]:
    """Return the key that a user likely meant, empty if none is near, and the remedy."""
    if other_way := _OTHER_WAYS.get(at):
        return "", other_way
    parent = value_at(document, at[:-1])
    kind = seen.kinds[id(parent)]
    known = keys_of(kind)
    unused: Sequence[str] = ()
    if is_mapping(parent) and not laid_over:
        unused = [key for key in known if key not in parent]
    if siblings := " or ".join(_siblings_with(kind, str(at[-1]))):
        return "", f"write {siblings}, or leave it out"
    match = difflib.get_close_matches(str(at[-1]), known, n=1)
    return "".join(match), near(str(at[-1]), known, unused)


def _siblings_with(kind: type[Model], key: str) -> Iterator[str]:
    """Yield the tags, as `kind: batch`, of sibling types of ``kind`` that have ``key``."""
    bases = (base for base in kind.__mro__ if issubclass(base, Model))
    # All parts of the file have those of the module of `Model`.
    *_, first = (base for base in bases if base.__module__ != Model.__module__)
    for other in dict.fromkeys(_leaves(first)):
        if key not in keys_of(other):
            continue
        for name, info in other.model_fields.items():
            if get_origin(info.annotation) is Literal and len(get_args(info.annotation)) == 1:
                yield f"{name}: {info.default}"


def _leaves(kind: type[Model]) -> Iterator[type[Model]]:
    """Yield the types that derive from ``kind`` and from which none derives."""
    for other in kind.__subclasses__():
        yield from _leaves(other) if other.__subclasses__() else (other,)


def keys_of(kind: type[Model]) -> Sequence[str]:
    return [info.alias or name for name, info in kind.model_fields.items()]


def _unknown_option(at: KeyPath, item: ErrorDetails, document: Mapping[str, object]) -> Mistake:
    value = value_at(document, at)
    if not is_mapping(value):
        return _mistake(at, *_TYPES["model_type"])
    context = item.get("ctx", {})
    key, known = str(context["key"]), str(context["known"]).split()
    option = value.get(key)
    return _mistake((*at, key), "unknown value", near(str(option or ""), known))


def _wrong_values(at: KeyPath, item: ErrorDetails) -> Iterator[Mistake]:
    refusal = item.get("ctx", {}).get("error")
    if not isinstance(refusal, WrongValueError):
        yield _wrong_value(at, item)
        return
    got = repr(item["input"]) if item["loc"][-1:] == (_KEY,) else None
    wrong, todo = refusal.wrong, refusal.todo
    if refusal.complete and not todo and "; " in wrong:
        wrong, _, todo = wrong.rpartition("; ")
    places = [(*at, number) for number in refusal.within] or [at]
    for place in places:
        yield _mistake(place, wrong, todo, got="" if refusal.complete else got)


def _wrong_value(at: KeyPath, item: ErrorDetails) -> Mistake:
    got = repr(item["input"]) if item["loc"][-1:] == (_KEY,) else None
    context = item.get("ctx", {})
    if item["type"] == "string_type":
        is_one = not is_mapping(item["input"]) and not is_list(item["input"])
        todo = "put it in quotes" if is_one and item["input"] is not None else "write one word"
        return _mistake(at, "not text", todo, got=got)
    if item["type"] in _TYPES:
        wrong, todo = _TYPES[item["type"]]
        if _is_number_to_some(item["input"]):
            todo = "write digits alone, without quotes and without a 0 before them"
        return _mistake(at, wrong, todo, got=got)
    if item["type"] == "literal_error":
        expected = str(context["expected"]).replace("'", "")
        choices = expected.replace(" or ", ", ").split(", ")
        return _mistake(at, "unknown value", _choice(item["input"], choices), got=got)
    if item["type"] in _BOUNDS:
        words, key = _BOUNDS[item["type"]]
        bound = context[key]
        number = f"{bound:g}" if isinstance(bound, float) else str(bound)
        return _mistake(at, "out of range", f"write {words} {number}", got=got)
    if item["type"] in ("too_short", "string_too_short"):
        return _mistake(at, "empty", "write at least one", got=got)
    message = item["msg"]
    return _mistake(at, message[:1].lower() + message[1:], got=got)


def _is_number_to_some(value: object) -> bool:
    """Return whether some readers of YAML read a text as a number: `012`, `20:00`, `1_000`."""
    return isinstance(value, str) and value[:1].isdigit() and value.isascii()


def _choice(value: object, choices: Sequence[str]) -> str:
    match = difflib.get_close_matches(value, choices, n=1) if isinstance(value, str) else []
    if match:
        return f"did you mean {match[0]}?"
    *others, last = choices
    return f"write {', '.join(others)} or {last}" if others else f"write {last}"


def _mistake(at: KeyPath, wrong: str, todo: str = "", *, got: str | None = None) -> Mistake:
    return Mistake(at, wrong, todo, got, code="form")
