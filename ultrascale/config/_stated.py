"""Parts of a cluster from the arguments of a program, in place of a cluster file."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

import pydantic
from msgspec import field
from msgspec.structs import replace

from ultrascale.config._base import Model, Section, Seen, read_as
from ultrascale.config._document import KeyPath, inner, is_list, is_mapping, shortened
from ultrascale.config._errors import Mistake
from ultrascale.config._form import broken_places, form_mistakes, value_at
from ultrascale.config._parts import Parts, parts_beside, parts_of, parts_seen
from ultrascale.config._rules import Rules, rule
from ultrascale.config._texts import text_mistakes
from ultrascale.errors import Diagnostic
from ultrascale.frozen import Frozen

M = TypeVar("M", bound=Model)

TOKEN = "a token"
"""Name of a not yet known value in error lines."""


class Stated(Frozen):
    """A part of a cluster from arguments."""

    kind: type[Model]  # Its type
    # Its place in other parts' mistakes: a word, or a word and a number in a list.
    at: KeyPath
    keys: Mapping[str, object]  # Its keys and values; None leaves a key out
    # Argument behind a path of keys, where it is not named after the path's first key.
    names: Mapping[KeyPath, str] = field(default_factory=dict[KeyPath, str])
    prefix: str = ""  # Prefix of its arguments' names, such as ``instance_groups[0].``

    def argument(self, at: KeyPath) -> str | None:
        """Return the argument behind the place ``at``; None for another part's place."""
        if at[: len(self.at)] != self.at:
            return None
        path = at[len(self.at) :]
        for length in range(len(path), -1, -1):
            known = self.names.get(path[:length])
            if known is not None:
                return f"{self.prefix}{_dotted(known, path[length:])}"
        if not path:
            return self.prefix.rstrip(".") or "arguments"
        return f"{self.prefix}{_dotted(str(path[0]), path[1:])}"


class StatedReading(Frozen):
    """Parts from arguments, as far as they could be read."""

    stated: tuple[Stated, ...]  # The parts
    values: Mapping[str, object]  # Their values by place
    parts: Parts  # Every readable part
    mistakes: tuple[Mistake, ...]  # Mistakes in the parts themselves
    unknown: Collection[str]  # Stand-ins for values that are not known yet

    def judge(self, rules: Rules) -> Iterator[Mistake]:
        return rules.judge(self.parts)

    def every(self, kind: type[M]) -> tuple[M, ...]:
        return tuple(part.item for part in self.parts.readable(kind) if isinstance(part.item, kind))

    def lines(self, mistakes: Iterable[Mistake]) -> Iterator[str]:
        for mistake in sorted(mistakes, key=lambda mistake: self._order(mistake.at)):
            known = (part.argument(mistake.at) for part in self.stated)
            first = str(mistake.at[0]) if mistake.at else "arguments"
            yield Diagnostic(
                message=mistake.wrong,
                key=next(filter(None, known), None) or _dotted(first, mistake.at[1:]),
                value=self._spelling(mistake.at) if mistake.got is None else mistake.got,
                fix=mistake.todo,
            ).keyed

    def _order(self, at: KeyPath) -> list[int]:
        """Return the number of each key among its siblings, as far as the values have them."""
        numbers: list[int] = []
        value: object = self.values
        for key in at:
            if is_mapping(value) and key in value:
                numbers.append([*value].index(str(key)))
            elif is_list(value) and isinstance(key, int):
                numbers.append(key)
            else:
                break
            value = inner(value, key)
        return numbers

    def _spelling(self, at: KeyPath) -> str:
        try:
            return spelled(value_at(self.values, at), self.unknown)
        except KeyError:
            return ""


def read_stated(
    stated: Sequence[Stated],
    *,
    around: tuple[Section, ...] = (),
    unknown: Collection[str] = (),
) -> StatedReading:
    """Read and judge parts, as far as they can be read.

    Args:
        stated: The parts, each at a place of its own.
        around: Sections that rules take and do not judge.
        unknown: Stand-ins for values that are not known yet.
    """
    values: dict[str, object] = {}
    parts: dict[KeyPath, Parts] = {}
    mistakes: list[Mistake] = []
    for part in stated:
        value = {key: _as_document(value) for key, value in part.keys.items() if value is not None}
        name, *number = part.at
        # Items of a list come in their order.
        before = values.get(str(name), ())
        values[str(name)] = (*before, value) if number and is_list(before) else value
        parts[part.at], own = _read(part.kind, value)
        mistakes += [replace(mistake, at=(*part.at, *mistake.at)) for mistake in own]
    every = parts_beside(parts, values, around)
    return StatedReading(
        stated=tuple(stated),
        values=values,
        parts=every,
        mistakes=(*mistakes, *rule.judge(every)),
        unknown=unknown,
    )


def spelled(value: object, unknown: Collection[str] = ()) -> str:
    """Return ``value`` on one line, as a cluster file would spell it, shortened when long.

    Args:
        value: The value.
        unknown: Stand-ins for values that are not known yet.
    """
    if isinstance(value, datetime):
        return repr(value.isoformat().replace("+00:00", "Z"))
    if isinstance(value, str):
        return shortened([repr(TOKEN if value in unknown else value)])
    return shortened(_flow(value, unknown))


def _read(kind: type[Model], value: Mapping[str, object]) -> tuple[Parts, list[Mistake]]:
    """Return the parts of ``value``, as far as it is a ``kind``, and its mistakes of form."""
    seen, texts = Seen(), text_mistakes(value)
    try:
        return parts_of(read_as(kind, value, seen)), [*texts]
    except pydantic.ValidationError as error:
        parts = parts_seen(kind, value, seen, broken_places(error, value), outer=None)
        return parts, [*form_mistakes(error, value, seen), *texts]


def _as_document(value: object) -> object:
    """Return ``value`` with a document's types; any other type becomes its text."""
    if is_mapping(value):
        return {str(key): _as_document(item) for key, item in value.items() if item is not None}
    if is_list(value):
        return tuple(_as_document(item) for item in value)
    known = value is None or isinstance(value, bool | int | float | str | datetime)
    return value if known else str(value)


def _flow(value: object, unknown: Collection[str]) -> Iterator[str]:
    if is_mapping(value):
        yield "{"
        for number, (key, item) in enumerate(value.items()):
            yield f"{', ' if number else ''}{key}: "
            yield from _flow(item, unknown)
        yield "}"
    elif is_list(value):
        yield "["
        for number, item in enumerate(value):
            yield ", " if number else ""
            yield from _flow(item, unknown)
        yield "]"
    elif isinstance(value, str):
        text = TOKEN if value in unknown else value
        yield text if text.isprintable() else repr(text)
    elif isinstance(value, bool):
        yield "true" if value else "false"
    else:
        yield "null" if value is None else str(value)


def _dotted(name: str, rest: KeyPath) -> str:
    return name + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in rest)
