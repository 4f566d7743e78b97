"""CloudFormation resources for rules to judge."""

from typing import Any

from ultrascale_stacks.rules import violations


def resource(kind: str, properties: dict[str, Any], **attributes: str) -> dict[str, Any]:
    """Return a resource of a template."""
    return {"Type": kind, "Properties": properties, **attributes}


def broken_by(body: dict[str, Any], **others: dict[str, Any]) -> list[str]:
    """Return the rules that ``body`` breaks in a template in which ``others`` stand beside it."""
    found = violations({"Resources": {"It": body, **others}})
    return [rule.name for rule, resource in found if resource.logical_id == "It"]
