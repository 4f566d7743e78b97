"""Texts that CloudFormation's functions make, as far as a template alone says."""

import re
from collections.abc import Mapping, Sequence

from ultrascale.documents import Json, mapping
from ultrascale.hosts.names import UNKNOWN

_SUB = re.compile(r"\$\{(?P<literal>!)?\s*(?P<name>[^}]+?)\s*\}")


def resolved(value: Json, values: Mapping[str, str]) -> str | None:
    """Return the text that an intrinsic function makes; None where ``value`` is none that does.

    What only a deployment knows is `names.UNKNOWN`.

    Args:
        value: A value of a template.
        values: What parameters and pseudo parameters refer to, by name.

    Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html
    """
    if not isinstance(value, Mapping) or len(value) != 1:
        return None
    (name, argument), *_ = value.items()
    match name, argument:
        case "Ref", str(reference):
            return values.get(reference, UNKNOWN)
        case "Fn::GetAtt" | "Fn::ImportValue", _:
            return UNKNOWN
        case "Fn::FindInMap", [str(table), str(first), str(second), *_]:
            return values.get(f"{table}.{first}.{second}", UNKNOWN)
        case "Fn::Base64", _:
            return _text(argument, values)
        case "Fn::Join", [str(by), items]:
            return _join(by, items, values)
        case "Fn::Sub", str(text):
            return _substitute(text, {}, values)
        case "Fn::Sub", [str(text), Mapping() as own]:
            return _substitute(text, own, values)
        case "Fn::Select", [int() | str() as number, items]:
            return _select(int(number), items, values)
        case _:
            return None


def _text(value: Json, values: Mapping[str, str]) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return str(value)
    return resolved(value, values) or UNKNOWN


def _items(value: Json, values: Mapping[str, str]) -> Sequence[str] | None:
    match value:
        case {"Fn::Split": [str(by), text]}:
            return _text(text, values).split(by)
        case [*items]:
            return [_text(item, values) for item in items]
        case _:
            return None


def _join(by: str, value: Json, values: Mapping[str, str]) -> str:
    items = _items(value, values)
    return UNKNOWN if items is None else by.join(items)


def _select(number: int, value: Json, values: Mapping[str, str]) -> str:
    items = _items(value, values)
    return UNKNOWN if items is None or number >= len(items) else items[number]


def _substitute(text: str, own: Mapping[str, Json], values: Mapping[str, str]) -> str:
    def one(match: re.Match[str]) -> str:
        name = match["name"]
        if match["literal"]:
            return f"${{{name}}}"
        return _text(own[name], values) if name in own else values.get(name, UNKNOWN)

    return _SUB.sub(one, text)


def known_values(template: Mapping[str, Json], region: str) -> Mapping[str, str]:
    """Return what pseudo parameters, defaults of parameters and mappings of a template say.

    Args:
        template: The template.
        region: The Region that it is deployed to.
    """
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    found = {"AWS::Region": region, "AWS::URLSuffix": suffix, "AWS::Partition": "aws"}
    for name, parameter in mapping(template, "Parameters").items():
        if isinstance(default := mapping(parameter).get("Default"), str):
            found[name] = default
    for name, table in mapping(template, "Mappings").items():
        for first, row in mapping(table).items():
            found |= {
                f"{name}.{first}.{second}": str(item) for second, item in mapping(row).items()
            }
    return found
