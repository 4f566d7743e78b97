"""Offerings of Capacity Blocks for ML.

Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeCapacityBlockOfferings.html
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from ultrascale.account import Account
from ultrascale.offers import prices
from ultrascale.offers.model import (
    DOLLARS,
    Offer,
    Part,
    Request,
    fee_of,
    hourly,
    nodes_at_once,
    stated,
)
from ultrascale.offers.sizes import Size
from ultrascale.offers.throttle import Throttle
from ultrascale.plan.capacity import block_window

ACTION = "ec2:DescribeCapacityBlockOfferings"
_HOURS = 24
# A block ends at a fixed time of day, so that it may be up to a day longer than was asked for.
_LONGER = timedelta(days=1)


def block_offers(
    account: Account, request: Request, region: str, instance_type: str, size: Size, gate: Throttle
) -> list[Offer]:
    """Return the Capacity Blocks on offer of one type and size.

    Args:
        account: Who asks.
        request: What is looked for; its `days` are stated.
        region: Where.
        instance_type: EC2 name.
        size: Nodes of a block.
        gate: What lets a request to the Region through.

    Raises:
        UnansweredError: AWS did not answer, or left out of an offering what it is.
    """
    parameters = _parameters(request, instance_type, size)
    found: list[Offer] = []
    token: str | None = None
    while True:
        gate.take()
        more: dict[str, object] = {} if token is None else {"NextToken": token}
        page = account.ask(ACTION, region=region, once=False, **parameters, **more)
        for told in page.get("CapacityBlockOfferings", []):
            found.append(_offer(told, request, region, instance_type, size))
        token = page.get("NextToken")
        if not token:
            break
    return [offer for offer in found if starts_in_time(offer, request)]


def starts_in_time(offer: Offer, request: Request) -> bool:
    """Return whether ``offer`` starts early enough; AWS is told of ends only."""
    return request.until is None or offer.starts is None or offer.starts <= request.until


def _parameters(request: Request, instance_type: str, size: Size) -> dict[str, object]:
    assert request.days is not None, "blocks are asked for by their days"
    parameters: dict[str, object] = {
        "CapacityDurationHours": request.days * _HOURS,
        # Those of Local Zones that were not opted in to are told too, as P6e's.
        "AllAvailabilityZones": True,
    }
    if size.ultraserver is None:
        parameters |= {"InstanceType": instance_type, "InstanceCount": size.count}
    else:
        parameters["UltraserverType"] = size.ultraserver.name
        parameters["UltraserverCount"] = size.ultraservers
    if request.starts is not None:
        parameters["StartDateRange"] = request.starts
    if request.until is not None:
        parameters["EndDateRange"] = request.until + timedelta(days=request.days) + _LONGER
    return parameters


def _offer(
    told: Mapping[str, Any], request: Request, region: str, instance_type: str, size: Size
) -> Offer:
    # Where there are several segments, each is capacity of its own zone and time.
    segments: Sequence[Mapping[str, Any]] = told.get("CapacityBlockOfferingSegments") or [told]
    parts = sorted((_part(each, instance_type, size) for each in segments), key=_start)
    fee = fee_of(told, ACTION)
    currency = told.get("CurrencyCode", DOLLARS)
    notes = [f"in {len(parts)} parts"] if len(parts) > 1 else []
    if size.ultraserver is not None:
        notes.append(f"{size.ultraservers} x {size.ultraserver.name}")
    return Offer(
        id=stated(told, "CapacityBlockOfferingId", ACTION),
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
        on_demand=prices.on_demand(region, parts[0].instance_type, currency),
        score=None,
        notes=tuple(notes),
    )


def _start(part: Part) -> datetime:
    return part.starts


def _part(told: Mapping[str, Any], instance_type: str, size: Size) -> Part:
    name = told.get("InstanceType", instance_type)
    window = block_window(
        [name], stated(told, "StartDate", ACTION), stated(told, "EndDate", ACTION)
    )
    return Part(
        zone=told.get("AvailabilityZone"),
        zone_id=told.get("AvailabilityZoneId"),
        instance_type=name,
        # An offering of UltraServers may count these alone.
        count=told.get("InstanceCount") or size.count,
        starts=window.starts,
        usable_until=window.usable_until,
        ends=window.ends,
    )
