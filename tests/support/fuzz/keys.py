"""The keys that a cluster file may have, from its types, and values of each that files hold.

Nothing here names a key: one that is new is fuzzed by itself.
"""

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, cast

import yaml

from tests.support import known_bad
from tests.support.cluster_keys import DOCUMENTS
from tests.support.folders import ROOT
from tests.support.rich_documents import RICH
from ultrascale.config import cluster_type

Schema = Mapping[str, Any]
Place = tuple[str | int, ...]

# What a job has to state and a cluster file seldom does.
_JOB = {
    "image": "docker.io/library/python:3.13.1",
    "script": "train.py",
    "command": ["python", "a.py"],
}
_FENCED = re.compile(r"^```ya?ml\n(.*?)^```", re.MULTILINE | re.DOTALL)


@cache
def file_schema() -> Schema:
    """Return the JSON schema of a cluster file."""
    return cluster_type().model_json_schema()


@cache
def job_schema() -> Schema:
    """Return the schema of a file of one job."""
    return next(_values_of(file_schema()["properties"]["jobs"]))


def options(schema: Schema) -> list[Schema]:
    """Return the schemas of which a value has to have one."""
    if "$ref" in schema:
        definition = file_schema()["$defs"][str(schema["$ref"]).rpartition("/")[2]]
        return options({**definition, **{k: v for k, v in schema.items() if k != "$ref"}})
    members: Sequence[Schema] = (
        schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf", ())
    )
    return [found for member in members for found in options(member)] if members else [schema]


def keys_of(schema: Schema) -> Mapping[str, Schema]:
    """Return the keys of a mapping, by their schemas."""
    return schema.get("properties", {})


def children(schema: Schema, value: object) -> Iterator[tuple[str | int, object, list[Schema]]]:
    """Yield the key, the value and the schemas of each part of ``value``."""
    if isinstance(value, dict):
        mapping = cast("dict[str, object]", value)
        suitable = _suitable(schema, mapping)
        for key, inner in mapping.items():
            found = [each["properties"][key] for each in suitable if key in keys_of(each)]
            found = found or [one for each in suitable for one in _values_of(each)]
            yield key, inner, found
    elif isinstance(value, list):
        items = [each["items"] for each in options(schema) if "items" in each]
        for number, inner in enumerate(cast("list[object]", value)):
            yield number, inner, items


def places(
    schema: Schema, value: object, at: Place = ()
) -> Iterator[tuple[Place, object, list[Schema]]]:
    """Yield the place, the value and the schemas of each part of ``value``, however deep."""
    for key, inner, schemas in children(schema, value):
        yield (*at, key), inner, schemas
        union: Schema = {"anyOf": schemas} if schemas else {}
        yield from places(union, inner, (*at, key))


def missing(schema: Schema, value: object, at: Place = ()) -> Iterator[tuple[Place, list[Schema]]]:
    """Yield the place and the schema of each key that ``value`` might have and has not."""
    if isinstance(value, dict):
        mapping = cast("dict[str, object]", value)
        for each in _suitable(schema, mapping):
            for key, inner in keys_of(each).items():
                if key not in mapping:
                    yield (*at, key), [inner]
    for key, inner, schemas in children(schema, cast("object", value)):
        yield from missing({"anyOf": schemas} if schemas else {}, inner, (*at, key))


def at(document: object, place: Place) -> Any:
    """Return the part of ``document`` at ``place``."""
    value: Any = document
    for key in place:
        value = value[key]
    return value


def put(document: object, place: Place, value: object) -> None:
    """Set the part of ``document`` at ``place``."""
    at(document, place[:-1])[place[-1]] = value


def held(place: Place) -> Sequence[object]:
    """Return values that files hold at places that end as ``place`` does."""
    return next((_held()[tail] for tail in _tails(place) if tail in _held()), ())


@cache
def documents() -> Sequence[Mapping[str, Any]]:
    """Return cluster files, and parts of some, that the repository holds."""
    found: list[Mapping[str, Any]] = [*DOCUMENTS.values(), RICH, _JOB]
    for case in known_bad.cases().values():
        found += [case[key] for key in ("change", "mend") if key in case]
    for page in sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]):
        for text in _FENCED.findall(page.read_text()):
            try:
                part: object = yaml.load(text, yaml.CSafeLoader)
            except yaml.YAMLError:
                continue
            if isinstance(part, dict):
                found.append(cast("Mapping[str, Any]", part))
    return found


@cache
def _held() -> Mapping[tuple[str, ...], list[object]]:
    held: dict[tuple[str, ...], list[object]] = {}
    for document in documents():
        for place, value in _parts(document, ()):
            for tail in {*_tails(place)}:
                known = held.setdefault(tail, [])
                if value not in known:
                    known.append(copy.deepcopy(value))
    return held


def _tails(place: Place) -> Sequence[tuple[str, ...]]:
    """Return the last keys of ``place``, the most first; an item of a list is one as another."""
    named = [key if isinstance(key, str) else "" for key in place]
    return [tuple(named[-length:]) for length in (3, 2, 1)]


def _parts(value: object, at: Place) -> Iterator[tuple[Place, object]]:
    if isinstance(value, dict):
        for key, inner in cast("dict[object, object]", value).items():
            yield (*at, str(key)), inner
            yield from _parts(inner, (*at, str(key)))
    elif isinstance(value, list):
        for number, inner in enumerate(cast("list[object]", value)):
            yield from _parts(inner, (*at, number))


def _suitable(schema: Schema, value: Mapping[str, object]) -> list[Schema]:
    """Return the schemas that ``value`` is meant to have, by the keys that tell them apart."""
    found = [each for each in options(schema) if each.get("type") == "object"]
    agreeing = [each for each in found if _agrees(each, value)]
    return agreeing or found


def _agrees(schema: Schema, value: Mapping[str, object]) -> bool:
    return all(
        value.get(key, inner.get("default")) == inner["const"]
        for key, inner in keys_of(schema).items()
        if "const" in inner and (key in value or key in schema.get("required", ()))
    )


def _values_of(schema: Schema) -> Iterator[Schema]:
    """Yield the schemas of the values of a mapping whose keys are names."""
    yield from schema.get("patternProperties", {}).values()
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        yield cast("Schema", more)
