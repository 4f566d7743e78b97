"""Spot placement scores and prices by zone.

Sources:
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_GetSpotPlacementScores.html
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSpotPriceHistory.html
"""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, cast

from ultrascale.catalog import regions, spot
from ultrascale.frozen import Frozen
from ultrascale.offers.model import DOLLARS, Offer, Request, on_demand_price

if TYPE_CHECKING:
    from mypy_boto3_ec2.literals import InstanceTypeType

    from ultrascale.account import Account

SCORES = "ec2:GetSpotPlacementScores"
# Currency of China's Regions.
_YUAN = "CNY"


class SpotPrice(Frozen):
    """The price of a type in a zone."""

    region: str  # Its Region
    zone: str  # Name of the zone
    zone_id: str | None  # Id of the zone; None where AWS does not tell it
    instance_type: str  # EC2 name
    hourly: Decimal  # Price of an hour
    since: datetime  # Start of that price, in UTC


# Region and score, by zone id.
Scores = Mapping[str, tuple[str, int]]


def spot_scores(account: "Account", request: Request) -> Scores:
    """Return the Spot placement scores of the zones of a request's Regions.

    A score is for all types together, as a fleet would use them.

    Args:
        account: The account that asks.
        request: The request.

    Raises:
        UnansweredError: AWS did not answer.
    """
    scores = account.ask_all(
        account.client("ec2", request.regions[0]).get_spot_placement_scores,
        lambda page: page["SpotPlacementScores"],
        InstanceTypes=list(request.instance_types),
        TargetCapacity=request.count,
        TargetCapacityUnitType="units",
        SingleAvailabilityZone=True,
        RegionNames=list(request.regions),
    )
    return {score["AvailabilityZoneId"]: (score["Region"], score["Score"]) for score in scores}


def spot_prices(account: "Account", request: Request, region: str, at: datetime) -> list[SpotPrice]:
    """Return the Spot prices of the zones of ``region``.

    Args:
        account: The account that asks.
        request: The request.
        region: AWS Region.
        at: Time of the prices, in UTC.

    Raises:
        UnansweredError: AWS did not answer.
    """
    history = account.ask_all(
        account.client("ec2", region).describe_spot_price_history,
        lambda page: page["SpotPriceHistory"],
        InstanceTypes=cast("tuple[InstanceTypeType, ...]", request.instance_types),
        ProductDescriptions=[spot.PRODUCT],
        # The answer includes the last price change before that time.
        StartTime=at,
    )
    latest: dict[tuple[str, str], SpotPrice] = {}
    for entry in history:
        price = SpotPrice(
            region=region,
            zone=entry["AvailabilityZone"],
            zone_id=entry.get("AvailabilityZoneId"),
            instance_type=entry["InstanceType"],
            hourly=Decimal(entry["SpotPrice"]),
            since=entry["Timestamp"],
        )
        known = latest.setdefault((price.zone, price.instance_type), price)
        if price.since > known.since:
            latest[price.zone, price.instance_type] = price
    return list(latest.values())


def spot_offer(request: Request, price: SpotPrice) -> Offer:
    """Return a zone's Spot capacity as an offer, without its score."""
    in_china = regions.lookup_region(price.region).partition == "aws-cn"
    currency = _YUAN if in_china else DOLLARS
    return _offer(
        request, price.region, price.zone, price.zone_id, price.instance_type, currency, price
    )


def unpriced_offer(request: Request, region: str, zone_id: str, instance_type: str) -> Offer:
    """Return Spot capacity as an offer in a zone that has a score, but no known price."""
    return _offer(request, region, None, zone_id, instance_type, DOLLARS, None)


def _offer(
    request: Request,
    region: str,
    zone: str | None,
    zone_id: str | None,
    instance_type: str,
    currency: str,
    price: SpotPrice | None,
) -> Offer:
    return Offer(
        id=None,
        option="spot",
        request=request,
        region=region,
        zone=zone,
        zone_id=zone_id,
        instance_type=instance_type,
        count=request.count,
        parts=(),
        fee=None,
        currency=currency,
        hourly=None if price is None else price.hourly,
        on_demand=on_demand_price(region, instance_type, currency),
        score=None,
        notes=("no price known",) if price is None else (),
    )
