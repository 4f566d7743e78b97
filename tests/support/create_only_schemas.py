"""Write the table of create-only properties: `python -m tests.support.create_only_schemas`."""

import csv
import gzip
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, cast

from tests.support.folders import ROOT

TABLE = ROOT / "ultrascale" / "catalog" / "create_only.csv"
COLUMNS: tuple[str, ...] = (
    "type",
    "create_only",
    "conditional",
    "documented",
    "identifier",
    "deletes_first",
)
# Of this Region cfn-lint has every type.
REGION = "us-east-1"
# What the pages say, as the pinned command line of the CDK ships it.
PAGES = ROOT / "node_modules" / "aws-cdk" / "db.json.gz"
_SCHEMAS = files("cfnlint") / "data" / "schemas"
_DEEPEST = 5
# What the CDK notes of itself.
_NOTE = "AWS::CDK::Metadata"

Row = dict[str, str]


def known_types() -> tuple[str, ...]:
    """Return the types that the table has."""
    with TABLE.open(newline="") as file:
        return tuple(row["type"] for row in csv.DictReader(file))


def unknown_types(templates: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the types in templates that the table does not have: any change may replace those."""
    types = {body["Type"] for each in templates for body in each.get("Resources", {}).values()}
    return {each for each in types if each.startswith("AWS::")} - {*known_types(), _NOTE}


def schema_row(resource_type: str) -> Row:
    """Return the row of a type, but for what its page says."""
    schema = _schema(resource_type)
    read_only = set(_paths(schema, "readOnlyProperties"))
    identifier = _paths(schema, "primaryIdentifier")
    first = schema.get("replacementStrategy") == "delete_then_create"
    return {
        "type": resource_type,
        "create_only": " ".join(sorted(_paths(schema, "createOnlyProperties"))),
        "conditional": " ".join(sorted(_paths(schema, "conditionalCreateOnlyProperties"))),
        "identifier": "" if read_only & set(identifier) else " ".join(identifier),
        "deletes_first": "yes" if first else "no",
    }


def documented(resource_type: str) -> str:
    """Return the properties whose page says that they replace, where the schema does not."""
    row = schema_row(resource_type)
    told = {*row["create_only"].split(), *row["conditional"].split()}
    found = {
        path for path, said in _page_properties(resource_type) if said == "yes" and path not in told
    }
    inner = {path for path in found if any(path.startswith(f"{each}/") for each in told)}
    # What holds properties that do not replace is no property of its own.
    outer = {
        path
        for path in found
        if any(other.startswith(f"{path}/") for other, _ in _page_properties(resource_type))
    }
    return " ".join(sorted(found - inner - outer))


def text(types: tuple[str, ...]) -> str:
    """Return the whole table for ``types``."""
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for each in sorted(types):
        writer.writerow({**schema_row(each), "documented": documented(each)})
    return file.getvalue()


@cache
def _index() -> Mapping[str, str]:
    return json.loads((_SCHEMAS / "providers" / f"{REGION}.json").read_text())


@cache
def _schema(resource_type: str) -> Mapping[str, Any]:
    return json.loads((_SCHEMAS / "resources" / f"{_index()[resource_type]}.json").read_text())


def _paths(schema: Mapping[str, Any], key: str) -> list[str]:
    return [
        path.removeprefix("/properties/").replace("/properties/", "/")
        for path in cast("list[str]", schema.get(key, []))
    ]


@cache
def _pages() -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    with gzip.open(PAGES, "rt") as file:
        entities = json.load(file)["schema"]
    resources = {each["cloudFormationType"]: each for each in entities["resource"]["entities"]}
    definitions = {each["$id"]: each for each in entities["typeDefinition"]["entities"]}
    return resources, definitions


@cache
def _page_properties(resource_type: str) -> tuple[tuple[str, str], ...]:
    resources, _ = _pages()
    return tuple(_walk(resources[resource_type]["properties"], "", ()))


def _walk(
    properties: Mapping[str, Any], prefix: str, within: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    _, definitions = _pages()
    for name, each in properties.items():
        yield f"{prefix}{name}", each.get("causesReplacement", "no")
        inner = _definition(each["type"])
        if inner is not None and inner not in within and len(within) < _DEEPEST:
            own = definitions[inner]["properties"]
            yield from _walk(own, f"{prefix}{name}/", (*within, inner))


def _definition(kind: Mapping[str, Any]) -> str | None:
    """Return the definition of an object, not of what a list or a map holds."""
    if kind["type"] == "ref":
        return str(kind["reference"]["$ref"])
    if kind["type"] == "union":
        return next(filter(None, map(_definition, kind["types"])), None)
    return None


if __name__ == "__main__":
    TABLE.write_text(text(known_types()))
