"""Fields that every Kubernetes object has: name, labels, conditions."""

from typing import TypeAlias

from ultrascale.documents import JsonObject, objects, text

Object: TypeAlias = JsonObject
"""An object as the API server answers it."""


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
