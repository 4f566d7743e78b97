"""Function of the custom resource of a VPC's prefix reservations."""

import logging
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

from ..cloudformation import Send, put, respond
from .reservations import release, reserve

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

    from ..events import Request, SubnetReservationProperties

_LOG = logging.getLogger(__name__)
# A large VPC has more ranges than EC2 accepts requests at once: it refuses some for a while.
_PATIENT = Config(retries={"mode": "adaptive", "max_attempts": 10})


def on_event(event: "Request[SubnetReservationProperties]", context: object) -> None:
    """Answer a request of CloudFormation."""
    answer(event, ec2=boto3.client("ec2", config=_PATIENT))


def answer(
    event: "Request[SubnetReservationProperties]", *, ec2: "EC2Client", send: Send = put
) -> None:
    """Carry out a request of CloudFormation, and report the outcome.

    Args:
        event: The request; its `Parts` have `SubnetId` and `Cidr` each.
        ec2: EC2 client.
        send: Sends the answer.

    Raises:
        OSError: CloudFormation could not be reached.
    """
    physical_id = event.get("PhysicalResourceId", event["LogicalResourceId"])
    try:
        _do(event, ec2)
    # Any error: without an answer, the deployment hangs, and nobody learns the reason.
    except Exception as error:
        _LOG.exception("%s of %s", event["RequestType"], event["LogicalResourceId"])
        reason = f"{type(error).__name__}: {error}"
        respond(event, status="FAILED", physical_id=physical_id, reason=reason, send=send)
        return
    respond(event, status="SUCCESS", physical_id=physical_id, send=send)


def _do(event: "Request[SubnetReservationProperties]", ec2: "EC2Client") -> None:
    parts = event["ResourceProperties"]["Parts"]
    if event["RequestType"] == "Delete":
        release(ec2, parts)
        return
    # Old ranges go first: ranges of one subnet must not overlap.
    before = event.get("OldResourceProperties")
    kept = before["Parts"] if before else []
    release(ec2, [part for part in kept if part not in parts])
    reserve(ec2, parts)
