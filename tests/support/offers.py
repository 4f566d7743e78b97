"""Offers as AWS answers them, for tests to bend."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from tests.support.fake_aws import Told
from ultrascale.offers.blocks import Throttle
from ultrascale.offers.model import OPTIONS, Offer, Option, Part, Request
from ultrascale.offers.purchase import PLANS as HELD_PLANS
from ultrascale.offers.purchase import RESERVATIONS
from ultrascale.plan.capacity import block_window

AT = datetime(2026, 11, 21, 9, tzinfo=UTC)
STARTS = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
ENDS = STARTS + timedelta(days=7)

BLOCKS = "ec2:DescribeCapacityBlockOfferings"
PLANS = "sagemaker:SearchTrainingPlanOfferings"
SCORES = "ec2:GetSpotPlacementScores"
SPOT_PRICES = "ec2:DescribeSpotPriceHistory"
ZONES = "ec2:DescribeAvailabilityZones"
QUOTA = "servicequotas:GetServiceQuota"

NOT_HELD: dict[str, Told] = {
    RESERVATIONS: {"CapacityReservations": []},
    HELD_PLANS: {"TrainingPlanSummaries": []},
}
"""Offers of AWS in an account without purchases."""

BLOCK: dict[str, Any] = {
    "CapacityBlockOfferingId": "cb-0a1b2c3d4e5f60718",
    "InstanceType": "p5.48xlarge",
    "AvailabilityZone": "us-west-2b",
    "InstanceCount": 16,
    "StartDate": STARTS,
    "EndDate": ENDS,
    "UpfrontFee": "88000.00",
    "CurrencyCode": "USD",
}
PLAN: dict[str, Any] = {
    "TrainingPlanOfferingId": "tpo-0a1b2c3d",
    "TargetResources": ["hyperpod-cluster"],
    "UpfrontFee": "90000.00",
    "CurrencyCode": "USD",
    "ReservedCapacityOfferings": [
        {
            "InstanceType": "ml.p5.48xlarge",
            "InstanceCount": 16,
            "AvailabilityZone": "us-west-2c",
            "StartTime": STARTS,
            "EndTime": ENDS,
        }
    ],
}
RESERVATION: dict[str, Any] = {
    "CapacityReservationId": "cr-0f1e2d3c4b5a69788",
    "InstanceType": "p5.48xlarge",
    "AvailabilityZone": "us-west-2b",
    "TotalInstanceCount": 16,
    "StartDate": STARTS,
    "EndDate": ENDS,
}


def zone_answer(*names: str, opted_in: bool = True) -> dict[str, Any]:
    """Return an answer that names zones of us-west-2; `us-west-2b` has the id `usw2-az2`."""
    letters = names or ("a", "b", "c")
    return {
        "AvailabilityZones": [
            {
                "ZoneName": f"us-west-2{letter}",
                "ZoneId": f"usw2-az{'abcd'.index(letter) + 1}",
                "ZoneType": "availability-zone",
                "State": "available",
                "GroupName": f"us-west-2{letter}-1",
                "OptInStatus": "opt-in-not-required" if opted_in else "not-opted-in",
            }
            for letter in letters
        ]
    }


def spot_price(zone: str, price: str, *, at: datetime = AT) -> dict[str, Any]:
    """Return an entry of the history of p5.48xlarge."""
    return {
        "AvailabilityZone": zone,
        "InstanceType": "p5.48xlarge",
        "SpotPrice": price,
        "Timestamp": at,
        "ProductDescription": "Linux/UNIX",
    }


def answers(**changes: Told) -> Mapping[str, Told]:
    """Return what AWS answers, one offer of each kind; ``changes`` replace, by short name."""
    told: dict[str, Told] = {
        ZONES: zone_answer(),
        BLOCKS: {"CapacityBlockOfferings": [BLOCK]},
        PLANS: {"TrainingPlanOfferings": [PLAN]},
        SCORES: {
            "SpotPlacementScores": [
                {"Region": "us-west-2", "AvailabilityZoneId": "usw2-az2", "Score": 3}
            ]
        },
        SPOT_PRICES: {"SpotPriceHistory": [spot_price("us-west-2b", "25.5")]},
        QUOTA: {"Quota": {"Value": 4.0}},
    }
    names = {
        "blocks": BLOCKS,
        "plans": PLANS,
        "scores": SCORES,
        "prices": SPOT_PRICES,
        "zones": ZONES,
        "quota": QUOTA,
    }
    return told | {names[name]: value for name, value in changes.items()}


def make_request(**changes: Any) -> Request:
    """Return a request for 16 nodes of p5.48xlarge for a week, in which ``changes`` replace."""
    fields: dict[str, Any] = {
        "pool": None,
        "regions": ("us-west-2",),
        "instance_types": ("p5.48xlarge",),
        "count": 16,
        "days": 7,
        "starts": None,
        "until": None,
        "zones": (),
        "options": OPTIONS,
    }
    return Request(**fields | changes)


def make_offer(
    *,
    id: str = "cb-1",
    option: Option = "capacity-block",
    fee: str | None = "88000",
    hourly: str | None = "33",
    starts: datetime | None = STARTS,
    days: int = 7,
    score: int | None = None,
) -> Offer:
    """Return an offer of 16 nodes of p5.48xlarge."""
    parts: tuple[Part, ...] = ()
    if starts is not None:
        window = block_window(["p5.48xlarge"], starts, starts + timedelta(days=days))
        parts = (
            Part(
                zone="us-west-2b",
                zone_id="usw2-az2",
                instance_type="p5.48xlarge",
                count=16,
                starts=starts,
                usable_until=window.usable_until,
                ends=window.ends,
            ),
        )
    return Offer(
        id=id,
        option=option,
        request=make_request(),
        region="us-west-2",
        zone="us-west-2b",
        zone_id="usw2-az2",
        instance_type="p5.48xlarge",
        count=16,
        parts=parts,
        fee=None if fee is None else Decimal(fee),
        currency="USD",
        hourly=None if hourly is None else Decimal(hourly),
        on_demand=None,
        score=score,
        notes=(),
    )


def open_gate(_: str = "") -> Throttle:
    """Return what lets every request through at once."""
    return Throttle(at_once=1000, per_second=1000)


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
