"""Reservations of Capacity Blocks in EC2, looked up by id or by tags."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from .decision import LOST

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import CapacityReservationTypeDef, FilterTypeDef

_BLOCK, _ON_DEMAND = "capacity-block", "default"


class ReservationError(Exception):
    """Error: the cluster file does not name exactly one reservation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Id or tags of a reservation."""

    id: str | None  # Its id; None where its tags name it
    tags: Mapping[str, str]  # Its tags; empty where its id names it


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """State and window of a reservation."""

    state: str  # Its state
    starts: datetime | None  # Its start, in UTC; None where EC2 does not tell it
    ends: datetime | None  # Its end, in UTC; None where EC2 does not tell it
    available: int | None = None  # Instances that it still takes; None where EC2 does not tell it


def find(ec2: "EC2Client", reservation: Reservation) -> Block:
    """Return state and window of ``reservation``.

    Tags may also match earlier and later blocks, as a renewed block gets a new id: the active
    block counts; without an active block, the next block.

    Args:
        ec2: EC2 client.
        reservation: The reservation.

    Raises:
        ReservationError: No reservation has the tags, or several do and it is not clear which one
            the nodes would run on.
        ClientError: EC2 refused, or knows no reservation with the id.
    """
    reservations = _describe(ec2, reservation)
    if not reservations:
        raise ReservationError(f"no Capacity Block has the tags {dict(reservation.tags)}")
    active = [match for match in reservations if match["State"] == "active"]
    candidates = (
        active
        or [match for match in reservations if match["State"] not in LOST]
        or reservations[:1]
    )
    if len(candidates) > 1:
        ids = ", ".join(sorted(match["CapacityReservationId"] for match in candidates))
        raise ReservationError(
            f"several Capacity Blocks have the tags {dict(reservation.tags)}: {ids}; give "
            "each block a tag of its own"
        )
    (block,) = candidates
    return Block(
        state=block["State"],
        starts=block.get("StartDate"),
        ends=block.get("EndDate"),
        available=block.get("AvailableInstanceCount"),
    )


def find_on_demand(ec2: "EC2Client", reservation: Reservation) -> Block:
    """Return state and free instances of On-Demand Capacity Reservations.

    A pool may have several reservations with the same tags, and launches into any active one.

    Args:
        ec2: EC2 client.
        reservation: The reservation.

    Raises:
        ReservationError: No reservation has the tags.
        ClientError: EC2 refused, or knows no reservation with the id.
    """
    matches = [
        match
        for match in _matches(ec2, reservation)
        if match.get("ReservationType", _ON_DEMAND) == _ON_DEMAND
    ]
    if not matches:
        raise ReservationError(f"no capacity reservation has the tags {dict(reservation.tags)}")
    active = [match for match in matches if match["State"] == "active"]
    return Block(
        state=(active or matches)[0]["State"],
        starts=None,
        ends=None,
        available=sum(match.get("AvailableInstanceCount", 0) for match in active),
    )


def _describe(ec2: "EC2Client", reservation: Reservation) -> "list[CapacityReservationTypeDef]":
    # On-Demand Capacity Reservations of the same team may carry the same tags.
    return [
        match
        for match in _matches(ec2, reservation)
        if reservation.id is not None or match["ReservationType"] == _BLOCK
    ]


def _matches(ec2: "EC2Client", reservation: Reservation) -> "list[CapacityReservationTypeDef]":
    if reservation.id is not None:
        answer = ec2.describe_capacity_reservations(CapacityReservationIds=[reservation.id])
        return answer["CapacityReservations"]
    filters: list[FilterTypeDef] = [
        {"Name": f"tag:{key}", "Values": [value]} for key, value in reservation.tags.items()
    ]
    pages = ec2.get_paginator("describe_capacity_reservations").paginate(Filters=filters)
    return [match for page in pages for match in page["CapacityReservations"]]
