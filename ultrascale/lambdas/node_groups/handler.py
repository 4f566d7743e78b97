"""Function of the custom resources of node groups."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import boto3

from ..cloudformation import Send, put, respond
from .guard import let_pass
from .size import desired_size
from .tags import remove_tags, set_tags
from .zones import name_of, suspend_rebalancing

if TYPE_CHECKING:
    from mypy_boto3_autoscaling import AutoScalingClient
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_eks import EKSClient

    from ..events import NodeGroupProperties, Request

Answer = tuple[str, Mapping[str, str | int]]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """Clients of the services.

    Attributes:
        eks: EKS client.
        autoscaling: Auto Scaling client.
        cloudformation: CloudFormation client.
    """

    eks: "EKSClient"
    autoscaling: "AutoScalingClient"
    cloudformation: "CloudFormationClient"


def on_event(event: "Request[NodeGroupProperties]", context: object) -> None:
    """Answer a request of CloudFormation."""
    clients = Clients(
        eks=boto3.client("eks"),
        autoscaling=boto3.client("autoscaling"),
        cloudformation=boto3.client("cloudformation"),
    )
    answer(event, clients=clients)


def answer(event: "Request[NodeGroupProperties]", *, clients: Clients, send: Send = put) -> None:
    """Carry out a request of CloudFormation, and report the outcome.

    Args:
        event: The request.
        clients: Clients of the services.
        send: Sends the answer.

    Raises:
        OSError: CloudFormation could not be reached.
    """
    try:
        physical_id, data = _ACTIONS[event["ResourceType"]](event, clients)
    # Any error: without an answer, the deployment hangs, and nobody learns the reason.
    except Exception as error:
        _LOG.exception("%s of %s", event["RequestType"], event["LogicalResourceId"])
        reason = f"{type(error).__name__}: {error}"
        respond(event, status="FAILED", physical_id=_same_id(event), reason=reason, send=send)
        return
    respond(event, status="SUCCESS", physical_id=physical_id, data=data, send=send)


def _same_id(event: "Request[NodeGroupProperties]") -> str:
    """Return the id of the resource, which it keeps for ever."""
    return event.get("PhysicalResourceId", event["LogicalResourceId"])


def _size(event: "Request[NodeGroupProperties]", clients: Clients) -> Answer:
    if event["RequestType"] == "Delete":
        return _same_id(event), {}
    size = desired_size(clients.eks, clients.autoscaling, event["ResourceProperties"])
    return _same_id(event), {"DesiredSize": size}


def _tags(event: "Request[NodeGroupProperties]", clients: Clients) -> Answer:
    properties = event["ResourceProperties"]
    if event["RequestType"] == "Delete":
        remove_tags(clients.eks, clients.autoscaling, properties)
        return _same_id(event), {}
    before = event.get("OldResourceProperties")
    set_tags(clients.eks, clients.autoscaling, properties, before=before)
    # Another group gives another id, so that CloudFormation deletes the old tags.
    return properties["NodegroupName"], {}


def _guard(event: "Request[NodeGroupProperties]", clients: Clients) -> Answer:
    if event["RequestType"] == "Update":
        let_pass(
            clients.eks,
            clients.autoscaling,
            clients.cloudformation,
            event["ResourceProperties"],
            before=event["OldResourceProperties"],
            stack=event["StackId"],
        )
    return _same_id(event), {}


def _zones(event: "Request[NodeGroupProperties]", clients: Clients) -> Answer:
    properties = event["ResourceProperties"]
    # Nothing is resumed: the group is deleted as well, or may stay as it is.
    if event["RequestType"] == "Delete":
        return _same_id(event), {}
    suspend_rebalancing(clients.eks, clients.autoscaling, properties)
    return name_of(properties), {}


_ACTIONS: "Mapping[str, Callable[[Request[NodeGroupProperties], Clients], Answer]]" = {
    "Custom::NodeGroupSize": _size,
    "Custom::AutoScalingGroupTags": _tags,
    "Custom::NodeGroupGuard": _guard,
    "Custom::SuspendedZoneRebalancing": _zones,
}
