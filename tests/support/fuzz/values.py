"""Values for keys of a cluster file: likely ones, edges of what is allowed, hostile ones."""

import copy
import importlib
import re
from collections.abc import Sequence
from random import Random
from typing import Any

from tests.support.fuzz.keys import Place, Schema, held, keys_of, options

_parser: Any = importlib.import_module("re._parser")

_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789-"
_WORDS: dict[str, str] = {
    "CATEGORY_DIGIT": "0123456789",
    "CATEGORY_WORD": "abcXYZ019_é",
    "CATEGORY_SPACE": " ",
    "CATEGORY_NOT_SPACE": "abc/.-",
}
_KINDS: dict[str | None, type] = {"object": dict, "array": list, "string": str, "boolean": bool}

# What YAML readers disagree on, what terminals and shells take for orders, what templates replace.
HOSTILE_TEXTS: Sequence[str] = (
    *("1e-4", "1e3", "y", "n", "on", "off", "0o17", "012", "1_000", "20:00", "~", "=", "<<"),
    *(
        "2026-12-01",
        "2026-12-01T11:30:00Z",
        ".inf",
        ".NaN",
        "null",
        "true",
        "No",
        "0x1F",
        "+1",
        ".",
    ),
    *(
        "",
        " ",
        "-",
        "?",
        ":",
        "a: b",
        "a #b",
        "'",
        '"',
        "\\",
        "{}",
        "[]",
        "&a",
        "*a",
        "!a",
        "%a",
        "@a",
    ),
    *("`a`", "$(id)", "${Token[TOKEN.12]}", "${AWS::Region}", "{{resolve:ssm:a}}", "%s", "{0}"),
    *("\x1b[31mred", "a\x00b", "a\x07", "a\x7f", "a\x85b", "a\u2028b", "\ufeffa", "a\nb", "a\r\nb"),
    *(
        "\u202eabc",
        "é",
        "🙂",
        "\u0661\u0662",
        "A" * 300,
        "a" * 70_000,
        "../../etc",
        "/",
        "a/../b",
        "//",
    ),
    *(
        "0.0.0.0/0",
        "255.255.255.255/32",
        "::/0",
        "10.0.0.0/33",
        "us-east-1x",
        "arn:aws:iam::0:role/a",
    ),
)
HOSTILE_NUMBERS: Sequence[float] = (
    *(0, -1, 1, 2, 7, 100, 1_000, 65_535, 65_536, 100_000, 2**31 - 1, 2**31, 2**63, 2**64, 10**25),
    *(0.1, 0.5, 1.5, -0.0, 1e-9, 1e16, 1e300, float("inf"), float("-inf"), float("nan")),
)

_HOSTILE_SHAPES: Sequence[Any] = (
    *([], {}, None, True, False, [[]], [None], {"a": 1}, [{}], {1: 2}, ["a"] * 3),
)


def value_of(schema: Schema, place: Place, random: Random, *, depth: int = 0) -> Any:
    """Return a value that a key with ``schema`` at ``place`` may have, as far as its type says."""
    chosen = random.choice(options(schema))
    known = [
        each for each in held(place) if isinstance(each, _KINDS.get(chosen.get("type"), object))
    ]
    if known and random.random() < 0.6:
        return copy.deepcopy(random.choice(known))
    if "const" in chosen:
        return chosen["const"]
    if "enum" in chosen:
        return random.choice(chosen["enum"])
    kind = chosen.get("type")
    if kind == "object":
        return _mapping(chosen, place, random, depth)
    if kind == "array":
        least = chosen.get("minItems", 0)
        most = 2 if depth > 3 else random.choice((1, 1, 2, 3))
        items: Schema = chosen.get("items", {})
        numbers = range(max(least, most))
        return [value_of(items, (*place, each), random, depth=depth + 1) for each in numbers]
    if kind in ("integer", "number"):
        return _number(chosen, random)
    if kind == "boolean":
        return random.random() < 0.5
    if kind == "null":
        return None
    return _text(chosen, random)


def hostile_value(random: Random) -> Any:
    """Return a value that hardly a key takes."""
    if random.random() < 0.5:
        return random.choice(HOSTILE_TEXTS)
    if random.random() < 0.5:
        return random.choice(HOSTILE_NUMBERS)
    return copy.deepcopy(random.choice(_HOSTILE_SHAPES))


def _mapping(schema: Schema, place: Place, random: Random, depth: int) -> dict[str, Any]:
    required = schema.get("required", ())
    chance = 0.35 / (1 + depth)
    made = {
        key: value_of(inner, (*place, key), random, depth=depth + 1)
        for key, inner in keys_of(schema).items()
        if key in required or random.random() < chance
    }
    for pattern, inner in schema.get("patternProperties", {}).items():
        for _ in range(random.choice((1, 1, 2))):
            key = matching(pattern, random)
            made[key] = value_of(inner, (*place, key), random, depth=depth + 1)
    return made


def _number(schema: Schema, random: Random) -> float:
    least, most = schema.get("minimum", 0), schema.get("maximum", 1_000)
    if random.random() < 0.5:
        return random.choice((least, most, least + 1, max(least, most - 1)))
    if schema["type"] == "number":
        return round(random.uniform(least, most), 3)
    return random.randint(int(least), int(most))


def _text(schema: Schema, random: Random) -> str:
    if "pattern" in schema:
        return matching(schema["pattern"], random)
    if random.random() < 0.3:
        return random.choice(HOSTILE_TEXTS)
    return "".join(random.choice(_LETTERS) for _ in range(random.randint(1, 12)))


def matching(pattern: str, random: Random) -> str:
    """Return a text that ``pattern`` matches, or nearly does where it looks ahead."""
    text = ""
    for _ in range(5):
        text = _matched(_parser.parse(pattern), random)
        if re.search(pattern, text):
            break
    return text


def _matched(parsed: Any, random: Random) -> str:
    return "".join(_one(str(operator), argument, random) for operator, argument in parsed)


def _one(operator: str, argument: Any, random: Random) -> str:
    match operator:
        case "LITERAL":
            return chr(argument)
        case "NOT_LITERAL" | "ANY":
            return "a" if operator == "ANY" or chr(argument) != "a" else "b"
        case "IN":
            return _of_set(argument, random)
        case "BRANCH":
            return _matched(random.choice(argument[1]), random)
        case "SUBPATTERN":
            return _matched(argument[3], random)
        case "MAX_REPEAT" | "MIN_REPEAT":
            least, most, inner = argument
            count = random.choice((least, least + 1, min(int(most), least + 6), min(int(most), 70)))
            return "".join(_matched(inner, random) for _ in range(min(count, int(most))))
        case _:
            return ""  # an anchor, or a look ahead


def _of_set(members: Any, random: Random) -> str:
    if str(members[0][0]) == "NEGATE":
        return random.choice("abc.09_")
    operator, argument = random.choice(members)
    if str(operator) == "RANGE":
        return chr(random.randint(*argument))
    return chr(argument) if str(operator) == "LITERAL" else random.choice(_WORDS[str(argument)])
