"""The JSON Schemas that editors hold cluster files and job files against.

They use the keywords that mean the same in draft 7, which editors' YAML servers read, and in
2020-12. A schema holds the form of a file: types, names of keys, bounds of one value. `ultrascale
check` and `preflight` judge how values fit each other, the catalog and the account.

Sources:
    https://json-schema.org/draft-07/json-schema-release-notes
    https://json-schema.org/draft/2020-12/release-notes
    https://github.com/redhat-developer/yaml-language-server#readme
"""

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Literal

from pydantic import TypeAdapter

from ultrascale.config.cluster import cluster_type, stated_job
from ultrascale.config.identity import Identity
from ultrascale.config.jobs import Job, JobName
from ultrascale.config.releases import EDITOR_SCHEMA, REQUIRES
from ultrascale.documents import Json, JsonObject, mapping, sequence

Kind = Literal["cluster", "job"]

DIALECT = "http://json-schema.org/draft-07/schema#"
_IDS: Mapping[Kind, str] = {
    "cluster": "urn:ultrascale:schema:cluster",
    "job": "urn:ultrascale:schema:job",
}
_JOB = "The file of one job, for `ultrascale submit`."
_NAME = "Name of the job. Default: the name of the file."
_DATA = frozenset({"default", "const", "enum", "required"})
# Keywords whose schemas are keyed by the user's names or ours.
_OF_SCHEMAS = frozenset({"properties", "patternProperties", "definitions", "$defs"})
_PARTS = "definitions"
"""Draft 7's place of shared parts, which later drafts read as well."""


def file_name(kind: Kind) -> str:
    """Return the name of the file that a schema is kept in."""
    return f"{kind}.schema.json"


def modeline(path: str) -> str:
    """Return the first line of a file that names its schema to editors.

    Args:
        path: URL of the schema, or its path from the file's folder.

    Source: https://github.com/redhat-developer/yaml-language-server#using-inlined-schema
    """
    return f"# yaml-language-server: $schema={path}"


@cache
def schema_text(kind: Kind) -> str:
    """Return the schema of a kind of file as the text of a file."""
    return json.dumps(schema(kind), indent=2, ensure_ascii=False) + "\n"


def schema(kind: Kind) -> JsonObject:
    """Return the schema of a kind of file."""
    portable = _portable(_raw(kind))
    head: JsonObject = {"$schema": DIALECT, "$id": _IDS[kind]}
    return {**head, **portable}


def _raw(kind: Kind) -> JsonObject:
    if kind == "cluster":
        return mapping(cluster_type().model_json_schema(by_alias=True))
    raw = mapping(TypeAdapter[Job](stated_job()).json_schema(by_alias=True))
    parts = {name: mapping(part) for name, part in mapping(raw, "$defs").items()}
    for name in _jobs_of(raw):
        properties = {**_own_keys(), **mapping(parts[name], "properties")}
        parts[name] = {**parts[name], "properties": properties}
    return {**raw, "description": _JOB, "$defs": parts}


def _jobs_of(raw: JsonObject) -> list[str]:
    return [str(mapping(member)["$ref"]).rpartition("/")[2] for member in sequence(raw, "oneOf")]


def _own_keys() -> Mapping[str, Json]:
    """Return the keys that only a job file has, not a job in a cluster file."""
    identity = mapping(Identity.model_json_schema(by_alias=True), "properties")
    name = mapping(TypeAdapter[str](JobName).json_schema())
    kept = {key: identity[key] for key in (EDITOR_SCHEMA, REQUIRES)}
    return {**kept, "name": {**name, "description": _NAME}}


def _portable(schema: JsonObject) -> JsonObject:
    """Return ``schema`` in the words that each draft since 7 reads alike."""
    found: dict[str, Json] = {}
    for key, value in schema.items():
        if key == "title":
            continue  # pydantic's spelling of the key
        name = _PARTS if key == "$defs" else key
        if key in _DATA:
            found[name] = value
        elif key in _OF_SCHEMAS:
            inner = mapping(value)
            found[name] = {value: _portable(mapping(inner, value)) for value in inner}
        elif key == "$ref":
            found[name] = str(value).replace("#/$defs/", f"#/{_PARTS}/")
        else:
            found[name] = _changed_schemas(value, _portable)
    if "patternProperties" in found:
        found.setdefault("additionalProperties", False)
    return _without_siblings(found)


def _changed_schemas(value: Json, change: Callable[[JsonObject], JsonObject]) -> Json:
    if isinstance(value, Mapping):
        return change(value)
    return (
        [_changed_schemas(item, change) for item in value]
        if isinstance(value, list | tuple)
        else value
    )


def _without_siblings(schema: JsonObject) -> JsonObject:
    """Return ``schema`` without keys beside its reference: draft 7 ignores them."""
    if "$ref" not in schema or len(schema) == 1:
        return schema
    beside = {key: value for key, value in schema.items() if key != "$ref"}
    return {**beside, "allOf": [{"$ref": schema["$ref"]}]}
