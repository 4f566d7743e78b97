"""Settings whose new value may open access: functions from which the tables are built."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from ultrascale.documents import Json, JsonObject, sequence
from ultrascale.guard.replacement import value_at
from ultrascale.guard.templates import shown_change, text_of

Opening: TypeAlias = Callable[[JsonObject, JsonObject], Iterator[str]]
"""A function of the properties before and after; yields each opening as `opening_text` words it."""
Opens: TypeAlias = Callable[[Json, Json], bool]
"""A function of a value before and after that returns whether the change opens something."""

_MOST = 160


def opening_text(setting: str, before: Json, after: Json) -> str:
    """Return a setting, its value before and its value after as words for people."""
    was, becomes = shown_change(before, after, most=_MOST)
    return f"{setting}: {was} -> {becomes}"


def opening_at(path: str, opens: Opens) -> Opening:
    """Return the opening that ``opens`` sees in the value at a path."""

    def opening(old: JsonObject, new: JsonObject) -> Iterator[str]:
        before, after = value_at(old, path), value_at(new, path)
        if opens(before, after):
            yield opening_text(path, before, after)

    return opening


def loses_a_member(before: Json, after: Json) -> bool:
    """Return whether a list has lost a member."""
    kept = [*map(text_of, sequence(after))]
    return any(text_of(member) not in kept for member in sequence(before))


def is_unset(before: Json, after: Json) -> bool:
    """Return whether the value is gone; for a list, whether more members lack it."""
    return _missing_members(after) > _missing_members(before)


def becomes(*values: str) -> Opens:
    """Return the test whether a value turns into one of ``values``."""

    def opens(before: Json, after: Json) -> bool:
        return text_of(after) in values and text_of(before) not in values

    return opens


def is_no_longer(*values: str) -> Opens:
    """Return the test whether a value of ``values`` turns into another value."""

    def opens(before: Json, after: Json) -> bool:
        return text_of(before) in values and text_of(after) not in values

    return opens


def _missing_members(value: Json) -> int:
    return sum(item is None for item in (value if isinstance(value, list) else [value]))
