"""Parts of documents: documents within texts, variables, names of APIs."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import cast

import yaml

from ultrascale.documents import Json

_API_KEYS = ("apiVersion", "apiGroup", "apiGroups", "group", "key", "topologyKey", "labelKey")
# Names of objects: of CustomResourceDefinitions and webhooks they are domains in form.
_NAMES = (("metadata", "name"), ("webhooks", "name"), ("names", "plural"))
_API_NAME = re.compile(r"[a-z0-9.-]+(?:/[A-Za-z0-9._-]{1,63})?")
_YAML_KEY = re.compile(r"^[\w./-]+:(?:\s|$)", re.MULTILINE)


def is_api_name(text: str, keys: Sequence[str]) -> bool:
    """Return whether a text is the name of an API, of a label or of an object, by its place."""
    named = [key for key in keys if not key.isdecimal()]
    if not named or not _API_NAME.fullmatch(text):
        return False
    return named[-1] in _API_KEYS or tuple(named[-2:]) in _NAMES


def environment_of(value: Mapping[str, Json]) -> Mapping[str, str]:
    """Return the variables that a container, a function, a build or its buildspec sets."""
    found: dict[str, str] = {}
    for key in ("env", "Environment", "environment"):
        inner = value.get(key)
        if isinstance(inner, Mapping):
            nested = (
                inner.get(name) for name in ("variables", "Variables", "EnvironmentVariables")
            )
            inner = next((each for each in nested if each is not None), inner)
        if isinstance(inner, Mapping):
            found |= {name: item for name, item in inner.items() if isinstance(item, str)}
        elif isinstance(inner, list):
            found |= dict(filter(None, map(_variable, inner)))
    return found


def _variable(item: Json) -> tuple[str, str] | None:
    if not isinstance(item, Mapping):
        return None
    name, value = (item.get(key, item.get(key.capitalize())) for key in ("name", "value"))
    return (name, value) if isinstance(name, str) and isinstance(value, str) else None


def documents_in(text: str) -> Sequence[Json] | None:
    """Return the documents that a text is; None where it is no JSON or YAML with keys."""
    stripped = text.strip()
    if stripped[:1] in ("{", "[", '"') and (document := read_json(stripped)) is not None:
        return [document]
    if "\n" in stripped and _YAML_KEY.search(text):
        parts = read_yaml(text)
        if parts is not None and any(isinstance(part, Mapping | list) for part in parts):
            return parts
    return None


def read_json(text: str) -> Json:
    """Return what a text of JSON says; None where it is none."""
    try:
        return cast("Json", json.loads(text))
    except ValueError:
        return None


def read_yaml(text: str) -> Sequence[Json] | None:
    """Return the documents of a text of YAML; None where it is none."""
    try:
        return [*cast("Sequence[Json]", list(yaml.load_all(text, Loader=yaml.CSafeLoader)))]
    except (yaml.YAMLError, ValueError):
        return None
