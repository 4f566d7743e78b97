"""Tables of keys in the reference pages, and the JSON Schemas: `make docs`.

Reasons of failed deployments stand between ``<!-- failures: NAME -->`` and ``<!-- end -->``, the
speeds of recipes between ``<!-- recipes: speeds -->`` and that, the lives of facts between
``<!-- facts: lives -->`` and that.

A table stands between ``<!-- keys: NAMES -->`` and ``<!-- end -->``. The names are keys at the top
of the cluster file; ``jobs`` stands for the keys of every job, ``jobs.training`` for those that
only this kind of job has.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from ultrascale import config
from ultrascale.catalog import INSTANCE_TYPES
from ultrascale.catalog.deploy_failures import CDK_FAILURES, FAILURES, STATUSES
from ultrascale.catalog.lives import lives
from ultrascale.documents import Json, JsonObject, look_up, mapping, sequence, text
from ultrascale.parts.recipes.chosen import Chosen, on_type, step_of
from ultrascale.parts.recipes.command import interval_in_bucket
from ultrascale.parts.recipes.table import RECIPES, Speed
from ultrascale.plan.jobs.checkpoints import span

PAGES = tuple(
    Path(__file__).parent.parent / "docs" / name
    for name in ("cluster-file.md", "jobs.md", "recipes.md", "troubleshooting.md", "facts.md")
)
SCHEMAS = Path(__file__).parent.parent / "schema"
_TABLE = re.compile(
    r"(<!-- (keys|failures|recipes|facts): ([^>]+) -->\n).*?(<!-- end -->)", re.DOTALL
)
# Titles of values of shared types; the others are pydantic's.
_NAMED = ("IPv4 range", "time", "quantity")
# Regions and instance types are too many for a cell.
_MOST_CHOICES = 20
_DEFAULT = " Default: "
_SCHEMA = config.cluster_type().model_json_schema()
# A page explains the items of these lists once.
_WITHOUT_PREFIX = frozenset({"pools", "jobs"})


@dataclass(frozen=True, slots=True)
class Row:
    """A key of the reference."""

    key: str  # Path of the key
    value: str  # Values that it takes
    default: str  # Value where the file leaves it out
    meaning: str  # What it does
    options: tuple[str, ...] = ()  # Purchase options that have it; empty: all

    def cells(self) -> tuple[str, str, str, str]:
        """Return the cells of the row."""
        of = f" ({', '.join(self.options)})" if self.options else ""
        return f"`{self.key}`{of}", self.value, self.default, self.meaning


def with_tables(page: str) -> str:
    """Return the text of a page with its tables made anew."""

    def filled(match: re.Match[str]) -> str:
        names = match[3].split()
        made = _MAKERS[match[2]](names)
        return f"{match[1]}{made}{match[4]}"

    return _TABLE.sub(filled, page)


def _lives(_: Sequence[str]) -> str:
    """Return the table of the lives of facts."""
    lines = ["| kind | days | why |", "|---|---|---|"]
    for (kind, name), life in lives().items():
        named = f"`{kind}` {name}".strip()
        lines.append(f"| {named} | {life.days} | {life.why} |")
    return "\n".join((*lines, ""))


def _speeds(_: Sequence[str]) -> str:
    """Return the table of checkpoints and speeds, by recipe and accelerator."""
    lines = ["| recipe | accelerator | nodes | saved each | predicted | published |"]
    lines.append("|---" * 6 + "|")
    for recipe in RECIPES.values():
        planned = [(name, on_type(recipe, spec)) for name, spec in INSTANCE_TYPES.items()]
        for device, layout in recipe.layouts.items():
            fitting = (
                (plan, name)
                for name, plan in planned
                if plan is not None and plan.device.name == device and plan.memory.fits
            )
            # The first of the largest types.
            plan, name = max(fitting, key=lambda pair: pair[0].devices)
            lines.append(
                f"| `{recipe.name}` | {device} | {plan.nodes} `{name}` | "
                f"{span(interval_in_bucket(plan))} | {_predicted(plan)} | "
                f"{_published(layout.speed)} |"
            )
    return "\n".join(lines) + "\n"


def _predicted(plan: Chosen) -> str:
    seconds, source = step_of(plan)
    return f"{plan.tokens_per_step / seconds / plan.devices:,.0f}" if source else "unknown"


def _published(speed: Speed | None) -> str:
    if speed is None:
        return "none"
    rate = (
        f"{speed.tokens_per_second:,.0f}"
        if speed.tokens_per_second
        else f"{speed.share:.0%} of the peak"
    )
    return f"[{rate}]({speed.source})"


def _failures(names: Sequence[str]) -> str:
    """Return the table of reasons of failed deployments, or of statuses of stacks."""
    (name,) = names
    rows = STATUSES.items() if name == "statuses" else _reasons()
    head = "state" if name == "statuses" else "words of the error"
    body = "".join(f"| {first} | {_named(todo)} |\n" for first, todo in rows)
    return f"| {head} | what to do |\n|---|---|\n{body}"


def _reasons() -> Iterator[tuple[str, str]]:
    for failure in {row.pattern: row for row in (*FAILURES, *CDK_FAILURES)}.values():
        # Groups with alternatives of their own are few, and stay as they are.
        words = re.sub(r"\(([^()|]*)\)\?", "", failure.pattern)
        spelled = re.sub(r"\\S\*|\.\*|\\b\.\{0,60\}\\b", " … ", words).replace(" ?", "")
        plain = re.sub(" +", " ", spelled).replace(r"\(", "(").replace(r"\)", ")")
        parts = re.split(r"\|(?![^(]*\))", plain)
        yield ", ".join(f"`{part.replace('|', ' or ')}`" for part in parts), failure.todo


def _named(todo: str) -> str:
    names = {"file": "FILE", "stack": "STACK", "cluster": "CLUSTER", "region": "REGION"}
    return todo.format_map(names)


def rows(name: str) -> Iterator[Row]:
    """Yield the rows of the keys below one key at the top of the file, or of that key itself."""
    top, _, kind = name.partition(".")
    schema = mapping(_SCHEMA, "properties", top)
    prefix = "" if top in _WITHOUT_PREFIX else f"{top}[]" if "items" in schema else top
    if top == "jobs":
        # A pattern of the names takes the place of `additionalProperties`.
        (job,) = mapping(schema, "patternProperties").values()
        kinds = _options(mapping(job))
        shared = _shared(kinds.values()) - {_choosing_key(part) for part in kinds.values()}
        first, *_ = kinds
        if not kind:
            yield Row(
                _choosing_key(kinds[first]), _joined_values(kinds), f"`{first}`", _meanings(kinds)
            )
        for row in _rows_of_part(prefix, kinds[kind or first]):
            name = re.split(r"[.\[]", row.key)[0]
            if name != _choosing_key(kinds[first]) and (name in shared) != bool(kind):
                yield row
    elif (part := _part(schema)) is not None:
        yield from _rows_of_part(prefix, part)
    else:
        yield _row(top, schema, required=top in sequence(_SCHEMA, "required"))


def _table(names: Sequence[str]) -> str:
    lines = ["| key | value | default | meaning |", "|---|---|---|---|"]
    lines += [f"| {' | '.join(row.cells())} |" for name in names for row in rows(name)]
    return "\n".join(lines) + "\n"


def _rows_of_part(path: str, part: JsonObject) -> Iterator[Row]:
    required = sequence(part, "required")
    for key in mapping(part, "properties"):
        schema = mapping(part, "properties", key)
        place = f"{path}.{key}" if path else key
        options = _options(schema)
        if options:
            meaning, _, _ = text(schema, "description").partition(_DEFAULT)
            yield from _rows_of_options(place, options, meaning)
            continue
        inner = _part(schema)
        is_list = all("items" in member for member in _members(schema) if not _is_null(member))
        is_section = (
            inner is not None and not is_list and _DEFAULT not in text(schema, "description")
        )
        if inner is not None and is_list:
            place += "[]"
        if not is_section:
            yield _row(place, schema, required=key in required)
        if inner is not None:
            yield from _rows_of_part(place, inner)
        # Parts by names of the user's.
        for named in mapping(schema, "patternProperties").values():
            if (item := _part(mapping(named))) is not None:
                yield from _rows_of_part(f"{place}.NAME", item)


def _rows_of_options(path: str, options: Mapping[str, JsonObject], meaning: str) -> Iterator[Row]:
    """Yield a row of the key that chooses one of several parts, then one of each of their keys."""
    (key,) = {_choosing_key(part) for part in options.values()}
    first, *_ = options
    yield Row(f"{path}.{key}", _joined_values(options), f"`{first}`", meaning)
    found: dict[Row, list[str]] = {}
    for option, part in options.items():
        for row in _rows_of_part(path, part):
            if row.key != f"{path}.{key}":
                found.setdefault(row, []).append(option)
    for row, of in found.items():
        yield Row(row.key, row.value, row.default, row.meaning, tuple(of))


def _row(path: str, schema: JsonObject, *, required: bool) -> Row:
    meaning, _, default = text(schema, "description").partition(_DEFAULT)
    shown = "required" if required else default.removesuffix(".") or _literal(schema.get("default"))
    return Row(path, _value(schema), shown, meaning)


def _value(schema: JsonObject) -> str:
    """Return the values that a key takes."""
    if named := _type_name(schema):
        return named
    members = [member for member in _members(schema) if not _is_null(member)]
    if len(members) != 1:
        return " or ".join(dict.fromkeys(map(_value, members)))
    (member,) = members
    choices = sequence(schema, "enum") or sequence(member, "enum")
    if len(choices) in range(1, _MOST_CHOICES):
        return _joined_values(map(str, choices))
    if "const" in member:
        return _literal(member["const"])
    if "properties" in member:
        return "mapping"
    kind = text(member, "type")
    if kind == "array":
        item = mapping(member, "items")
        return "list" if _part(item) is not None else f"list: {_value(item)}"
    if kind == "object":
        return "mapping"
    if kind in ("integer", "number"):
        return _bounds(member)
    if kind == "boolean":
        return "`true`, `false`"
    return "text"


def _type_name(schema: JsonObject) -> str:
    """Return the name of the shared type of a value; empty for others."""
    parts = (schema, *sequence(schema, "anyOf"), *_members(schema))
    return next((title for part in parts if (title := text(part, "title")) in _NAMED), "")


def _bounds(member: JsonObject) -> str:
    lowest = look_up(member, "minimum")
    most = look_up(member, "maximum")
    below = look_up(member, "exclusiveMaximum")
    if below is not None:
        return f"{_number(lowest)} to less than {_number(below)}"
    if lowest is not None and most is not None:
        return f"{_number(lowest)} to {_number(most)}"
    if lowest is not None:
        return f"at least {_number(lowest)}"
    return "number" if most is None else f"at most {_number(most)}"


def _number(value: Json) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,g}" if isinstance(value, float) else ""


def _literal(value: Json) -> str:
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _joined_values(values: Iterable[str]) -> str:
    return ", ".join(f"`{value}`" for value in values)


def _members(schema: JsonObject) -> list[JsonObject]:
    target = text(schema, "$ref").rpartition("/")[2]
    if target:
        return [mapping(_SCHEMA, "$defs", target)]
    alternatives = sequence(schema, "anyOf") or sequence(schema, "oneOf")
    if alternatives:
        return [member for alternative in alternatives for member in _members(mapping(alternative))]
    return [schema]


def _is_null(member: JsonObject) -> bool:
    return look_up(member, "type") == "null"


def _part(schema: JsonObject) -> JsonObject | None:
    """Return the part of the file that a key holds, alone or in a list; None for other values."""
    for member in _members(schema) if schema else ():
        if "properties" in member:
            return member
        if (part := _part(mapping(member, "items"))) is not None:
            return part
    return None


def _options(schema: JsonObject) -> Mapping[str, JsonObject]:
    """Return the parts among which a key chooses, by its value; none where there is one at most."""
    parts = [member for member in _members(schema) if "properties" in member]
    if len(parts) < 2:
        return {}
    return {text(part, "properties", _choosing_key(part), "const"): part for part in parts}


def _choosing_key(part: JsonObject) -> str:
    keys = mapping(part, "properties")
    return next(key for key in keys if look_up(keys, key, "const") is not None)


def _meanings(options: Mapping[str, JsonObject]) -> str:
    texts = {
        option: text(part, "properties", _choosing_key(part), "description").removesuffix(".")
        for option, part in options.items()
    }
    return "; ".join(f"`{option}`: {said[:1].lower()}{said[1:]}" for option, said in texts.items())


def _shared(parts: Iterable[JsonObject]) -> frozenset[str]:
    first, *others = (frozenset(mapping(part, "properties")) for part in parts)
    return first.intersection(*others)


_MAKERS: Mapping[str, Callable[[Sequence[str]], str]] = {
    "keys": _table,
    "failures": _failures,
    "recipes": _speeds,
    "facts": _lives,
}


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
    for kind in get_args(config.SchemaKind):
        file = SCHEMAS / config.schema_file_name(kind)
        file.write_text(config.schema_text(kind), encoding="utf-8")
