"""CIDR reservations of subnets in EC2."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import SubnetCidrReservationTypeDef

    from ..events import SubnetPart

# A reservation goes with its subnet.
_NO_SUBNET = "InvalidSubnetID.NotFound"


def reserve(ec2: "EC2Client", parts: "Sequence[SubnetPart]") -> None:
    """Reserve ``parts`` for prefixes; existing reservations stay as they are.

    Args:
        ec2: EC2 client.
        parts: `SubnetId` and `Cidr` of each.

    Raises:
        ClientError: EC2 refused.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateSubnetCidrReservation.html
    """
    for subnet, ranges in _by_subnet(parts).items():
        there = {reservation["Cidr"] for reservation in _found(ec2, subnet)}
        for cidr in ranges:
            if cidr not in there:
                ec2.create_subnet_cidr_reservation(
                    SubnetId=subnet, Cidr=cidr, ReservationType="prefix"
                )


def release(ec2: "EC2Client", parts: "Sequence[SubnetPart]") -> None:
    """Release ``parts``; those that are gone, alone or with their subnet, are skipped.

    Args:
        ec2: EC2 client.
        parts: `SubnetId` and `Cidr` of each.

    Raises:
        ClientError: EC2 refused.
    """
    for subnet, ranges in _by_subnet(parts).items():
        try:
            there = [
                reservation for reservation in _found(ec2, subnet) if reservation["Cidr"] in ranges
            ]
        except ClientError as error:
            if error.response["Error"]["Code"] == _NO_SUBNET:
                continue
            raise
        for reservation in there:
            ec2.delete_subnet_cidr_reservation(
                SubnetCidrReservationId=reservation["SubnetCidrReservationId"]
            )


def _by_subnet(parts: "Sequence[SubnetPart]") -> Mapping[str, list[str]]:
    ranges: dict[str, list[str]] = {}
    for part in parts:
        ranges.setdefault(part["SubnetId"], []).append(part["Cidr"])
    return ranges


def _found(ec2: "EC2Client", subnet: str) -> "Iterator[SubnetCidrReservationTypeDef]":
    page = ec2.get_subnet_cidr_reservations(SubnetId=subnet)
    yield from page.get("SubnetIpv4CidrReservations", ())
    while token := page.get("NextToken"):
        page = ec2.get_subnet_cidr_reservations(SubnetId=subnet, NextToken=token)
        yield from page.get("SubnetIpv4CidrReservations", ())
