"""Typed access to what the API server answers: fields of JSON objects, absent or not."""

from collections.abc import Mapping, Sequence
from typing import cast

Object = Mapping[str, object]


def field(found: Object, *path: str) -> object:
    """Return the value at ``path``; None where a key on the way is absent."""
    value: object = found
    for key in path:
        value = _object(value).get(key)
    return value


def text(found: Object, *path: str) -> str:
    """Return the text at ``path``; empty where there is none."""
    value = field(found, *path)
    return value if isinstance(value, str) else ""


def number(found: Object, *path: str, default: int = 0) -> int:
    """Return the whole number at ``path``; ``default`` where there is none.

    The API server leaves a count of zero out.
    """
    value = field(found, *path)
    return value if isinstance(value, int) else default


def mapping(found: Object, *path: str) -> Object:
    """Return the object at ``path``; empty where there is none."""
    return _object(field(found, *path))


def objects(found: Object, *path: str) -> Sequence[Object]:
    """Return the list of objects at ``path``; empty where there is none."""
    value = field(found, *path)
    return cast("Sequence[Object]", value) if isinstance(value, list | tuple) else ()


def name(found: Object) -> str:
    """Return the name of an object."""
    return text(found, "metadata", "name")


def label(found: Object, key: str) -> str:
    """Return the label ``key`` of an object; empty where it has none."""
    return text(found, "metadata", "labels", key)


def condition(found: Object, kind: str) -> Object:
    """Return the condition ``kind`` of an object's status where it holds; else empty."""
    holding = [
        each
        for each in objects(found, "status", "conditions")
        if text(each, "type") == kind and text(each, "status") == "True"
    ]
    return holding[-1] if holding else {}


def _object(value: object) -> Object:
    return cast("Object", value) if isinstance(value, Mapping) else {}
