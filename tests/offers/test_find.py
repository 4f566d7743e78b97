"""Offers of AWS, read from its answers."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from moto import mock_aws

from tests.support.account import fake_account
from tests.support.fake_aws import THROTTLED, FakeAws, Told, denied
from tests.support.offers import (
    AT,
    BLOCK,
    BLOCKS,
    ENDS,
    PLAN,
    PLANS,
    SCORES,
    STARTS,
    ZONES,
    answers,
    make_request,
    open_gate,
    spot_price,
    zone_answer,
)
from ultrascale.account import connect
from ultrascale.offers.find import find
from ultrascale.offers.model import Found, Offer, Option, Request, on_demand_price
from ultrascale.offers.spot import spot_prices

ONLY_BLOCKS: tuple[Option, ...] = ("capacity-block",)
ONLY_PLANS: tuple[Option, ...] = ("training-plan",)
ONLY_SPOT: tuple[Option, ...] = ("spot",)


def search(*requests: Request, **changes: Told) -> tuple[Found, FakeAws]:
    account, aws = fake_account(answers(**changes))
    return find(requests or [make_request()], account, AT, open_gate), aws


def one(found: Found) -> Offer:
    (offer,) = found.offers
    return offer


# --- Capacity Blocks ----------------------------------------------------------------------------


def test_a_block_is_priced_by_the_hours_in_which_its_nodes_are_of_use() -> None:
    """A fee by its whole length hides the 40 minutes that nobody can use."""
    found, _ = search(make_request(options=ONLY_BLOCKS))

    offer = one(found)
    usable = Decimal(7 * 24 * 60 - 40) / 60
    assert (offer.id, offer.zone, offer.zone_id) == (
        BLOCK["CapacityBlockOfferingId"],
        "us-west-2b",
        "usw2-az2",
    )
    assert (offer.starts, offer.ends, offer.count, offer.fee) == (STARTS, ENDS, 16, 88000)
    assert offer.usable_hours == pytest.approx(usable)
    assert offer.hourly == pytest.approx(Decimal(88000) / 16 / usable)


def test_the_ratio_is_to_the_on_demand_price_of_that_region_and_unknown_without_one() -> None:
    here = answers()[ZONES]
    request = make_request(regions=("us-east-1", "us-west-2"), options=ONLY_BLOCKS)

    found, _ = search(request, zones=here)

    east, west = found.offers
    assert east.hourly is not None
    assert east.ratio == east.hourly / Decimal("55.04")
    assert west.hourly is not None
    assert west.ratio == west.hourly / Decimal("55.04")
    assert on_demand_price("eu-west-1", "p5.48xlarge") is None


def test_a_search_says_what_is_looked_for_in_the_words_of_the_api() -> None:
    request = make_request(options=ONLY_BLOCKS, starts=STARTS, until=STARTS + timedelta(days=3))

    _, aws = search(request)

    (asked,) = aws.parameters(BLOCKS)
    assert asked == {
        "InstanceType": "p5.48xlarge",
        "InstanceCount": 16,
        "CapacityDurationHours": 168,
        "AllAvailabilityZones": True,
        "StartDateRange": STARTS,
        # The latest start, the length, and the day that a block may be longer.
        "EndDateRange": STARTS + timedelta(days=3 + 7 + 1),
    }


def test_every_page_of_blocks_is_read() -> None:
    second = BLOCK | {"CapacityBlockOfferingId": "cb-2"}
    pages: list[Any] = [
        {"CapacityBlockOfferings": [BLOCK], "NextToken": "more"},
        {"CapacityBlockOfferings": [second]},
    ]
    found, aws = search(make_request(options=ONLY_BLOCKS), blocks=pages)
    assert [offer.id for offer in found.offers] == [BLOCK["CapacityBlockOfferingId"], "cb-2"]
    assert [asked.get("NextToken") for asked in aws.parameters(BLOCKS)] == [None, "more"]


def test_a_block_that_starts_too_late_is_left_out() -> None:
    """AWS is asked by ends, and a shorter block may start later than was asked for."""
    until = STARTS - timedelta(minutes=1)
    found, _ = search(make_request(options=ONLY_BLOCKS, until=until))
    assert found.offers == ()


def test_more_nodes_than_one_block_has_are_asked_for_in_pieces() -> None:
    found, aws = search(make_request(options=ONLY_BLOCKS, count=150))
    assert sorted(asked["InstanceCount"] for asked in aws.parameters(BLOCKS)) == [22, 64]
    assert any("3 pieces, 2 of 64 and 1 of 22" in line for line in found.remarks)


def test_ultraservers_are_asked_for_whole() -> None:
    """An UltraServer is taken back 60 minutes before the end, and drained ten before that."""
    told = {
        key: value for key, value in BLOCK.items() if key not in {"InstanceType", "InstanceCount"}
    } | {"UltraserverType": "u-p6e-gb200x72", "UltraserverCount": 1}
    request = make_request(options=ONLY_BLOCKS, instance_types=("p6e-gb200.36xlarge",), count=18)

    found, aws = search(request, blocks={"CapacityBlockOfferings": [told]})

    asked = {each["UltraserverType"]: each["UltraserverCount"] for each in aws.parameters(BLOCKS)}
    assert asked == {"u-p6e-gb200x72": 1, "u-p6e-gb200x36": 2}
    assert not any("InstanceType" in each for each in aws.parameters(BLOCKS))
    offer = found.offers[0]
    assert (offer.count, offer.instance_type) == (18, "p6e-gb200.36xlarge")
    assert offer.usable_hours == pytest.approx(Decimal(7 * 24 * 60 - 70) / 60)


def test_an_offer_of_several_parts_counts_the_hours_of_each() -> None:
    """Each part is drained before its own end."""
    later = {
        "StartDate": ENDS,
        "EndDate": ENDS + timedelta(days=7),
        "AvailabilityZone": "us-west-2a",
    }
    segment = {key: BLOCK[key] for key in BLOCK if key != "CapacityBlockOfferingId"}
    block = BLOCK | {"CapacityBlockOfferingSegments": [segment | later, segment]}

    offer = one(
        search(make_request(options=ONLY_BLOCKS), blocks={"CapacityBlockOfferings": [block]})[0]
    )

    assert [part.zone for part in offer.parts] == ["us-west-2b", "us-west-2a"]
    assert (offer.starts, offer.ends, offer.count) == (STARTS, ENDS + timedelta(days=7), 16)
    assert offer.usable_hours == pytest.approx(Decimal(2 * (7 * 24 * 60 - 40)) / 60)
    assert "in 2 parts" in offer.notes


def test_an_offer_without_its_window_is_unknown_and_not_guessed() -> None:
    block = {key: value for key, value in BLOCK.items() if key != "EndDate"}
    found, _ = search(make_request(options=ONLY_BLOCKS), blocks={"CapacityBlockOfferings": [block]})
    assert found.offers == ()
    assert found.unknown[0].reason == "the answer lacks EndDate"


@pytest.mark.parametrize(
    ("zone", "told", "unknown"),
    [("us-west-2b", 1, 1), ("usw2-az2", 1, 1), ("us-west-2a", 0, 0), ("usw2-az1", 0, 1)],
)
def test_only_the_zones_that_may_do_are_shown(zone: str, told: int, unknown: int) -> None:
    """AWS names the zone of a block, and where it tells no zones, the id of it is unknown."""
    request = make_request(options=ONLY_BLOCKS, zones=(zone,))
    found, _ = search(request)
    unsure, _ = search(request, zones=denied(ZONES))
    assert (len(found.offers), len(unsure.offers)) == (told, unknown)
    assert found.remarks == (() if told else ("1 more in other zones than requested",))
    assert all((each.zone, each.zone_id) == ("us-west-2b", None) for each in unsure.offers)


def test_an_offer_of_which_a_part_is_in_another_zone_is_not_shown() -> None:
    keys = ("InstanceType", "InstanceCount", "StartDate", "EndDate")
    segments = [
        {key: BLOCK[key] for key in keys} | {"AvailabilityZone": zone}
        for zone in ("us-west-2b", "us-west-2a")
    ]
    blocks = {"CapacityBlockOfferings": [BLOCK | {"CapacityBlockOfferingSegments": segments}]}
    found, _ = search(make_request(options=ONLY_BLOCKS, zones=("us-west-2b",)), blocks=blocks)
    assert found.offers == ()


def test_a_local_zone_that_is_closed_to_the_account_is_said() -> None:
    found, _ = search(make_request(options=ONLY_BLOCKS), zones=zone_answer(opted_in=False))
    (note,) = one(found).notes
    assert note == (
        "opt in to us-west-2b first: `aws ec2 modify-availability-zone-group --region us-west-2 "
        "--group-name us-west-2b-1 --opt-in-status opted-in`"
    )


# --- training plans -----------------------------------------------------------------------------


def test_a_plan_is_searched_for_hyperpod_and_ends_an_hour_early() -> None:
    """A plan for training jobs would never serve a cluster."""
    found, aws = search(make_request(options=ONLY_PLANS, starts=STARTS))

    (asked,) = aws.parameters(PLANS)
    assert asked == {
        "InstanceType": "ml.p5.48xlarge",
        "InstanceCount": 16,
        "DurationHours": 168,
        "StartTimeAfter": STARTS,
        "TargetResources": ["hyperpod-cluster"],
    }
    offer = one(found)
    assert (offer.id, offer.zone_id, offer.instance_type) == (
        "tpo-0a1b2c3d",
        "usw2-az3",
        "p5.48xlarge",
    )
    assert offer.usable_hours == 7 * 24 - 1
    few, _ = search(make_request(options=ONLY_PLANS, count=10))
    assert any("10 may never be on offer" in line for line in few.remarks)


def test_a_plan_whose_capacity_aws_does_not_say_has_no_price() -> None:
    plan: dict[str, Any] = {**PLAN, "ReservedCapacityOfferings": []}
    offer = one(
        search(make_request(options=ONLY_PLANS), plans={"TrainingPlanOfferings": [plan]})[0]
    )
    assert (offer.starts, offer.hourly, offer.usable_hours, offer.zone) == (None, None, None, None)


# --- Spot ---------------------------------------------------------------------------------------


def test_spot_shows_the_latest_price_of_each_zone_with_its_score() -> None:
    history = [
        spot_price("us-west-2b", "20.0", at=AT - timedelta(hours=5)),
        spot_price("us-west-2b", "25.5"),
        spot_price("us-west-2b", "21.0", at=AT - timedelta(hours=1)),
        spot_price("us-west-2a", "30.0"),
    ]

    found, aws = search(make_request(options=ONLY_SPOT), prices={"SpotPriceHistory": history})

    rows = {offer.zone: (offer.hourly, offer.score, offer.starts) for offer in found.offers}
    assert rows == {
        "us-west-2b": (Decimal("25.5"), 3, None),
        "us-west-2a": (Decimal("30.0"), None, None),
    }
    (asked,) = aws.parameters(SCORES)
    assert asked["SingleAvailabilityZone"]
    assert (asked["TargetCapacity"], asked["TargetCapacityUnitType"]) == (16, "units")
    assert any("always low" in line for line in found.remarks)


@mock_aws
def test_spot_prices_are_read_as_the_service_writes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    request = make_request(instance_types=("g5.48xlarge",))
    found = spot_prices(connect("us-west-2"), request, "us-west-2", AT)
    assert {price.instance_type for price in found} == {"g5.48xlarge"}
    assert all(price.zone.startswith("us-west-2") and price.hourly > 0 for price in found)


# --- what is not answered -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "reason", "is_denied"),
    [
        (denied(BLOCKS), "denied", True),
        (THROTTLED, "throttled by AWS", False),
        (ReadTimeoutError(endpoint_url="https://ec2.test"), "no answer in time", False),
    ],
    ids=["denied", "throttled", "slow"],
)
def test_what_aws_does_not_answer_is_unknown_and_never_nothing(
    answer: Exception, reason: str, is_denied: bool
) -> None:
    """No line of it would read as: no blocks are on offer."""
    found, _ = search(blocks=answer)
    (unknown,) = found.unknown
    assert unknown.what == "Capacity Blocks of 16 x p5.48xlarge in us-west-2"
    assert unknown.action == BLOCKS
    assert reason in unknown.reason
    assert unknown.denied is is_denied
    assert {offer.option for offer in found.offers} == {"training-plan", "spot"}


def test_a_fee_that_is_no_number_is_unknown_and_no_traceback() -> None:
    found, _ = search(
        make_request(options=ONLY_BLOCKS),
        blocks={"CapacityBlockOfferings": [BLOCK | {"UpfrontFee": "88,000.00"}]},
    )
    (unknown,) = found.unknown
    assert unknown.reason == "an offering came with a fee that is no number, '88,000.00'"


def test_a_page_that_fails_takes_back_the_pages_before_it() -> None:
    """Half of a list, unmarked, would be taken for all of it."""
    pages: list[Any] = [{"CapacityBlockOfferings": [BLOCK], "NextToken": "more"}, THROTTLED]
    found, _ = search(make_request(options=ONLY_BLOCKS), blocks=pages)
    assert found.offers == ()
    assert len(found.unknown) == 1


def test_what_is_not_sold_is_not_asked_for_and_said() -> None:
    request = make_request(instance_types=("g6e.48xlarge",))
    found, aws = search(request, prices={"SpotPriceHistory": []})
    assert not {BLOCKS, PLANS} & aws.actions
    assert {
        "no Capacity Blocks are sold of g6e.48xlarge",
        "no training plans are sold of g6e.48xlarge",
    } <= set(found.remarks)
