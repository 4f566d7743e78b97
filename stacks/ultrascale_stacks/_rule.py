"""What a rule over CloudFormation templates is, and what it looks at."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

Properties = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource of a template.

    Attributes:
        logical_id: Its logical id.
        type: Its CloudFormation type.
        properties: Its properties.
        retained: Whether it outlives its stack and its replacement.
        rolls: Whether a deploy replaces the instances that run.
        launches: `LaunchTemplateData` of the template of the same stack that its instances are
            launched from; empty where there is none.
    """

    logical_id: str
    type: str
    properties: Properties
    retained: bool
    rolls: bool
    launches: Properties


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule.

    Attributes:
        name: What an acknowledgment names.
        description: What is wrong where it fires.
        types: CloudFormation types it looks at.
        broken: Whether a resource breaks it.
    """

    name: str
    description: str
    types: tuple[str, ...]
    broken: Callable[[Resource], bool]


def resources(template: Properties) -> Iterator[Resource]:
    """Yield the resources of a template."""
    bodies = mapping(template.get("Resources"))
    for logical_id, body in bodies.items():
        resource = mapping(body)
        properties = mapping(resource.get("Properties"))
        template_id = _launch_template(properties)
        yield Resource(
            logical_id=logical_id,
            type=str(resource["Type"]),
            properties=properties,
            retained=resource.get("DeletionPolicy") in {"Retain", "RetainExceptOnCreate"}
            and resource.get("UpdateReplacePolicy") == "Retain",
            rolls=not mapping(resource.get("UpdatePolicy")).keys()
            <= {"AutoScalingScheduledAction"},
            launches=mapping(
                look_up(mapping(bodies.get(template_id)), "Properties", "LaunchTemplateData")
            ),
        )


def _launch_template(properties: Properties) -> str:
    """Return the logical id of the launch template of a node group or an Auto Scaling group."""
    mixed = look_up(
        properties, "MixedInstancesPolicy", "LaunchTemplate", "LaunchTemplateSpecification"
    )
    named = mapping(properties.get("LaunchTemplate")) or mapping(mixed)
    id = mapping(named.get("Id") or named.get("LaunchTemplateId"))
    return str(id.get("Ref", ""))


def mapping(value: object) -> Properties:
    """Return ``value`` if it is a mapping, or an empty one."""
    return cast("Properties", value) if isinstance(value, Mapping) else {}


def sequence(value: object) -> Sequence[object]:
    """Return ``value`` if it is a list, or an empty one."""
    return cast("Sequence[object]", value) if isinstance(value, list) else ()


def look_up(properties: Properties, *path: str) -> object:
    """Return what stands at ``path``, None where nothing does."""
    value: object = properties
    for key in path:
        value = mapping(value).get(key)
    return value


def at(resource: Resource, *path: str) -> object:
    """Return the property of ``resource`` at ``path``, None where there is none."""
    return look_up(resource.properties, *path)
