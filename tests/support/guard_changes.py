"""Changes of each key of a cluster file: up, down, on, off, added, removed and another value.

The keys and their values come from the types: no table names them, and a key that is new is
changed by itself, as soon as any file or page of the repository holds a value of it.
"""

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Literal, cast
from zlib import crc32

import yaml

from tests.support.cluster_keys import DOCUMENTS, OTHER_VALUES, changed
from tests.support.folders import DATA
from tests.support.fuzz import keys as schema_keys
from tests.support.fuzz.keys import Place, Schema

Kind = Literal["up", "down", "on", "off", "added", "removed", "other"]
REVERSE: Mapping[Kind, Kind] = {
    "up": "down",
    "down": "up",
    "on": "off",
    "off": "on",
    "added": "removed",
    "removed": "added",
    "other": "other",
}
# By the last keys: what is allowed there, and is another value.
_ALSO: Mapping[Place, object] = {
    ("vpc_cidr",): "10.8.0.0/16",
    ("vpc", "id"): "vpc-0a1b2c3d4e5f60002",
    ("subnets", 0, "id"): "subnet-0a1b2c3d4e5f60091",
    ("subnets", 2, "id"): "subnet-0a1b2c3d4e5f60092",
    ("subnets", 4, "id"): "subnet-0a1b2c3d4e5f60094",
    ("pod_cidrs",): ["100.64.0.0/16", "100.65.0.0/16", "100.66.0.0/16"],
    ("capacity_gib",): 19200,
    ("throughput_mbps_per_tib",): 1000,
    ("instance_types",): ["p5en.48xlarge"],
    ("reservation",): "cr-0fedcba9876543210",
    ("version",): "1.36",
    ("purchase",): {"option": "on-demand"},
    ("provisioner",): "self-managed",
    ("ends",): "2026-12-09T11:30:00Z",
    ("weight",): 7,
    ("value",): "other",
    ("email",): "other@example.com",
    ("priority_classes",): {"critical": 7},
    ("admins",): ["arn:aws:iam::111122223333:role/Other"],
    ("nodes", "max"): 1200,
    ("database", "version"): "16",
    ("karpenter", "version"): "1.14.3",
    ("existing",): "corp-other",
    ("existing", "id"): "fs-0f9e8d7c6b5a43210",
    ("existing", "mount_name"): "zyxwvuts",
    ("existing", "security_group"): "sg-0f9e8d7c6b5a43210",
    **{
        (
            "keys",
            use,
        ): f"arn:aws:kms:us-east-1:444455556666:key/11111111-2222-4333-8444-5555555555{n}"
        for n, use in enumerate(("logs", "storage", "volumes"), start=91)
    },
    ("jwks_uri",): "https://login.example.com/others",
}
# Values of one place that are tried: each is another assembly to synthesize.
_MOST = 2
# An enumeration of more is a table of the catalog, whose members do alike.
_LONG = 12
_NUMBER = re.compile(r"\d+")
_NUMBERED = re.compile(r"v?\d+(\.\d+)*|\d{4}-\d\d-\d\d.*")
# Keys of a pool whose effect depends on how its nodes are bought and what for, and those of few
# values.
_BOUGHT = ("pools[].purchase", "pools[].nodes", "pools[].role", "pools[].instance_types")
_CHOICES = ("pools[].provisioner", "pools[].efa", "pools[].repair")
# Jobs are sent, not deployed. What stacks hold of them, such as the namespaces that services have
# for themselves, changes with all of them at once.
NOT_DEPLOYED = "jobs"


@dataclass(frozen=True, slots=True)
class KeyChange:
    """A change of one key of a file."""

    file: str  # Name of the file
    key: str  # The key, as the table of opinions has it
    kind: Kind  # What changes
    place: Place  # Its place in the file
    # The file with other values, the first of which that is accepted counts
    candidates: tuple[dict[str, Any], ...]

    @property
    def told(self) -> str:
        """The change for people: file and place."""
        return f"{self.file}: {'.'.join(map(str, self.place))}"


@cache
def known_keys() -> frozenset[str]:
    """Return every key that a cluster file may have."""
    return frozenset(_keys(schema_keys.file_schema(), ""))


def _keys(schema: Schema, prefix: str) -> Iterator[str]:
    for option in schema_keys.options(schema):
        for name, inner in schema_keys.keys_of(option).items():
            key = f"{prefix}.{name}" if prefix else name
            yield key
            yield from _keys(inner, key)
        if "items" in option:
            inner = [*_keys(option["items"], f"{prefix}[]")]
            yield from [f"{prefix}[]", *inner] if inner else inner
        named = option.get("patternProperties", {}).values()
        for inner in (*named, *filter(None, [option.get("additionalProperties")])):
            if isinstance(inner, dict):
                named_keys = [*_keys(cast("Schema", inner), f"{prefix}.*")]
                yield from [f"{prefix}.*", *named_keys] if named_keys else named_keys


def key_of(place: Place) -> str:
    """Return the key at a place: names of a user's own, and numbers of items, are no part of it."""
    key = ""
    for part in place:
        if isinstance(part, int):
            key += "[]" if any(known.startswith(f"{key}[].") for known in known_keys()) else ""
            continue
        named = f"{key}.{part}" if key else part
        if named in known_keys():
            key = named
        elif any(known.startswith(f"{key}.*.") for known in known_keys()):
            key += ".*"
    return key


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {key: _without_nulls(item) for key, item in items if item is not None}
    return value


def files() -> Mapping[str, dict[str, Any]]:
    """Return the files of ``clusters/``, and two of them with the keys that none of them has."""
    more = yaml.load((DATA / "guard-files.yaml").read_text(), yaml.CSafeLoader)
    documents = dict(DOCUMENTS)
    for name, change in more.items():
        document = copy.deepcopy(DOCUMENTS[change["of"]])
        for place, value in change["with"].items():
            parts: Place = tuple(int(part) if part.isdigit() else part for part in place.split("."))
            if len(parts) == 2:
                document.setdefault(str(parts[0]), {})
            schema_keys.put(document, parts, value)
        # A key without a value leaves a file.
        documents[name] = _without_nulls(document)
    return documents


def key_changes(
    accepted: Callable[[str, dict[str, Any]], bool], *, every: int = 1, keys: Sequence[str] = ()
) -> Iterator[KeyChange]:
    """Yield the changes of every key, once for each class of pools, each with one document.

    Args:
        accepted: Whether a changed document of a file is one that `check` takes, and another one.
        every: How many classes of changes one is taken of, always the same one.
        keys: Keys whose changes are taken; none: all.
    """
    seen: set[tuple[object, ...]] = set()
    for file, document in files().items():
        for change in _of_file(file, document):
            mark = (change.key, change.kind, *_class_of(change, document))
            drawn = crc32(repr(mark).encode()) % every == 0
            if mark in seen or not drawn or (keys and change.key not in keys):
                continue
            taken = next((each for each in change.candidates if accepted(file, each)), None)
            if taken is not None:
                seen.add(mark)
                yield replace(change, candidates=(taken,))


def _of_file(file: str, document: dict[str, Any]) -> Iterator[KeyChange]:
    schema = schema_keys.file_schema()
    for place, value, schemas in schema_keys.places(schema, document):
        key = key_of(place)
        if place[0] == NOT_DEPLOYED and len(place) > 1:
            continue
        yield KeyChange(file, key, "removed", place, (changed(document, place),))
        by_kind: dict[Kind, list[object]] = {}
        for other in _others(value, place, schemas):
            by_kind.setdefault(kind_of(value, other), []).append(other)
        for kind, others in by_kind.items():
            for candidates in _grouped(kind, others):
                documents = tuple(changed(document, place, other) for other in candidates)
                yield KeyChange(file, key, kind, place, documents)
    for place, schemas in schema_keys.missing(schema, document):
        if place[0] == NOT_DEPLOYED:
            continue
        for value in _values(place, schemas):
            candidates = (_with(document, place, value),)
            yield KeyChange(file, key_of(place), "added", place, candidates)


def _grouped(kind: Kind, others: Sequence[object]) -> Iterator[Sequence[object]]:
    """Yield candidates: one number up and one down is enough, other values are each their own."""
    if kind in ("up", "down"):
        yield others
    else:
        yield from ([other] for other in others)


def _class_of(change: KeyChange, document: Mapping[str, Any]) -> tuple[object, ...]:
    """Return what tells places of one key apart: each is another assembly to synthesize.

    Of pools it is the provisioner, and how the nodes are bought where the key is about that; of a
    short value that is added, or of another one, the value.
    """
    told = ""
    if change.kind in ("added", "other"):
        value = schema_keys.at(change.candidates[0], change.place)
        told = json.dumps(value) if isinstance(value, str | bool) else ""
        items = _items(value)
        if change.kind == "other" and items is not None:
            # Another order is one change, and other members are another.
            told = str(items == _items(schema_keys.at(document, change.place)))
    first, *rest = change.place
    if first != "pools" or not rest or not isinstance(rest[0], int):
        return change.file if change.kind == "removed" and not rest else "", told
    pool = document["pools"][rest[0]]
    if not change.key.startswith(_BOUGHT) and change.key != "pools[]":
        return pool.get("provisioner"), told if change.key in _CHOICES else ""
    return pool.get("provisioner"), pool.get("purchase", {}).get("option"), pool.get("role"), told


def kind_of(before: object, after: object) -> Kind:
    """Return what happens to a key that has one value and then another."""
    if isinstance(before, bool) and isinstance(after, bool):
        return "on" if after else "off"
    old, new = _items(before), _items(after)
    if old is not None and new is not None:
        return "up" if old < new else "down" if new < old else "other"
    pair = _comparable(before), _comparable(after)
    if pair[0] is None or pair[1] is None or pair[0] == pair[1]:
        return "other"
    return "up" if pair[1] > pair[0] else "down"


def _items(value: object) -> set[str] | None:
    if not isinstance(value, list):
        return None
    return {json.dumps(item, default=str) for item in cast("list[object]", value)}


def _comparable(value: object) -> tuple[float, ...] | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return (float(value),)
    if isinstance(value, datetime):
        return (value.timestamp(),)
    if isinstance(value, str) and _NUMBERED.fullmatch(value):
        return tuple(map(float, _NUMBER.findall(value)))
    return None


def _others(value: object, place: Place, schemas: Sequence[Schema]) -> list[object]:
    """Return other values of a key."""
    others: list[object] = [
        other
        for table in (OTHER_VALUES, _ALSO)
        for keys, other in table.items()
        if place[-len(keys) :] == keys
    ]
    if isinstance(value, bool):
        others.append(not value)
    elif isinstance(value, int):
        others += [value + 1, value * 2, value + 1200, value // 2, value - 1]
    elif isinstance(value, list):
        items = cast("list[object]", value)
        others += [items[:-1], items[1:], items[::-1]]
        others += [other for other in _held(place) if isinstance(other, list)]
    elif isinstance(value, datetime):
        others += [value + timedelta(days=1), value - timedelta(days=1)]
    elif isinstance(value, str):
        # Values that a page holds come first: they fit the rest of a file better than others do.
        others += [*_held(place), *_choices(schemas)]
        others = [other for other in others if isinstance(other, str)]
    different: list[object] = []
    for other in others:
        if other not in (value, [], *different):
            different.append(copy.deepcopy(other))
    return different


def _values(place: Place, schemas: Sequence[Schema]) -> list[object]:
    """Return values of a key that a file leaves out."""
    found: list[object] = list(_choices(schemas))
    for schema in (option for each in schemas for option in schema_keys.options(each)):
        if schema.get("type") == "boolean":
            found += [True, False]
    for other in _held(place):
        if other not in found:
            found.append(other)
    for keys, other in _ALSO.items():
        if place[-len(keys) :] == keys and other not in found:
            found.append(other)
    return found


def _held(place: Place) -> list[object]:
    return list(schema_keys.held(place))[:_MOST]


def _choices(schemas: Sequence[Schema]) -> list[object]:
    return [
        choice
        for schema in schemas
        for option in schema_keys.options(schema)
        for choice in _some(option.get("enum", ()))
    ]


def _some(choices: Sequence[object]) -> Sequence[object]:
    return choices if len(choices) <= _LONG else choices[:_MOST]


def _with(document: dict[str, Any], place: Place, value: object) -> dict[str, Any]:
    document = copy.deepcopy(document)
    schema_keys.put(document, place, copy.deepcopy(value))
    return document
