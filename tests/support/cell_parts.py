"""Parts of an assembly that decide when nodes come and go."""

import json
from collections.abc import Mapping
from typing import Any

from tests.support.assembly import Assembly, Document


def of(assembly: Assembly, stack: str, kind: str) -> list[Document]:
    """Return the properties of the resources of a CloudFormation type in ``stack``."""
    found = assembly.templates[stack]["Resources"].values()
    return [body["Properties"] for body in found if body["Type"] == kind]


def the(assembly: Assembly, stack: str, kind: str) -> Document:
    (found,) = of(assembly, stack, kind)
    return found


def text(value: Any) -> str:
    """Return a string of a template in which a name of CloudFormation's making is a star."""
    if isinstance(value, str):
        return value
    parts = value["Fn::Join"][1] if "Fn::Join" in value else [value]
    return "".join(part if isinstance(part, str) else "*" for part in parts)


def schedules(assembly: Assembly, stack: str) -> Mapping[str, tuple[str, Document]]:
    """Return the operation and the input of each schedule in ``stack``, by its expression."""
    return {
        each["ScheduleExpression"]: (
            text(each["Target"]["Arn"]).partition("aws-sdk:")[2] or "the function",
            json.loads(text(each["Target"]["Input"])),
        )
        for each in of(assembly, stack, "AWS::Scheduler::Schedule")
    }


def spec(assembly: Assembly, kind: str, name: str) -> Document:
    return assembly.find(kind, name)["spec"]


def requirement(node_pool: Document, key: str) -> list[str]:
    (values,) = (
        each["values"]
        for each in node_pool["template"]["spec"]["requirements"]
        if each["key"] == key
    )
    return values


def container(assembly: Assembly, name: str) -> Document:
    (found,) = assembly.find("Deployment", name)["spec"]["template"]["spec"]["containers"]
    return found
