"""Requests of CloudFormation to the function behind node groups, and its answers."""

import json
import urllib.request
from typing import Any

from tests.support.node_group_services import STACK, Aws
from ultrascale.lambdas.node_groups.handler import answer


def request(kind: str, properties: dict[str, Any], **changes: Any) -> Any:
    return {
        "RequestType": "Create",
        "ResourceType": kind,
        "ResponseURL": "https://cloudformation.example/answer",
        "StackId": STACK,
        "RequestId": "request",
        "LogicalResourceId": "It",
        "ResourceProperties": properties,
    } | changes


def update(kind: str, properties: dict[str, Any], before: dict[str, Any]) -> Any:
    return request(
        kind,
        properties,
        RequestType="Update",
        PhysicalResourceId="there",
        OldResourceProperties=before,
    )


def delete(kind: str, properties: dict[str, Any]) -> Any:
    return request(kind, properties, RequestType="Delete", PhysicalResourceId="there")


def answers(aws: Aws, event: Any) -> dict[str, Any]:
    """Return the one answer that CloudFormation gets."""
    sent: list[urllib.request.Request] = []
    answer(event, clients=aws.clients, send=sent.append)
    aws.verify()
    (only,) = sent
    assert only.full_url == event["ResponseURL"]
    assert isinstance(only.data, bytes)
    return json.loads(only.data)
