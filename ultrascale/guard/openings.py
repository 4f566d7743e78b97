"""Settings that open something by another value: parts of the tables of resources and objects."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from ultrascale.documents import Json, JsonObject, sequence
from ultrascale.guard.properties import at
from ultrascale.guard.templates import shown_change, text_of

Opening: TypeAlias = Callable[[JsonObject, JsonObject], Iterator[str]]
"""A function of the properties before and after that yields what opens, as `told_change` has it."""
Opens: TypeAlias = Callable[[Json, Json], bool]
"""A function of a value before and after that returns whether the change opens something."""

_MOST = 160


def told_change(setting: str, before: Json, after: Json) -> str:
    """Return a setting with its value before and after."""
    was, becomes = shown_change(before, after, most=_MOST)
    return f"{setting}: {was} -> {becomes}"


def when(path: str, opens: Opens) -> Opening:
    """Return what the value at a path opens."""

    def opening(old: JsonObject, new: JsonObject) -> Iterator[str]:
        before, after = at(old, path), at(new, path)
        if opens(before, after):
            yield told_change(path, before, after)

    return opening


def loses_a_member(before: Json, after: Json) -> bool:
    """Return whether a list has a member no more."""
    kept = [*map(text_of, sequence(after))]
    return any(text_of(member) not in kept for member in sequence(before))


def is_unset(before: Json, after: Json) -> bool:
    """Return whether the value is there no more; of a list, whether more members lack it."""
    return _missing(after) > _missing(before)


def becomes(*values: str) -> Opens:
    """Return whether the value is one of ``values`` and was none of them."""

    def opens(before: Json, after: Json) -> bool:
        return text_of(after) in values and text_of(before) not in values

    return opens


def was(*values: str) -> Opens:
    """Return whether the value is set, and was one of ``values`` and is none of them."""

    def opens(before: Json, after: Json) -> bool:
        return text_of(before) in values and text_of(after) not in values

    return opens


def _missing(value: Json) -> int:
    return sum(item is None for item in (value if isinstance(value, list) else [value]))
