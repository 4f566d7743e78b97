"""Mutations of cluster files and job files: of their parts, of their text, of their bytes."""

import copy
import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, cast

from tests.support.fuzz.keys import Place, Schema, at, missing, places, put
from tests.support.fuzz.values import HOSTILE_TEXTS, hostile_value, value_of
from tests.support.pools import as_text

Part = tuple[Place, Any, Sequence[Schema]]
# More of them say nothing that fewer do not.
_MOST = 4
_REPEATED = (2, 3, 30, 120)

_TAGS = (
    *(
        "!!bool",
        "!!int",
        "!!float",
        "!!null",
        "!!timestamp",
        "!!binary",
        "!!set",
        "!!omap",
        "!!pairs",
    ),
    *(
        "!!str",
        "!!map",
        "!!seq",
        "!!merge",
        "!!value",
        "!own",
        "!!python/object/apply:os.system",
        "!",
    ),
)
_LINES = (
    *(
        "---",
        "...",
        "%YAML 1.2",
        "%TAG ! tag:a:",
        "? a",
        "- a",
        "<<: *a",
        "a: &a [*a]",
        "a: &a {<<: *a}",
    ),
    *(
        "\ta: 1",
        "a: |",
        "a: >-",
        "a: 'b",
        'a: "b',
        "a: [b",
        "a: {b",
        "# comment",
        "<<: {name: other}",
    ),
    *('"\\x41": 1', '"\\ud800": 1', '"a\\u0007": 1', "1: 2", "null: 3", "[a, b]: 4", "{a: b}: 5"),
)


def mutated_document(document: Any, schema: Schema, random: Random) -> Any:
    """Return ``document`` with some of its parts changed."""
    changed = copy.deepcopy(document)
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, _MOST))):
        parts: list[Part] = [*places(schema, changed)]
        if not parts:
            break
        random.choice(_MUTATIONS)(changed, random.choice(parts), parts, schema, random)
    return changed


def mutated_text(text: str, random: Random) -> bytes:
    """Return ``text`` with tags, anchors, characters and lines that YAML may read otherwise."""
    for _ in range(random.choice((1, 1, 2, 3))):
        text = random.choice(_TEXT_MUTATIONS)(text, random)
    encoding = random.choice(("utf-8",) * 12 + ("utf-8-sig", "utf-16", "utf-32", "latin-1"))
    data = text.encode(encoding, "backslashreplace")
    if random.random() < 0.04:
        place = random.randrange(len(data) + 1)
        data = data[:place] + bytes([random.randrange(256)]) + data[place:]
    return data


def written(document: Any) -> str:
    """Return ``document`` as a file."""
    return as_text(document)


def _replace(changed: Any, part: Part, parts: list[Part], schema: Schema, random: Random) -> None:
    """Take another value that the key's type allows."""
    place, _, schemas = part
    put(changed, place, value_of({"anyOf": schemas} if schemas else {}, place, random))


def _retype(changed: Any, part: Part, parts: list[Part], schema: Schema, random: Random) -> None:
    """Take a value that the key's type does not expect."""
    put(changed, part[0], hostile_value(random))


def _wrap(changed: Any, part: Part, parts: list[Part], schema: Schema, random: Random) -> None:
    place, value, _ = part
    put(changed, place, random.choice(([value], {"a": value}, str(value), [value, value])))


def _remove(changed: Any, part: Part, parts: list[Part], schema: Schema, random: Random) -> None:
    place, _, _ = part
    del at(changed, place[:-1])[place[-1]]


def _rename(changed: Any, part: Part, parts: list[Part], schema: Schema, random: Random) -> None:
    place, value, _ = part
    parent, key = at(changed, place[:-1]), place[-1]
    if isinstance(key, str):
        del parent[key]
        slips = (
            key[:-1],
            f"{key}s",
            key.upper(),
            key.replace("_", "-"),
            f" {key}",
            f"{key}\x1b[0m",
        )
        parent[random.choice((*slips, random.choice(HOSTILE_TEXTS), 7))] = value


def _repeat(changed: Any, part: Part, parts: list[Part], schema: Schema, random: Random) -> None:
    """Repeat an item of a list, by its name or by others."""
    lists: list[list[Any]] = [value for _, value, _ in parts if isinstance(value, list) and value]
    if not lists:
        return
    items = random.choice(lists)
    item: object = random.choice(items)
    count = random.choice(_REPEATED)
    own_names = random.random() < 0.8
    items += [_again(item, number, own_name=own_names) for number in range(count)]


def _again(item: object, number: int, *, own_name: bool) -> object:
    other = copy.deepcopy(item)
    if own_name and isinstance(other, str):
        return f"{other}{number}"
    if own_name and isinstance(other, dict) and "name" in other:
        other["name"] = f"{other['name']}{number}"
    return cast("object", other)


def _swap(changed: Any, part: Part, parts: list[Part], schema: Schema, random: Random) -> None:
    put(changed, part[0], copy.deepcopy(random.choice(parts)[1]))


def _add(changed: Any, part: Part, parts: list[Part], schema: Schema, random: Random) -> None:
    """Add a key that the file might have and has not."""
    absent = [*missing(schema, changed)]
    if absent:
        place, schemas = random.choice(absent)
        put(changed, place, value_of({"anyOf": schemas}, place, random))


def _extreme(changed: Any, part: Part, parts: list[Part], schema: Schema, random: Random) -> None:
    """Change a number a little, or by a lot."""
    numbers = [
        (place, value)
        for place, value, _ in parts
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    if numbers:
        place, value = random.choice(numbers)
        others = (value + 1, value - 1, -value, value * 2, value // 2, value * 1_000, value + 0.5)
        put(changed, place, random.choice(others))


_MUTATIONS: Sequence[Callable[[Any, Part, list[Part], Schema, Random], None]] = (
    *(_replace, _replace, _retype, _retype, _wrap, _remove, _rename),
    *(_repeat, _swap, _add, _add, _add, _extreme),
)


def _tag(text: str, random: Random) -> str:
    return _before_value(text, f"{random.choice(_TAGS)} ", random)


def _anchor(text: str, random: Random) -> str:
    """Anchor a value, and put an alias of it for a later one."""
    head, mark, tail = _before_value(text, "&fuzz ", random).partition("&fuzz ")
    first, end, rest = tail.partition("\n")
    return head + mark + first + end + re.sub(r"(?<=: )[^\s{\[&][^\n]*", "*fuzz", rest, count=1)


def _before_value(text: str, inserted: str, random: Random) -> str:
    ends = [found.end() for found in re.finditer(r"(: |- )(?=\S)", text)]
    if not ends:
        return inserted + text
    end = random.choice(ends)
    return text[:end] + inserted + text[end:]


def _spell(text: str, random: Random) -> str:
    """Put a word that YAML readers disagree on for a value, without quotes."""
    values = [*re.finditer(r"(?<=: )[^\s{\[][^\n]*|(?<=- )[^\s{\[:][^\n:]*(?=\n)", text)]
    if not values:
        return text
    found = random.choice(values)
    return text[: found.start()] + random.choice(HOSTILE_TEXTS) + text[found.end() :]


def _insert(text: str, random: Random) -> str:
    lines = text.split("\n")
    number = random.randrange(len(lines) + 1)
    before = lines[number - 1] if number else ""
    indent = before[: len(before) - len(before.lstrip(" "))]
    return "\n".join([*lines[:number], indent + random.choice(_LINES), *lines[number:]])


def _repeat_line(text: str, random: Random) -> str:
    lines = text.split("\n")
    number = random.randrange(len(lines))
    return "\n".join([*lines[:number], lines[number], *lines[number:]])


def _character(text: str, random: Random) -> str:
    place = random.randrange(len(text) + 1)
    put_in = random.choice((*":-{}[]&*!|>'\"%@`?,# \n~=<\t\\\r\x00\x1b\x85\u2028\ufeffé🙂\ud800",))
    return text[:place] + put_in + text[place + random.randint(0, 1) :]


def _cut(text: str, random: Random) -> str:
    return text[: random.randrange(len(text) + 1)]


def _nest(text: str, random: Random) -> str:
    depth = random.choice((10, 200, 5_000))
    return _before_value(text, "[" * depth + random.choice(("", "]" * depth)), random)


def _alias_bomb(text: str, random: Random) -> str:
    levels, width = random.choice(((3, 3), (9, 9), (24, 2)))
    lines = ["fuzz0: &fuzz0 [a, b]"]
    for level in range(levels):
        lines.append(f"fuzz{level + 1}: &fuzz{level + 1} [{', '.join([f'*fuzz{level}'] * width)}]")
    return "\n".join([*lines, text])


_TEXT_MUTATIONS: Sequence[Callable[[str, Random], str]] = (
    *(_tag, _tag, _spell, _spell, _spell, _anchor, _insert, _insert, _repeat_line),
    *(_character, _character, _cut, _nest, _alias_bomb),
)
