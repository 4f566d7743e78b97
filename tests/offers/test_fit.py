"""Offers that would be paid for and never used: no cluster file could have them as a pool."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.account import fake_account
from tests.support.cases import for_each
from tests.support.offers import (
    AT,
    BLOCK,
    ENDS,
    NOT_HELD,
    RESERVATION,
    STARTS,
    answers,
    make_offer,
    make_request,
    open_gate,
)
from tests.support.pools import SYSTEM_POOL, as_text, make_document, pool_document
from ultrascale import config
from ultrascale.errors import AccountError
from ultrascale.offers.find import find, why_refused
from ultrascale.offers.model import Offer
from ultrascale.offers.purchase import BLOCK_ACTION, buy
from ultrascale.plan.advice.purchases import PoolOfFile

P5 = pool_document(
    name="train",
    provisioner="karpenter",
    purchase={
        "option": "capacity-block",
        "reservation": "cr-0123456789abcdef0",
        "starts": "2026-11-24T11:30:00Z",
        "ends": "2026-12-01T11:30:00Z",
    },
    zones=["us-west-2b"],
    nodes={"static": 16},
)


def offer(**changes: Any) -> Offer:
    """Return an offer of one part, with changes of the offer and of its part."""
    made = make_offer()
    (part,) = made.parts
    fields = ("zone", "zone_id", "instance_type", "count", "starts", "usable_until", "ends")
    part = replace(part, **{key: changes[key] for key in fields if key in changes})
    own = {key: value for key, value in changes.items() if key not in fields[4:]}
    return replace(made, parts=(part,), **own)


def in_file(**changes: Any) -> PoolOfFile:
    document = make_document(pools=[SYSTEM_POOL, P5], karpenter={"version": "1.14.1"})
    return PoolOfFile(reading=config.reads(as_text(document | changes), source=""), pool="train")


def test_a_block_that_some_pool_can_have_is_not_refused() -> None:
    assert why_refused(make_offer(), at=AT) == ()
    assert why_refused(make_offer(), at=AT, place=in_file()) == ()


TRN2U = {"instance_type": "trn2u.48xlarge", "count": 4}
CHINA = {"region": "cn-north-1", "zone": "cn-north-1a", "zone_id": None}


@for_each(
    {
        "an UltraServer of GB200": (
            *(offer(instance_type="p6e-gb200.36xlarge", count=18), "p6e-gb200.36xlarge"),
        ),
        "an UltraServer of Trainium": (offer(**TRN2U), "trn2u"),
        "a plan of a type that HyperPod does not have": (
            *(offer(option="training-plan", **TRN2U), "a type that HyperPod does not have"),
        ),
        "a plan where CloudFormation makes no HyperPod": (
            offer(option="training-plan", region="eu-south-1", zone="eu-south-1a"),
            "CloudFormation makes no HyperPod clusters in eu-south-1",
        ),
        "a length that no block has": (offer(ends=STARTS + timedelta(days=20)), "of 20 days"),
        "an end at which no block ends": (
            *(offer(ends=ENDS + timedelta(hours=2)), "every Capacity Block ends at 11:30 UTC"),
        ),
        "more nodes than a block has": (offer(count=65), "more nodes than a Capacity Block has"),
        "a Region that is not built": (offer(**CHINA), "Regions of China are not supported yet"),
        "a block that is over": (
            *(offer(usable_until=AT - timedelta(hours=1)), "no time is left to use it"),
        ),
        "a block that begins before it is asked for": (
            offer(request=make_request(starts=STARTS + timedelta(days=1))),
            "before the 2026-12-02 11:30 UTC that was asked for",
        ),
    }
)
def test_what_no_cluster_file_can_have_is_refused_with_the_reason(bad: Offer, told: str) -> None:
    assert told in "\n".join(why_refused(bad, at=AT))


def test_a_plan_in_two_zones_is_refused() -> None:
    """A HyperPod group has one zone."""
    plan = offer(option="training-plan")
    (part,) = plan.parts
    other = replace(part, zone="us-west-2c", zone_id="usw2-az3")
    assert "a training plan is in one zone" in "\n".join(
        why_refused(replace(plan, parts=(part, other)), at=AT)
    )


NARROW = {"network": {"vpc_cidr": "10.0.0.0/24", "zones": ["us-west-2b", "us-west-2c"]}}
UNCHANGED: dict[str, Any] = {}


@for_each(
    {
        "a zone that the network does not have": (
            offer(zone="us-west-2d"),
            UNCHANGED,
            "us-west-2d",
        ),
        "a Region of another cluster": (
            offer(region="us-east-1", zone="us-east-1b", zone_id="use1-az2"),
            UNCHANGED,
            "us-east-1b",
        ),
        "a range that is too small": (offer(count=64), NARROW, "vpc_cidr"),
    }
)
def test_what_the_file_at_hand_cannot_have_is_refused_although_another_could(
    bad: Offer, changes: dict[str, Any], told: str
) -> None:
    place = in_file(**changes)
    assert why_refused(bad, at=AT) == ()
    assert told in "\n".join(why_refused(bad, at=AT, place=place))


def test_a_search_shows_why_an_offer_cannot_be_used() -> None:
    ultraserver = {
        **{key: BLOCK[key] for key in BLOCK if key not in {"InstanceType", "InstanceCount"}},
        "UltraserverType": "u-p6e-gb200x72",
        "UltraserverCount": 1,
    }
    account, _ = fake_account(answers(blocks={"CapacityBlockOfferings": [ultraserver]}))
    request = make_request(
        options=("capacity-block",), instance_types=("p6e-gb200.36xlarge",), count=18
    )

    found = find([request], account, AT, open_gate)

    assert found.offers
    assert all(each.refused for each in found.offers)


def test_what_cannot_be_planned_is_refused_before_anything_is_paid() -> None:
    account, aws = fake_account({**NOT_HELD, BLOCK_ACTION: {"CapacityReservation": RESERVATION}})
    with pytest.raises(AccountError, match=r"cb-1: not bought: it cannot be used: .*trn2u"):
        buy(offer(instance_type="trn2u.48xlarge", count=4), account, "train")
    assert BLOCK_ACTION not in aws.actions
