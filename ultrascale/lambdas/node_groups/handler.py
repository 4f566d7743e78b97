"""The function behind the custom resources of managed node groups."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

import boto3

from ..cloudformation import Send, put, respond
from .size import desired_size
from .tags import remove_tags, set_tags

Event = Mapping[str, Any]
Answer = tuple[str, Mapping[str, object]]

_LOG = logging.getLogger(__name__)


def on_event(event: Event, context: object) -> None:
    """Answer a request of CloudFormation."""
    answer(event, eks=boto3.client("eks"), autoscaling=boto3.client("autoscaling"))


def answer(event: Event, *, eks: Any, autoscaling: Any, send: Send = put) -> None:
    """Do what CloudFormation asks for, and tell it what came of it.

    Args:
        event: The request.
        eks: EKS client.
        autoscaling: Auto Scaling client.
        send: Sends the answer.

    Raises:
        OSError: CloudFormation could not be reached.
    """
    try:
        physical_id, data = _ACTIONS[event["ResourceType"]](event, eks, autoscaling)
    # Whatever it is: without an answer the deploy hangs, and nobody learns why.
    except Exception as error:
        _LOG.exception("%s of %s", event["RequestType"], event["LogicalResourceId"])
        reason = f"{type(error).__name__}: {error}"
        respond(event, status="FAILED", physical_id=_same_id(event), reason=reason, send=send)
        return
    respond(event, status="SUCCESS", physical_id=physical_id, data=data, send=send)


def _same_id(event: Event) -> str:
    """Return the id that the resource has, or gets for ever."""
    return event.get("PhysicalResourceId", event["LogicalResourceId"])


def _size(event: Event, eks: Any, autoscaling: Any) -> Answer:
    if event["RequestType"] == "Delete":
        return _same_id(event), {}
    size = desired_size(eks, autoscaling, event["ResourceProperties"])
    return _same_id(event), {"DesiredSize": size}


def _tags(event: Event, eks: Any, autoscaling: Any) -> Answer:
    properties = event["ResourceProperties"]
    if event["RequestType"] == "Delete":
        remove_tags(eks, autoscaling, properties)
        return _same_id(event), {}
    set_tags(eks, autoscaling, properties, before=event.get("OldResourceProperties"))
    # The tags of another group are another resource: CloudFormation has the old ones taken away.
    return properties["NodegroupName"], {}


_ACTIONS: Mapping[str, Callable[[Event, Any, Any], Answer]] = {
    "Custom::NodeGroupSize": _size,
    "Custom::AutoScalingGroupTags": _tags,
}
