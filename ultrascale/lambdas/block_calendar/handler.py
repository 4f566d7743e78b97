"""Function of the block calendar, called by CloudFormation and by a schedule."""

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import boto3
from botocore.session import Session

from ..cloudformation import respond, rolls_back
from ..cluster import look_up
from ..kubernetes import KubernetesApi, bearer_token, tls_context
from .decision import ReservationLostError
from .entry import Deploy, Entry, Target, keep
from .groups import AutoScalingGroup, ManagedNodeGroup
from .next_block import breaks_off, let_pass
from .node_pool import StaticNodePool
from .reservation import find, find_on_demand
from .retry import until_settled

if TYPE_CHECKING:
    from ..events import CalendarProperties, CalendarTarget, Request

_NODE_POOL = "NodePool"


def clock() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


def on_event(
    event: "Request[CalendarProperties] | CalendarProperties", _context: object = None
) -> None:
    """Keep the calendar for one pool.

    Args:
        event: A request of CloudFormation, or the properties of such a request from a schedule.

    Raises:
        Exception: Any error, so that the alarm sees it; CloudFormation has its answer.
    """
    if "RequestType" in event:
        _deploy(event)
    # The schedule calls every minute, for weeks before the start as well.
    elif Entry.parse(event).has_work(clock()):
        print(_keep(event, deploy=None))


def _deploy(event: "Request[CalendarProperties]") -> None:
    properties = event["ResourceProperties"]
    physical_id = f"block-calendar-{properties['Pool']}"
    if event["RequestType"] == "Delete":
        respond(event, status="SUCCESS", physical_id=event["PhysicalResourceId"])
        return
    try:
        print(until_settled(lambda: _deployed(event)))
    except ReservationLostError as error:
        # No deployment can change that, and a failed one could not be rolled back. The schedule
        # meets the same error, and raises the alarm.
        print(f"pool {properties['Pool']}: {error}")
    except Exception as error:
        # The NodePools of a cluster share a stack, and an error of one would roll back all of them.
        # The schedule meets the same error within a minute, and raises the alarm.
        shared = properties["Target"]["Kind"] == _NODE_POOL
        reason = f"pool {properties['Pool']}: {type(error).__name__}: {error}"
        status = "SUCCESS" if shared else "FAILED"
        respond(event, status=status, physical_id=physical_id, reason=reason)
        raise
    respond(event, status="SUCCESS", physical_id=physical_id)


def _deployed(event: "Request[CalendarProperties]") -> str:
    _protect(event)
    before = event.get("OldResourceProperties")
    deploy = Deploy(size_before=int(before["Size"]) if before else None)
    return _keep(event["ResourceProperties"], deploy=deploy)


def _protect(event: "Request[CalendarProperties]") -> None:
    """Raise where the calendar must not leave the previous block yet."""
    properties, before = event["ResourceProperties"], event.get("OldResourceProperties")
    if before is None:
        return
    old, new = Entry.parse(before), Entry.parse(properties)
    if not breaks_off(old, new, now=clock()):
        return
    if properties["Target"]["Kind"] == _NODE_POOL:
        # The stack is shared: see the answer to CloudFormation.
        print(
            f"pool {old.pool}: its block of until now runs until {old.window.ends:%Y-%m-%d %H:%M}Z,"
            " and the calendar no longer drains its nodes before that"
        )
        return
    let_pass(
        old,
        size=_target(properties["Target"]).size,
        rolls_back=lambda: rolls_back(boto3.client("cloudformation"), event["StackId"]),
    )


def _keep(properties: "CalendarProperties", *, deploy: Deploy | None) -> str:
    entry = Entry.parse(properties)
    return keep(
        entry,
        now=clock(),
        deploy=deploy,
        block=lambda: (find if entry.is_dated else find_on_demand)(
            boto3.client("ec2"), entry.reservation
        ),
        target=_target(properties["Target"]),
    )


def _target(target: "CalendarTarget") -> Target:
    name = target["Name"]
    match target["Kind"]:
        case "ManagedNodeGroup":
            return ManagedNodeGroup(
                eks=boto3.client("eks"),
                autoscaling=boto3.client("autoscaling"),
                cluster=target["Cluster"],
                name=name,
            )
        case "AutoScalingGroup":
            return AutoScalingGroup(autoscaling=boto3.client("autoscaling"), name=name)
        case "NodePool":
            return StaticNodePool(api=_kubernetes(target["Cluster"]), name=name)
        case kind:
            raise ValueError(f"the calendar knows no target of kind {kind}")


def _kubernetes(cluster: str) -> KubernetesApi:
    region = os.environ["AWS_REGION"]
    server = look_up(cluster)
    return KubernetesApi(
        endpoint=server.endpoint,
        context=tls_context(server.certificate_authority),
        token=bearer_token(Session(), cluster=cluster, region=region),
    )
