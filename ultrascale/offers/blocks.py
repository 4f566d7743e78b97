"""Offerings of Capacity Blocks for ML.

Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeCapacityBlockOfferings.html
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, NotRequired, cast

from ultrascale.offers.model import (
    DOLLARS,
    Offer,
    Part,
    Request,
    Size,
    fee_of,
    hourly,
    nodes_at_once,
    on_demand_price,
)
from ultrascale.plan.capacity import block_window

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import (
        CapacityBlockOfferingTypeDef,
        DescribeCapacityBlockOfferingsRequestTypeDef,
    )

    from ultrascale.account import Account

    class _Offering(CapacityBlockOfferingTypeDef):
        """An offering with a field that boto3-stubs 1.43 lacks."""

        CapacityBlockOfferingSegments: NotRequired[list[CapacityBlockOfferingTypeDef]]


@dataclass(slots=True, kw_only=True)
class Throttle:
    """Token bucket that limits requests: each takes a token. Threads may share the bucket."""

    at_once: float  # Tokens of a full bucket
    per_second: float  # Tokens that return in a second
    clock: Callable[[], float] = time.monotonic  # Returns seconds; only differences count
    sleep: Callable[[float], None] = time.sleep  # Waits some seconds
    _tokens: float = field(default=0, init=False)
    _seen: float = field(default=0, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __post_init__(self) -> None:
        self._tokens, self._seen = self.at_once, self.clock()

    def take(self) -> None:
        """Take a token; if the bucket is empty, wait for a token."""
        # A waiting thread holds the lock: the others queue behind it.
        with self._lock:
            self._refill()
            if self._tokens < 1:
                self.sleep((1 - self._tokens) / self.per_second)
                self._refill()
            self._tokens -= 1

    def _refill(self) -> None:
        now = self.clock()
        self._tokens = min(self.at_once, self._tokens + (now - self._seen) * self.per_second)
        self._seen = now


ACTION = "ec2:DescribeCapacityBlockOfferings"
_HOURS = 24
# A block ends at a fixed time of day, so it may be up to a day longer than requested.
_LONGER = timedelta(days=1)


def block_offers(
    account: "Account",
    request: Request,
    region: str,
    instance_type: str,
    size: Size,
    gate: Throttle,
) -> list[Offer]:
    """Return the Capacity Blocks that AWS offers of one type and size.

    Args:
        account: The account that asks.
        request: The request, with `days`.
        region: AWS Region.
        instance_type: EC2 name.
        size: Nodes of a block.
        gate: Throttle of the Region.

    Raises:
        UnansweredError: AWS did not answer, or an offering lacks a field.
    """
    parameters = _parameters(request, instance_type, size)
    ec2 = account.client("ec2", region)
    offers: list[Offer] = []
    while True:
        gate.take()
        page = account.ask(ec2.describe_capacity_block_offerings, **parameters)
        for offering in cast("list[_Offering]", page.get("CapacityBlockOfferings", [])):
            offers.append(_offer(offering, request, region, instance_type, size))
        token = page.get("NextToken")
        if not token:
            break
        parameters["NextToken"] = token
    return [offer for offer in offers if starts_in_time(offer, request)]


def starts_in_time(offer: Offer, request: Request) -> bool:
    """Return whether ``offer`` starts early enough: a request to AWS can limit only the end."""
    return request.until is None or offer.starts is None or offer.starts <= request.until


def _parameters(
    request: Request, instance_type: str, size: Size
) -> "DescribeCapacityBlockOfferingsRequestTypeDef":
    assert request.days is not None, "Capacity Blocks are sold by days"
    parameters: DescribeCapacityBlockOfferingsRequestTypeDef = {
        "CapacityDurationHours": request.days * _HOURS,
        # Includes Local Zones that the account has not opted in to, such as P6e's.
        "AllAvailabilityZones": True,
    }
    if size.ultraserver is None:
        parameters["InstanceType"] = instance_type
        parameters["InstanceCount"] = size.count
    else:
        parameters["UltraserverType"] = size.ultraserver.name
        parameters["UltraserverCount"] = size.ultraservers
    if request.starts is not None:
        parameters["StartDateRange"] = request.starts
    if request.until is not None:
        parameters["EndDateRange"] = request.until + timedelta(days=request.days) + _LONGER
    return parameters


def _offer(
    offering: "_Offering",
    request: Request,
    region: str,
    instance_type: str,
    size: Size,
) -> Offer:
    # Each of several segments has its own zone and time.
    segments = offering.get("CapacityBlockOfferingSegments") or [offering]
    parts = sorted(
        (_part_of_offering(segment, instance_type, size) for segment in segments),
        key=lambda part: part.starts,
    )
    fee = fee_of(offering.get("UpfrontFee"), ACTION)
    currency = offering.get("CurrencyCode", DOLLARS)
    notes = [f"in {len(parts)} parts"] if len(parts) > 1 else []
    if size.ultraserver is not None:
        notes.append(f"{size.ultraservers} x {size.ultraserver.name}")
    return Offer(
        id=offering["CapacityBlockOfferingId"],
        option="capacity-block",
        request=request,
        region=region,
        zone=parts[0].zone,
        zone_id=parts[0].zone_id,
        instance_type=parts[0].instance_type,
        count=nodes_at_once(parts),
        parts=tuple(parts),
        fee=fee,
        currency=currency,
        hourly=hourly(fee, parts),
        on_demand=on_demand_price(region, parts[0].instance_type, currency),
        score=None,
        notes=tuple(notes),
    )


def _part_of_offering(
    segment: "CapacityBlockOfferingTypeDef",
    instance_type: str,
    size: Size,
) -> Part:
    name = segment.get("InstanceType", instance_type)
    window = block_window([name], segment["StartDate"], segment["EndDate"])
    return Part(
        zone=segment.get("AvailabilityZone"),
        zone_id=segment.get("AvailabilityZoneId"),
        instance_type=name,
        # An offering of UltraServers may count the UltraServers, and not their instances.
        count=segment.get("InstanceCount") or size.count,
        starts=window.starts,
        usable_until=window.usable_until,
        ends=window.ends,
    )
