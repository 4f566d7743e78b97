"""Rules over CloudFormation templates, and the resources that they check."""

from collections.abc import Callable, Iterator

from ultrascale.documents import Json, JsonObject, look_up, mapping
from ultrascale.frozen import Frozen

Properties = JsonObject


class Resource(Frozen):
    """A resource of a template, for rules."""

    logical_id: str  # Its logical id
    type: str  # Its CloudFormation type
    properties: Properties  # Its properties
    retained: bool  # Whether it outlives its stack and its replacement
    rolls: bool  # Whether a deployment replaces running instances
    # `LaunchTemplateData` of its launch template in the same stack; empty where there is none.
    launches: Properties


class Rule(Frozen):
    """A rule over the resources of a template."""

    name: str  # Its name in an acknowledgment
    description: str  # The mistake that it reports
    types: tuple[str, ...]  # CloudFormation types that it checks
    broken: Callable[[Resource], bool]  # Whether a resource breaks it


def resources(template: object) -> Iterator[Resource]:
    """Yield the resources of a template."""
    bodies = mapping(template, "Resources")
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
            launches=mapping(bodies, template_id, "Properties", "LaunchTemplateData"),
        )


def _launch_template(properties: Properties) -> str:
    """Return the logical id of a node group's or Auto Scaling group's launch template."""
    named = mapping(properties, "LaunchTemplate") or mapping(
        properties, "MixedInstancesPolicy", "LaunchTemplate", "LaunchTemplateSpecification"
    )
    id = mapping(named.get("Id") or named.get("LaunchTemplateId"))
    return str(id.get("Ref", ""))


def at(resource: Resource, *path: str) -> Json:
    """Return the property of ``resource`` at ``path``; None without a value."""
    return look_up(resource.properties, *path)
