"""Parts of a cluster that the arguments of a program state, in place of a cluster file."""

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
"""Name of a value that is not known yet, in error lines."""


class Stated(Frozen):
    """A part that arguments state."""

    kind: type[Model]  # Its type
    # Its place, by which mistakes of other parts name it: a word, or a word and a number in a list.
    at: KeyPath
    keys: Mapping[str, object]  # Its keys and values; those that are None are left out
    # Argument that gives the value at a path of keys, where it is not called as the first of them.
    names: Mapping[KeyPath, str] = field(default_factory=dict[KeyPath, str])
    prefix: str = ""  # Stands before the names of its arguments, such as ``instance_groups[0].``

    def argument(self, at: KeyPath) -> str | None:
        """Return the argument behind the place ``at``; None for another part's."""
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
    """Parts that arguments state, as far as they could be read."""

    stated: tuple[Stated, ...]  # The parts
    values: Mapping[str, object]  # Their values, each at its place
    parts: Parts  # Everything that could be read
    mistakes: tuple[Mistake, ...]  # What is wrong with the parts in themselves
    unknown: Collection[str]  # Values that stand for what is not known yet

    def judge(self, rules: Rules) -> Iterator[Mistake]:
        """Yield what ``rules`` find wrong with what could be read."""
        return rules.judge(self.parts)

    def every(self, kind: type[M]) -> tuple[M, ...]:
        """Return the readable parts of a type, in their order."""
        return tuple(each.item for each in self.parts.of(kind) if isinstance(each.item, kind))

    def lines(self, mistakes: Iterable[Mistake]) -> Iterator[str]:
        """Yield the line of each mistake in the order of the parts and of their keys."""
        for mistake in sorted(mistakes, key=lambda each: self._order(each.at)):
            known = (part.argument(mistake.at) for part in self.stated)
            first = str(mistake.at[0]) if mistake.at else "arguments"
            yield Diagnostic(
                message=mistake.wrong,
                key=next(filter(None, known), None) or _dotted(first, mistake.at[1:]),
                value=self._got(mistake.at) if mistake.got is None else mistake.got,
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

    def _got(self, at: KeyPath) -> str:
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
        unknown: Texts that stand for values which are not known yet.
    """
    values: dict[str, object] = {}
    parts: dict[KeyPath, Parts] = {}
    mistakes: list[Mistake] = []
    for part in stated:
        value = {key: _plain(each) for key, each in part.keys.items() if each is not None}
        name, *number = part.at
        # Those of a list come in their order.
        before = values.get(str(name), ())
        values[str(name)] = (*before, value) if number and is_list(before) else value
        parts[part.at], own = _read(part.kind, value)
        mistakes += [replace(each, at=(*part.at, *each.at)) for each in own]
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
        unknown: Texts that stand for values which are not known yet.
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


def _plain(value: object) -> object:
    """Return ``value`` as a document has it; of what a document has not, its text."""
    if is_mapping(value):
        return {str(key): _plain(item) for key, item in value.items() if item is not None}
    if is_list(value):
        return tuple(_plain(item) for item in value)
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
