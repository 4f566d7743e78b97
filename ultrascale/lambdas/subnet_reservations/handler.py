"""Function of the custom resource for a VPC's prefix reservations."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from ..cloudformation import Send, put, respond

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import SubnetCidrReservationTypeDef

    from ..events import Request, SubnetPart, SubnetReservationProperties


# --- CIDR reservations of subnets in EC2 ----------------------------------------------------------


# A reservation goes together with its subnet.
_NO_SUBNET = "InvalidSubnetID.NotFound"


def reserve(ec2: "EC2Client", parts: "Sequence[SubnetPart]") -> None:
    """Reserve ``parts`` for prefixes; existing reservations stay as they are.

    Args:
        ec2: EC2 client.
        parts: Ranges, each with `SubnetId` and `Cidr`.

    Raises:
        ClientError: EC2 refused.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateSubnetCidrReservation.html
    """
    for subnet, ranges in _ranges_by_subnet(parts).items():
        there = {reservation["Cidr"] for reservation in _reservations(ec2, subnet)}
        for cidr in ranges:
            if cidr not in there:
                ec2.create_subnet_cidr_reservation(
                    SubnetId=subnet, Cidr=cidr, ReservationType="prefix"
                )


def release(ec2: "EC2Client", parts: "Sequence[SubnetPart]") -> None:
    """Release ``parts``; skip ranges that no longer exist, alone or with their subnet.

    Args:
        ec2: EC2 client.
        parts: Ranges, each with `SubnetId` and `Cidr`.

    Raises:
        ClientError: EC2 refused.
    """
    for subnet, ranges in _ranges_by_subnet(parts).items():
        try:
            there = [
                reservation
                for reservation in _reservations(ec2, subnet)
                if reservation["Cidr"] in ranges
            ]
        except ClientError as error:
            if error.response["Error"]["Code"] == _NO_SUBNET:
                continue
            raise
        for reservation in there:
            ec2.delete_subnet_cidr_reservation(
                SubnetCidrReservationId=reservation["SubnetCidrReservationId"]
            )


def _ranges_by_subnet(parts: "Sequence[SubnetPart]") -> Mapping[str, list[str]]:
    ranges: dict[str, list[str]] = {}
    for part in parts:
        ranges.setdefault(part["SubnetId"], []).append(part["Cidr"])
    return ranges


def _reservations(ec2: "EC2Client", subnet: str) -> "Iterator[SubnetCidrReservationTypeDef]":
    page = ec2.get_subnet_cidr_reservations(SubnetId=subnet)
    yield from page.get("SubnetIpv4CidrReservations", ())
    while token := page.get("NextToken"):
        page = ec2.get_subnet_cidr_reservations(SubnetId=subnet, NextToken=token)
        yield from page.get("SubnetIpv4CidrReservations", ())


_LOG = logging.getLogger(__name__)
# A large VPC has more ranges than EC2 accepts requests at once: EC2 refuses some for a while.
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
        _carry_out(event, ec2)
    # Any error must be answered: without an answer the deployment hangs, and nobody learns the
    # reason.
    except Exception as error:
        _LOG.exception("%s of %s", event["RequestType"], event["LogicalResourceId"])
        reason = f"{type(error).__name__}: {error}"
        respond(event, status="FAILED", physical_id=physical_id, reason=reason, send=send)
        return
    respond(event, status="SUCCESS", physical_id=physical_id, send=send)


def _carry_out(event: "Request[SubnetReservationProperties]", ec2: "EC2Client") -> None:
    parts = event["ResourceProperties"]["Parts"]
    if event["RequestType"] == "Delete":
        release(ec2, parts)
        return
    # Old ranges are released first: ranges of a subnet must not overlap.
    before = event.get("OldResourceProperties")
    kept = before["Parts"] if before else []
    release(ec2, [part for part in kept if part not in parts])
    reserve(ec2, parts)
