"""The confirmation before an offer is bought: its fee, its terms and the quota on it."""

from decimal import Decimal

import pytest

from tests.support.account import fake_account
from tests.support.fake_aws import ID, Refusal, Told, denied
from tests.support.offers import QUOTA, make_offer
from ultrascale.errors import AccountError
from ultrascale.offers.model import Found, Unknown
from ultrascale.offers.purchase import offered, quota_of, refuse_other_fee, terms


def test_an_offer_that_could_not_be_asked_for_is_refused_with_the_reason() -> None:
    unknown = Unknown(what="Capacity Blocks", action="ec2:X", reason="denied", denied=True)
    with pytest.raises(AccountError, match="Capacity Blocks: unknown: ec2:X: denied"):
        offered(Found(offers=(), unknown=(unknown,), remarks=()), "cb-1")


@pytest.mark.parametrize("fee", [None, "88001"])
def test_an_offer_of_another_fee_than_was_seen_is_refused(fee: str | None) -> None:
    refuse_other_fee(make_offer(fee="88000.00"), Decimal(88000))
    with pytest.raises(AccountError, match="not bought: its fee is"):
        refuse_other_fee(make_offer(fee=fee), Decimal(88000))


def test_the_terms_say_all_that_is_paid_for_and_that_it_is_final() -> None:
    account, _ = fake_account()

    told = "\n".join(terms(make_offer(fee="88000.0000"), account, "4", "train"))

    for part in (
        "cb-1: a capacity block of 16 x p5.48xlarge, named train",
        "2026-12-01T11:30:00Z until 2026-12-08T11:30:00Z, 16 nodes in us-west-2b (usw2-az2)",
        "of use until 2026-12-08T10:50:00Z, 167.3 hours",
        "88,000.00 USD up front",
        "final: it cannot be cancelled, moved or split",
        f"account  {ID} pays",
    ):
        assert part in told


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"Quota": {"Value": 4.0}}, "(L-DA6814F2): 4 in all"),
        (Refusal("NoSuchResourceException"), "(L-DA6814F2): 0 unless AWS has raised it"),
        (
            {"Quota": {"Value": 0.0}},
            "AWS refuses the purchase until it is raised: `aws service-quotas request-service-quota"
            "-increase --service-code ec2 --quota-code L-DA6814F2 --region us-west-2",
        ),
        (denied(QUOTA), "(L-DA6814F2): unknown: servicequotas:GetServiceQuota: denied"),
    ],
    ids=["applied", "default", "none", "denied"],
)
def test_the_quota_on_concurrent_blocks_is_said(answer: Told, told: str) -> None:
    account, _ = fake_account({QUOTA: answer})
    assert told in quota_of(make_offer(), account)


def test_no_code_is_made_up_for_the_quotas_of_training_plans() -> None:
    account, aws = fake_account()
    assert "no codes are published" in quota_of(make_offer(option="training-plan"), account)
    assert aws.calls == []
