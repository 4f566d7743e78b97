"""Paths, selectors and fields of the objects that a stub API server has."""

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, cast

Object = dict[str, Any]
Query = Mapping[str, str]

LIST = re.compile(
    r"(/api/v1|/apis/[^/]+/[^/]+)(?:/namespaces/(?P<namespace>[^/]+))?/(?P<plural>\w+)"
)


_list = cache(LIST.fullmatch)


def is_in(path: str, collection: str) -> bool:
    """Return whether the object at ``path`` belongs to a list, of one or all namespaces."""
    wanted = _list(collection)
    actual = _list(path.rpartition("/")[0])
    if wanted is None or actual is None or wanted[1] != actual[1]:
        return False
    same = wanted["namespace"] in (None, actual["namespace"])
    return same and wanted["plural"] == actual["plural"]


def namespace_of(path: str) -> str | None:
    match = re.search(r"/namespaces/([^/]+)/", path)
    return match[1] if match else None


def plural_of(path: str) -> str:
    return path.split("/")[-2]


def matches(found: Object, query: Query) -> bool:
    labels = found["metadata"].get("labels", {})
    for term in filter(None, query.get("labelSelector", "").split(",")):
        key, equals, value = term.partition("=")
        if key not in labels or (equals and labels[key] != value):
            return False
    for term in filter(None, query.get("fieldSelector", "").split(",")):
        path, operator, value = re.split(r"(!?=)", term, maxsplit=1)
        if (_at(found, path) == value) != (operator == "="):
            return False
    return True


def _at(found: Any, path: str) -> Any:
    for key in path.split("."):
        found = found.get(key, {})
    return found


def join(found: Any, fields: Any) -> None:
    for key, value in fields.items():
        if isinstance(value, dict) and isinstance(found.get(key), dict):
            join(found[key], value)
        else:
            found[key] = json.loads(json.dumps(value))


def owned(fields: Any) -> Object:
    """Return fields as managed fields have them; items of lists by their name, or as values."""
    if isinstance(fields, dict):
        members = cast("dict[str, Any]", fields)
        return {f"f:{key}": owned(value) for key, value in members.items()}
    if not isinstance(fields, list):
        return {}
    return {
        f"k:{json.dumps({'name': item['name']})}"
        if isinstance(item, dict)
        else f"v:{json.dumps(item)}": owned(item)
        for item in cast("list[Any]", fields)
    }


class UnequalError(Exception):
    """A JSON patch expects another value than the object has."""


def change(found: Any, operations: list[Any]) -> None:
    """Apply the operations `test`, `add` and `replace` of a JSON patch to members of objects."""
    for operation in operations:
        words = operation["path"].strip("/").split("/")
        *parents, key = (word.replace("~1", "/").replace("~0", "~") for word in words)
        holder = found
        for parent in parents:
            holder = holder[parent]
        if operation["op"] == "test" and holder[key] != operation["value"]:
            raise UnequalError(f"{operation['path']} is {holder[key]!r}")
        if operation["op"] in ("add", "replace"):
            holder[key] = operation["value"]
