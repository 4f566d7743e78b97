"""Templates in a form to compare: equal values have one spelling, and references are resolved.

Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from ultrascale.documents import (
    Json,
    JsonObject,
    Resource,
    Template,
    look_up,
    mapping,
    sequence,
    text,
)
from ultrascale.errors import masked

Templates: TypeAlias = Mapping[str, Template]
"""Templates by the names of their stacks."""
Key: TypeAlias = tuple[str, str]
"""The stack and the logical id of a resource."""

UPDATE_POLICY = "UpdatePolicy"
"""The attribute of an Auto Scaling group that says what an update does to its instances."""

_NOTE = "AWS::CDK::Metadata"
_NO_VALUE = {"Ref": "AWS::NoValue"}
# No property of any type has this name.
_REFERENCE = "::Resource"
_CONCAT = "::Text"
_IMPORT = "Fn::ImportValue"
_VARIABLE = re.compile(r"\$\{(!?[^}]*)\}")
_HASH = re.compile(r"[0-9A-F]{8}$")
# The CDK's names for the only resource of a construct.
_UNSPOKEN = ("Resource", "Default")


class Reference(NamedTuple):
    """A reference to the id or to an attribute of a resource."""

    stack: str  # Stack of the resource
    logical_id: str  # Logical id of the resource
    attribute: str  # The attribute; empty for the id

    @property
    def resource(self) -> Key:
        """The stack and the logical id."""
        return self.stack, self.logical_id


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class World:
    """All stacks of a cluster, either deployed or about to be deployed."""

    templates: Templates  # Their templates
    exports: Mapping[str, tuple[str, Json]]  # The stack and the value of each export, by its name
    importers: Mapping[str, Sequence[str]]  # Stacks that import each export, by its name
    _properties: dict[Key, JsonObject] = field(
        default_factory=dict[Key, JsonObject], init=False, repr=False
    )

    def resources(self, stack: str) -> Mapping[str, Resource]:
        """Return the resources of a stack by logical id; empty without such a stack."""
        template: Template = self.templates.get(stack, {})
        return template.get("Resources", {})

    def type_of(self, key: Key) -> str:
        """Return the type of a resource; empty without such a resource."""
        stack, logical_id = key
        body = self.resources(stack).get(logical_id)
        return "" if body is None else body["Type"]

    def properties(self, key: Key) -> JsonObject:
        """Return the properties of a resource for comparison, with its update policy."""
        if key not in self._properties:
            stack, logical_id = key
            body = self.resources(stack)[logical_id]
            own = dict(body.get("Properties", {}))
            if UPDATE_POLICY in body:
                own[UPDATE_POLICY] = body[UPDATE_POLICY]
            self._properties[key] = mapping(self.value(stack, own))
        return self._properties[key]

    def value(self, stack: str, value: Json) -> Json:
        """Return a value of ``stack`` in a form where values of the same meaning are equal.

        A reference carries the name of its stack; parameters, conditions and
        mappings are replaced by what they stand for; joined text is joined; numbers and truth
        values are text.
        """
        if isinstance(value, Mapping):
            return self._mapping(stack, value)
        if isinstance(value, list | tuple):
            items = [self.value(stack, item) for item in value]
            return [item for item in items if item != _NO_VALUE]
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)

    def _mapping(self, stack: str, value: JsonObject) -> Json:
        if len(value) == 1:
            ((function, argument),) = value.items()
            if function == "Ref" or function.startswith("Fn::"):
                return self._function(stack, function, argument)
            conditions = self.templates[stack].get("Conditions", {})
            if function == "Condition" and isinstance(argument, str) and argument in conditions:
                return self.value(stack, conditions[argument])
        items = {key: self.value(stack, item) for key, item in value.items()}
        return {key: item for key, item in items.items() if item != _NO_VALUE}

    def _function(self, stack: str, function: str, argument: Json) -> Json:
        match function, argument:
            case "Ref" | "Fn::GetAtt", str(name):
                return self._reference(stack, *_resource_and_attribute(name))
            case "Fn::GetAtt", [str(name), str(attribute)]:
                return self._reference(stack, name, attribute)
            case "Fn::Join" | "Fn::Sub", _:
                return self._text(stack, function, argument)
            case "Fn::ImportValue", _:
                name = self.value(stack, argument)
                if isinstance(name, str) and name in self.exports:
                    return self.value(*self.exports[name])
            case "Fn::If", [str(name), *branches]:
                condition = self.templates[stack].get("Conditions", {}).get(name, name)
                return {function: self.value(stack, [condition, *branches])}
            case "Fn::FindInMap", [str(table), *keys]:
                mappings = self.templates[stack].get("Mappings", {})
                value = look_up(mappings, table, *map(str, keys))
                if value is not None:
                    return self.value(stack, value)
            case _:
                pass
        return {function: self.value(stack, argument)}

    def _text(self, stack: str, function: str, argument: Json) -> Json:
        match function, argument:
            case "Fn::Join", [str(delimiter), list(parts)]:
                return _joined_text(delimiter, [self.value(stack, part) for part in parts])
            case "Fn::Sub", str(pattern):
                return self._substituted_text(stack, pattern, {})
            case "Fn::Sub", [str(pattern), Mapping() as variables]:
                return self._substituted_text(stack, pattern, variables)
            case _:
                return {function: self.value(stack, argument)}

    def _reference(self, stack: str, name: str, attribute: str) -> Json:
        template = self.templates[stack]
        if name in template.get("Resources", {}):
            return {_REFERENCE: [stack, name, attribute]}
        parameters = template.get("Parameters", {})
        if name in parameters:
            return {"Ref": name, "Parameter": parameters[name]}
        return {"Ref": name}

    def _substituted_text(self, stack: str, pattern: str, variables: JsonObject) -> Json:
        pieces: list[Json] = []
        end = 0
        for match in _VARIABLE.finditer(pattern):
            pieces.append(pattern[end : match.start()])
            name = match[1]
            if name.startswith("!"):
                pieces.append(f"${{{name[1:]}}}")
            elif name in variables:
                pieces.append(self.value(stack, variables[name]))
            else:
                pieces.append(self._reference(stack, *_resource_and_attribute(name)))
            end = match.end()
        return _joined_text("", [*pieces, pattern[end:]])


def world(templates: Templates) -> World:
    """Return the stacks of ``templates``, with the exports between them."""
    templates = {stack: _without_note(template) for stack, template in templates.items()}
    exports = {
        name: (stack, output["Value"])
        for stack, template in templates.items()
        for output in template.get("Outputs", {}).values()
        if (name := text(output, "Export", "Name"))
    }
    importers: dict[str, list[str]] = {}
    for stack, template in templates.items():
        for name in dict.fromkeys(imports(template)):
            importers.setdefault(name, []).append(stack)
    return World(templates=templates, exports=exports, importers=importers)


def _without_note(template: Template) -> Template:
    """Return a template without the CDK's metadata resource, which no service sees."""
    resources = template.get("Resources", {})
    kept = {id: body for id, body in resources.items() if body["Type"] != _NOTE}
    return {**template, "Resources": kept}


def _resource_and_attribute(name: str) -> tuple[str, str]:
    resource, _, attribute = name.partition(".")
    return resource, attribute


def references(value: Json) -> Iterator[Reference]:
    """Yield every reference within a value that `World.value` returned."""
    if isinstance(value, Mapping):
        if set(value) == {_REFERENCE}:
            yield Reference(*map(str, sequence(value, _REFERENCE)))
        else:
            for item in value.values():
                yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def imports(part: object) -> Iterator[str]:
    """Yield the name of every export that a part of a template imports."""
    for key, item in mapping(part).items():
        if key == _IMPORT and isinstance(item, str):
            yield item
        else:
            yield from imports(item)
    for item in sequence(part):
        yield from imports(item)


def is_atom(value: Json) -> bool:
    """Return whether a value of `World.value` is compared as a whole."""
    if not isinstance(value, Mapping):
        return not isinstance(value, list)
    return any(key in (_REFERENCE, _CONCAT, "Ref") or key.startswith("Fn::") for key in value)


def count(value: Json) -> int | None:
    """Return a whole number; None if only the deployed stack knows it."""
    try:
        return int(str(value))
    except ValueError:
        return None


# Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)([KMGTPE]i?|k|m)?")
_POWERS = {"K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}


def quantity(value: Json) -> float | None:
    """Return a quantity of Kubernetes as a number; None where it is none."""
    match = _QUANTITY.fullmatch(str(value))
    if match is None:
        return None
    number, unit = match[1], match[2] or ""
    if unit == "m":
        return float(number) / 1000
    base = 1024 if unit.endswith("i") else 1000
    return float(number) * base ** _POWERS.get(unit[:1].upper(), 0)


def shown(value: Json, most: int = 80) -> str:
    """Return a value of `World.value` in words, cut to ``most`` characters."""
    words = _words(value)
    return words if len(words) <= most else f"{words[: most - 1]}…"


def shown_change(old: Json, new: Json, most: int = 80) -> tuple[str, str]:
    """Return two values in words; long ones are cut to the part in which they differ.

    User data and launch templates are alike for thousands of characters.

    Args:
        old: The value before.
        new: The value after.
        most: Characters of each, at most.
    """
    words = (_words(old), _words(new))
    if max(map(len, words)) <= most:
        return words
    before = _common_length(*words)
    after = _common_length(*(word[before:][::-1] for word in words))
    first = max(before - most // 4, 0)
    return _text_part(words[0], first, after, most), _text_part(words[1], first, after, most)


def _common_length(one: str, other: str) -> int:
    """Return the number of equal characters at the beginning of two texts."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))


def _text_part(words: str, first: int, after: int, most: int) -> str:
    """Return ``words`` from index ``first`` on, cut to ``most`` characters."""
    last = min(len(words) - after + most // 4, first + most, len(words))
    return f"{'…' if first else ''}{words[first:last]}{'…' if last < len(words) else ''}"


def _words(value: Json) -> str:
    return masked(" ".join(_plain_text(value).split()))


def text_of(value: Json) -> str:
    """Return a value of `World.value` as one text, with references in angle brackets."""
    if isinstance(value, Mapping):
        if set(value) == {_CONCAT}:
            return "".join(map(text_of, sequence(value, _CONCAT)))
        if set(value) == {_REFERENCE}:
            return f"<{'.'.join(filter(None, map(str, sequence(value, _REFERENCE))))}>"
        if set(value) == {"Ref"}:
            return f"<{value['Ref']}>"
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def path_name(logical_id: str, body: Resource) -> str:
    """Return a resource's name for people, from the CDK's path or from its logical id."""
    path = text(body, "Metadata", "aws:cdk:path")
    spoken = [part for part in path.split("/")[1:] if part not in _UNSPOKEN]
    return spoken[-1] if spoken else _HASH.sub("", logical_id) or logical_id


def _plain_text(value: Json) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, list):
        return f"[{', '.join(map(_plain_text, value))}]"
    if isinstance(value, Mapping) and not is_atom(value):
        return f"{{{', '.join(f'{key}: {_plain_text(item)}' for key, item in value.items())}}}"
    return text_of(value)


def _joined_text(delimiter: str, parts: Sequence[Json]) -> Json:
    """Return joined text, with neighboring literals merged."""
    pieces: list[Json] = []
    for index, part in enumerate(parts):
        if index and delimiter:
            _append(pieces, delimiter)
        is_joined = isinstance(part, Mapping) and set(part) == {_CONCAT}
        for piece in sequence(part, _CONCAT) if is_joined else (part,):
            _append(pieces, piece)
    if not pieces:
        return ""
    return pieces[0] if len(pieces) == 1 else {_CONCAT: pieces}


def _append(pieces: list[Json], piece: Json) -> None:
    last = pieces[-1] if pieces else None
    if piece == "":
        return
    if isinstance(piece, str) and isinstance(last, str):
        pieces[-1] = last + piece
    else:
        pieces.append(piece)
