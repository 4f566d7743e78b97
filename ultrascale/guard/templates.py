"""Templates as they are compared: values in one spelling, and what they refer to.

Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

Template = Mapping[str, Any]
Templates = Mapping[str, Template]
"""Templates by the names of their stacks."""
Key = tuple[str, str]
"""The stack and the logical id of a resource."""

UPDATE_POLICY = "UpdatePolicy"
"""The attribute of an Auto Scaling group that says what an update does to its instances."""

_NOTE = "AWS::CDK::Metadata"
_NO_VALUE = {"Ref": "AWS::NoValue"}
# No property of any type has such a name.
_REFERENCE = "::Resource"
_CONCAT = "::Text"
_IMPORT = "Fn::ImportValue"
_VARIABLE = re.compile(r"\$\{(!?[^}]*)\}")
_HASH = re.compile(r"[0-9A-F]{8}$")
# What the CDK calls the one resource of a construct.
_UNSPOKEN = ("Resource", "Default")


class Reference(NamedTuple):
    """A resource whose id or attribute a value has.

    Attributes:
        stack: Its stack.
        logical_id: Its logical id.
        attribute: The attribute; empty for its id.
    """

    stack: str
    logical_id: str
    attribute: str

    @property
    def resource(self) -> Key:
        """The stack and the logical id."""
        return self.stack, self.logical_id


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class World:
    """All stacks of a cluster at one time.

    Attributes:
        templates: Their templates.
        exports: The stack and the value of each export, by its name.
        importers: Stacks that import each export, by its name.
    """

    templates: Templates
    exports: Mapping[str, tuple[str, object]]
    importers: Mapping[str, Sequence[str]]
    _properties: dict[Key, Mapping[str, Any]] = field(
        default_factory=dict[Key, Mapping[str, Any]], init=False, repr=False
    )

    def resources(self, stack: str) -> Mapping[str, Mapping[str, Any]]:
        """Return the resources of a stack by their logical ids; none where it is not there."""
        return self.templates.get(stack, {}).get("Resources", {})

    def properties(self, key: Key) -> Mapping[str, Any]:
        """Return the properties of a resource as they are compared, with its update policy."""
        if key not in self._properties:
            stack, logical_id = key
            body = self.resources(stack)[logical_id]
            own = dict(body.get("Properties", {}))
            if UPDATE_POLICY in body:
                own[UPDATE_POLICY] = body[UPDATE_POLICY]
            self._properties[key] = cast("dict[str, Any]", self.value(stack, own))
        return self._properties[key]

    def value(self, stack: str, value: object) -> object:
        """Return a value of ``stack`` such that two are equal where they mean the same.

        A reference has the name of the stack that it stands in; parameters, conditions and
        mappings are what they say; joined text is joined.
        """
        if isinstance(value, Mapping):
            return self._mapping(stack, cast("Mapping[str, Any]", value))
        if isinstance(value, Sequence) and not isinstance(value, str):
            items = [self.value(stack, each) for each in cast("Sequence[object]", value)]
            return [each for each in items if each != _NO_VALUE]
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)

    def _mapping(self, stack: str, value: Mapping[str, Any]) -> object:
        if len(value) == 1:
            ((function, argument),) = value.items()
            if function == "Ref" or function.startswith("Fn::"):
                return self._function(stack, function, argument)
            conditions = self.templates[stack].get("Conditions", {})
            if function == "Condition" and isinstance(argument, str) and argument in conditions:
                return self.value(stack, conditions[argument])
        items = {key: self.value(stack, each) for key, each in value.items()}
        return {key: each for key, each in items.items() if each != _NO_VALUE}

    def _function(self, stack: str, function: str, argument: Any) -> object:  # noqa: ANN401 JSON
        template = self.templates[stack]
        match function:
            case "Ref" | "Fn::GetAtt":
                return self._reference(stack, argument)
            case "Fn::Join":
                delimiter, parts = cast("tuple[str, object]", argument)
                if isinstance(parts, list):
                    return _joined(delimiter, self.value(stack, cast("list[object]", parts)))
            case "Fn::Sub":
                return self._substituted(stack, argument)
            case "Fn::ImportValue":
                name = self.value(stack, argument)
                if isinstance(name, str) and name in self.exports:
                    return self.value(*self.exports[name])
            case "Fn::If":
                name, *branches = argument
                condition = template.get("Conditions", {}).get(name, name)
                return {function: self.value(stack, [condition, *branches])}
            case "Fn::FindInMap":
                return self._mapped(stack, argument)
            case _:
                pass
        return {function: self.value(stack, argument)}

    def _mapped(self, stack: str, argument: object) -> object:
        """Return what a mapping says; the function itself where that is not known before."""
        table, *keys = cast("Sequence[object]", argument)
        found: object = self.templates[stack].get("Mappings", {}).get(table)
        for key in keys:
            if isinstance(found, Mapping):
                found = cast("Mapping[str, object]", found).get(str(key))
        if found is None:
            return {"Fn::FindInMap": self.value(stack, argument)}
        return self.value(stack, found)

    def _reference(self, stack: str, argument: object) -> object:
        if isinstance(argument, str):
            name, _, attribute = argument.partition(".")
        else:
            name, attribute = cast("Sequence[str]", argument)
        template = self.templates[stack]
        if name in template.get("Resources", {}):
            return {_REFERENCE: [stack, name, attribute]}
        if name in template.get("Parameters", {}):
            return {"Ref": name, "Parameter": template["Parameters"][name]}
        return {"Ref": name}

    def _substituted(self, stack: str, argument: object) -> object:
        names: Mapping[str, object] = {}
        if isinstance(argument, str):
            text = argument
        else:
            text, names = cast("tuple[str, Mapping[str, object]]", argument)
        pieces: list[object] = []
        end = 0
        for match in _VARIABLE.finditer(text):
            pieces.append(text[end : match.start()])
            name = match[1]
            if name.startswith("!"):
                pieces.append(f"${{{name[1:]}}}")
            elif name in names:
                pieces.append(self.value(stack, names[name]))
            else:
                pieces.append(self._reference(stack, name))
            end = match.end()
        return _joined("", [*pieces, text[end:]])


def world(templates: Templates) -> World:
    """Return the stacks of ``templates``, with what they export to each other."""
    templates = {stack: _without_note(template) for stack, template in templates.items()}
    exports = {
        name: (stack, output["Value"])
        for stack, template in templates.items()
        for output in template.get("Outputs", {}).values()
        if isinstance(name := output.get("Export", {}).get("Name"), str)
    }
    importers: dict[str, list[str]] = {}
    for stack, template in templates.items():
        for name in dict.fromkeys(imports(template)):
            importers.setdefault(name, []).append(stack)
    return World(templates=templates, exports=exports, importers=importers)


def _without_note(template: Template) -> Template:
    """Return a template without what the CDK notes of itself: no service sees it."""
    resources: Mapping[str, Any] = template.get("Resources", {})
    kept = {id: body for id, body in resources.items() if body["Type"] != _NOTE}
    return {**template, "Resources": kept}


def references(value: object) -> Iterator[Reference]:
    """Yield every reference within a value of `World.value`."""
    if isinstance(value, dict):
        parts = cast("dict[str, Any]", value)
        if set(parts) == {_REFERENCE}:
            yield Reference(*parts[_REFERENCE])
        else:
            for each in parts.values():
                yield from references(each)
    elif isinstance(value, list):
        for each in cast("list[object]", value):
            yield from references(each)


def imports(value: object) -> Iterator[str]:
    """Yield the name of every export that a part of a template imports."""
    if isinstance(value, Mapping):
        for key, each in cast("Mapping[str, object]", value).items():
            if key == _IMPORT and isinstance(each, str):
                yield each
            else:
                yield from imports(each)
    elif isinstance(value, list):
        for each in cast("list[object]", value):
            yield from imports(each)


def is_atom(value: object) -> bool:
    """Return whether a value of `World.value` has no parts to compare one by one."""
    if not isinstance(value, dict):
        return not isinstance(value, list)
    keys = cast("dict[str, object]", value).keys()
    return any(key in (_REFERENCE, _CONCAT, "Ref") or key.startswith("Fn::") for key in keys)


def shown(value: object, most: int = 80) -> str:
    """Return a value of `World.value` for people, at most so many characters of it."""
    text = "nothing" if value is None else _spoken(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def text_of(value: object) -> str:
    """Return a value of `World.value` as one text, with references in angle brackets."""
    if isinstance(value, dict):
        parts = cast("dict[str, Any]", value)
        if set(parts) == {_CONCAT}:
            return "".join(map(text_of, parts[_CONCAT]))
        if set(parts) == {_REFERENCE}:
            return f"<{'.'.join(filter(None, parts[_REFERENCE]))}>"
        if set(parts) == {"Ref"}:
            return f"<{parts['Ref']}>"
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def path_name(logical_id: str, body: Mapping[str, Any]) -> str:
    """Return what people call a resource: the name in the CDK's path, or in its logical id."""
    path = body.get("Metadata", {}).get("aws:cdk:path")
    if isinstance(path, str):
        spoken = [part for part in path.split("/")[1:] if part not in _UNSPOKEN]
        if spoken:
            return spoken[-1]
    return _HASH.sub("", logical_id) or logical_id


def _spoken(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_spoken, cast('list[object]', value)))}]"
    if is_atom(value):
        return text_of(value)
    items = cast("dict[str, object]", value).items()
    return f"{{{', '.join(f'{key}: {_spoken(each)}' for key, each in items)}}}"


def _joined(delimiter: object, value: object) -> object:
    """Return text whose neighbouring literals are one."""
    pieces: list[object] = []
    for index, each in enumerate(cast("list[object]", value)):
        if index and delimiter:
            _append(pieces, str(delimiter))
        inner = cast("dict[str, Any]", each) if isinstance(each, dict) else {}
        parts: list[object] = inner[_CONCAT] if set(inner) == {_CONCAT} else [each]
        for piece in parts:
            _append(pieces, piece)
    if not pieces:
        return ""
    return pieces[0] if len(pieces) == 1 else {_CONCAT: pieces}


def _append(pieces: list[object], piece: object) -> None:
    if piece == "":
        return
    if isinstance(piece, str) and pieces and isinstance(pieces[-1], str):
        pieces[-1] += piece
    else:
        pieces.append(piece)
