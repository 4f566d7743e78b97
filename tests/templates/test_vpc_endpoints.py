"""Rights of what runs in the VPC, held against the services that it is said to call.

A service that is forgotten has no endpoint where there is no way out: calls of it wait until they
are given up, in a cluster that looks deployed.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.support.assembly import Assembly
from ultrascale.catalog.cloudformation import allowed_by
from ultrascale.catalog.endpoints import services_of_action
from ultrascale.plan.network.endpoints import calls_of, features_of

Resource = Mapping[str, Any]
POLICY = re.compile(r":policy/(?:[a-z-]+/)?(\w+)")
TAKEN_INSIDE = {"pods.eks.amazonaws.com", "ec2.amazonaws.com"}
"""Principals of roles in the VPC: pods and nodes."""
NOT_CALLED: Mapping[str, str] = {
    "kms": "S3, Secrets Manager and EBS call it, from their own side",
    "iam": "PassRole is judged by EC2; the rest is left out where there is no way to IAM",
    "pricing": "left out where there is no way to it",
    "rds-db": "signs a token, calls nothing",
    "ecr-public": "charts come from the mirror where there is no way out",
    "xray": "traces of CloudWatch's agent are off",
}


def actions(statements: list[Resource]) -> Iterator[str]:
    for statement in statements:
        found = statement["Action"]
        yield from [found] if isinstance(found, str) else found


def attached(template: Resource, role: str) -> Iterator[str]:
    """Yield the actions of the policies of a role."""
    body = template["Resources"][role]["Properties"]
    for policy in body.get("Policies", []):
        yield from actions(policy["PolicyDocument"]["Statement"])
    for arn in body.get("ManagedPolicyArns", []):
        for name in POLICY.findall(str(arn)):
            yield from allowed_by(name)
    for other in template["Resources"].values():
        if other["Type"] in {"AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"} and {"Ref": role} in (
            other["Properties"].get("Roles", [])
        ):
            yield from actions(other["Properties"]["PolicyDocument"]["Statement"])


def roles_inside(template: Resource) -> Iterator[str]:
    """Yield the roles of functions in the VPC, of pods, of nodes and of builds in the VPC."""
    resources: Mapping[str, Resource] = template.get("Resources", {})
    for body in resources.values():
        properties = body.get("Properties", {})
        if "VpcConfig" in properties and body["Type"] == "AWS::Lambda::Function":
            yield properties["Role"]["Fn::GetAtt"][0]
        if "VpcConfig" in properties and body["Type"] == "AWS::CodeBuild::Project":
            yield properties["ServiceRole"]["Fn::GetAtt"][0]
    for name, body in resources.items():
        trust = body.get("Properties", {}).get("AssumeRolePolicyDocument", {})
        if body["Type"] == "AWS::IAM::Role" and any(
            statement["Principal"].get("Service") in TAKEN_INSIDE
            for statement in trust["Statement"]
        ):
            yield name


def called(assembly: Assembly) -> set[str]:
    """Return the prefixes of the actions that something in the VPC may call."""
    found: set[str] = set()
    for template in assembly.templates.values():
        for role in {*roles_inside(template)}:
            own = {*attached(template, role)}
            trust = str(template["Resources"][role]["Properties"]["AssumeRolePolicyDocument"])
            # Lambda writes logs and makes interfaces of functions from its own side.
            by_lambda = {"logs", "ec2"} if "lambda.amazonaws.com" in trust else set[str]()
            found |= {action.partition(":")[0] for action in own} - by_lambda
    return found


@pytest.fixture(params=["trainium", "mixed", "auto", "hybrid", "ultra", "llm", "estate"])
def assembly(request: pytest.FixtureRequest) -> Assembly:
    """Everything that each of the cluster files becomes."""
    return request.getfixturevalue(request.param)


def test_every_service_that_something_in_the_vpc_may_call_is_known(assembly: Assembly) -> None:
    services = called(assembly)
    needed = {*calls_of(features_of(assembly.plan))}

    assert {"ecr", "eks", "lambda"} <= services
    forgotten = {
        prefix
        for prefix in services - NOT_CALLED.keys()
        if not needed & {*services_of_action(f"{prefix}:Any")}
    }
    assert not forgotten


def test_a_closed_network_has_each_service_and_no_right_to_any_other(estate: Assembly) -> None:
    endpoints = {each.service for each in estate.plan.network.endpoints if each.state == "present"}
    rights = {
        action
        for template in estate.templates.values()
        for role in {*roles_inside(template)}
        for action in attached(template, role)
    }

    assert {*calls_of(features_of(estate.plan))} <= endpoints
    assert {each for each in rights if each.startswith(("iam:", "pricing:"))} == {"iam:PassRole"}
