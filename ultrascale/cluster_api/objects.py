"""Fields that every Kubernetes object has: name, labels, conditions."""

from typing import TypeAlias

from ultrascale.documents import JsonObject, objects, text

Object: TypeAlias = JsonObject
"""An object as the API server returns it."""


def name(manifest: Object) -> str:
    """Return the name of an object."""
    return text(manifest, "metadata", "name")


def uid(manifest: Object) -> str:
    """Return the UID of an object; a later object of the same name has another UID."""
    return text(manifest, "metadata", "uid")


def owned_by(manifest: Object, owner: Object) -> bool:
    """Return whether ``owner`` owns an object; an earlier owner of the same name does not count."""
    owners = objects(manifest, "metadata", "ownerReferences")
    return any(text(each, "uid") == uid(owner) for each in owners)


def label(manifest: Object, key: str) -> str:
    """Return the label ``key`` of an object; empty if it has none."""
    return text(manifest, "metadata", "labels", key)


def condition(manifest: Object, kind: str) -> Object:
    """Return the condition ``kind`` of an object if its status is True; else an empty object."""
    holding = [
        entry
        for entry in objects(manifest, "status", "conditions")
        if text(entry, "type") == kind and text(entry, "status") == "True"
    ]
    return holding[-1] if holding else {}
