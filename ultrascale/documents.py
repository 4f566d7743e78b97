"""JSON and YAML documents as typed values: templates, manifests, answers of the API server.

A foreign document may lack any field, or hold another type there. Each function
below follows a path of keys and returns an empty value where the document says nothing.
"""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, Required, TypeAlias, TypedDict, cast

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""A value of JSON, or of YAML without tags."""
JsonObject: TypeAlias = Mapping[str, Json]
"""An object of JSON: a manifest, the properties of a resource."""


class Resource(TypedDict, total=False):
    """A resource of a CloudFormation template.

    Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-product-attribute-reference.html
    """

    Type: Required[str]
    Properties: JsonObject
    Metadata: JsonObject
    Condition: str
    DependsOn: str | Sequence[str]
    CreationPolicy: JsonObject
    DeletionPolicy: str
    UpdatePolicy: JsonObject
    UpdateReplacePolicy: str


class Export(TypedDict):
    """The name under which other stacks import an output: text, or an intrinsic function."""

    Name: Json


class Output(TypedDict, total=False):
    """An output of a CloudFormation template."""

    Value: Required[Json]
    Export: Export


class Template(TypedDict, total=False):
    """A CloudFormation template.

    Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/template-anatomy.html
    """

    Description: str
    Parameters: Mapping[str, JsonObject]
    Mappings: Mapping[str, JsonObject]
    Conditions: JsonObject
    Resources: Mapping[str, Resource]
    Outputs: Mapping[str, Output]


_MOST_LEVELS = 200


def read_json(file: Path) -> Any:  # noqa: ANN401 as of json.loads
    """Return the JSON of a file.

    Raises:
        OSError: It cannot be read.
        ValueError: As `parse_json`; or it is not UTF-8.
    """
    return parse_json(file.read_text(encoding="utf-8"))


def parse_json(text: str | bytes) -> Any:  # noqa: ANN401 as of json.loads
    """Return the value of a JSON text.

    Raises:
        ValueError: The text is no JSON of at most 200 levels. Python alone reads NaN and Infinity,
            and NaN is equal to nothing.
    """
    try:
        value: Json = json.loads(text, parse_constant=_refuse_number, parse_float=_finite)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    level: list[Json] = [value]
    for _ in range(_MOST_LEVELS):
        level = [child for item in level for child in _children(item)]
        if not level:
            return value
    raise ValueError("nested too deeply")


def _children(value: Json) -> Collection[Json]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list) else ()


def _refuse_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else _refuse_number(digits)


def as_template(document: object) -> Template | None:
    """Return a document as a template; None where it, or its resources, are no object."""
    value = look_up(document)
    if not isinstance(value, Mapping) or not isinstance(value.get("Resources", {}), Mapping):
        return None
    return cast("Template", document)


def look_up(document: object, *path: str) -> Json:
    """Return the value at ``path``; None where a key on the way is absent."""
    value = cast("Json", document)
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def text(document: object, *path: str) -> str:
    """Return the text at ``path``; empty without a text."""
    value = look_up(document, *path)
    return value if isinstance(value, str) else ""


def number(document: object, *path: str, default: int = 0) -> int:
    """Return the whole number at ``path``; ``default`` without a number.

    The API server leaves a count of zero out.
    """
    value = look_up(document, *path)
    return value if isinstance(value, int) else default


def mapping(document: object, *path: str) -> JsonObject:
    """Return the object at ``path``; empty without an object."""
    value = look_up(document, *path)
    return value if isinstance(value, Mapping) else {}


def sequence(document: object, *path: str) -> Sequence[Json]:
    """Return the list at ``path``; empty without a list."""
    value = look_up(document, *path)
    return value if isinstance(value, list | tuple) else ()


def objects(document: object, *path: str) -> Sequence[JsonObject]:
    """Return the objects of the list at ``path``; empty without a list."""
    return [item for item in sequence(document, *path) if isinstance(item, Mapping)]


def as_list(value: Json) -> Sequence[Json]:
    """Return a value of a policy as a list: a single value may stand without a list."""
    if value is None:
        return ()
    if isinstance(value, str | Mapping):
        return (value,)
    return sequence({"list": value}, "list") or (value,)
