"""Buying an offer: once, as it was seen, and never without saying what came of it."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest
import yaml
from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError
from botocore.parsers import ResponseParserError

from tests.support.account import fake_account
from tests.support.fake_aws import ID, PROXY_PAGE, FakeAws, Refusal, Told, denied
from tests.support.folders import ROOT
from tests.support.offers import (
    ENDS,
    HELD_PLANS,
    NOT_HELD,
    RESERVATION,
    RESERVATIONS,
    STARTS,
    make_offer,
)
from tests.support.pools import SYSTEM_POOL, make_cluster, pool_document
from ultrascale import config
from ultrascale.errors import AccountError, UnansweredError
from ultrascale.offers.purchase import (
    BLOCK_ACTION,
    PLAN_ACTION,
    UnsureError,
    buy,
    default_name,
    look_command,
)

PLAN_ARN = f"arn:aws:sagemaker:us-west-2:{ID}:training-plan/ultrascale-tpo-1"


def bought(told: Told, **changes: Any) -> tuple[tuple[str, ...], FakeAws]:
    account, aws = fake_account({**NOT_HELD, BLOCK_ACTION: told, PLAN_ACTION: told})
    return buy(make_offer(**changes), account, "train"), aws


# --- what is sent -------------------------------------------------------------------------------


def test_a_block_is_bought_once_for_linux_and_carries_the_id_of_its_offer() -> None:
    """The tag is how a purchase is found again whose answer was lost."""
    _, aws = bought({"CapacityReservation": RESERVATION})
    (asked,) = aws.parameters(BLOCK_ACTION)
    assert (asked["CapacityBlockOfferingId"], asked["InstancePlatform"]) == ("cb-1", "Linux/UNIX")
    (tags,) = asked["TagSpecifications"]
    assert tags["ResourceType"] == "capacity-reservation"
    assert {"Key": "ultrascale.dev/offering", "Value": "cb-1"} in tags["Tags"]
    assert {"Key": "Name", "Value": "train"} in tags["Tags"]


def test_a_plan_gets_the_same_name_each_time_so_that_aws_takes_it_once() -> None:
    offer = make_offer(id="tpo-" + "a1b2c3d-" * 20, option="training-plan")
    name = default_name(offer)
    assert name == default_name(offer)
    assert re.fullmatch(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,63}", name)


@pytest.mark.parametrize(
    "failure",
    [
        ReadTimeoutError(endpoint_url="https://ec2.test"),
        ConnectTimeoutError(endpoint_url="https://ec2.test"),
        KeyboardInterrupt(),
        ResponseParserError("<html>"),
        Refusal("403", "<html>"),
        RuntimeError("the refreshed credentials are still expired"),
    ],
    ids=["read", "connect", "interrupted", "not of AWS", "of a proxy", "anything"],
)
@pytest.mark.parametrize(
    ("option", "look"),
    [
        ("capacity-block", "describe-capacity-reservations --region us-west-2 --filters Name=tag:"),
        ("training-plan", "describe-training-plan --region us-west-2 --training-plan-name train"),
    ],
)
def test_a_purchase_without_an_answer_is_not_sent_again_and_says_how_to_look(
    failure: BaseException, option: str, look: str
) -> None:
    """A second purchase costs a second fee."""

    def fail(_: dict[str, Any]) -> Mapping[str, Any]:
        raise failure

    account, aws = fake_account({**NOT_HELD, BLOCK_ACTION: fail, PLAN_ACTION: fail})

    with pytest.raises(UnsureError) as unsure:
        buy(make_offer(option=cast("Any", option)), account, "train")

    assert len([action for action, *_ in aws.calls if action in {BLOCK_ACTION, PLAN_ACTION}]) == 1
    assert "IT IS NOT KNOWN WHETHER IT WAS BOUGHT" in str(unsure.value)
    assert look in str(unsure.value)


@pytest.mark.parametrize(
    ("code", "status", "unsure"),
    [
        ("InternalError", 500, True),
        ("Unavailable", 503, True),
        ("RequestLimitExceeded", 503, False),
        ("InvalidParameterValue", 400, False),
        ("UnauthorizedOperation", 403, False),
    ],
)
def test_only_what_aws_refused_counts_as_not_bought(code: str, status: int, unsure: bool) -> None:
    account, aws = fake_account({**NOT_HELD, BLOCK_ACTION: Refusal(code, status=status)})
    with pytest.raises(AccountError) as error:
        buy(make_offer(), account, "train")
    assert isinstance(error.value, UnsureError) is unsure
    assert isinstance(error.value, UnansweredError) is not unsure
    assert aws.attempts[BLOCK_ACTION] == 1


@pytest.mark.parametrize("pattern", ["purchase_?capacity_?block", "create_?training_?plan"])
def test_no_other_module_can_buy(pattern: str) -> None:
    """A deploy, a check or a plan never spends money up front."""
    folders = ["ultrascale", "constructs", "stacks", "k8s", "backend", "lib", "training"]
    files = [ROOT / "app.py", *(file for each in folders for file in (ROOT / each).rglob("*.py"))]

    naming = [
        str(file.relative_to(ROOT))
        for file in files
        if re.search(pattern, re.sub(r"https?://\S+", "", file.read_text()), re.IGNORECASE)
    ]

    assert naming == ["ultrascale/offers/purchase.py"]


# --- what comes of it ---------------------------------------------------------------------------


def checked(keys: str, **changes: Any) -> config.Pool:
    pool = pool_document(**yaml.safe_load(keys), nodes={"static": 16}, **changes)
    return make_cluster(pools=[SYSTEM_POOL, pool]).pools[-1]


def test_the_keys_of_a_block_are_a_pool_that_check_accepts() -> None:
    (keys,), _ = bought({"CapacityReservation": RESERVATION})
    pool = checked(keys)
    assert isinstance(pool.purchase, config.CapacityBlock)
    assert pool.purchase.reservation == RESERVATION["CapacityReservationId"]
    assert (pool.purchase.starts, pool.purchase.ends) == (STARTS, ENDS)
    assert [fee.usd for fee in pool.purchase.fee] == [88000]
    assert (pool.zones, pool.instance_types) == (("us-west-2b",), ("p5.48xlarge",))


def test_the_keys_of_a_plan_are_a_pool_that_check_accepts() -> None:
    (keys,), _ = bought({"TrainingPlanArn": PLAN_ARN}, id="tpo-1", option="training-plan")
    pool = checked(keys, provisioner="hyperpod")
    assert isinstance(pool.purchase, config.TrainingPlan)
    assert pool.purchase.plan == PLAN_ARN
    assert (pool.purchase.starts, pool.purchase.ends) == (STARTS, ENDS)


def test_each_reservation_of_a_purchase_is_a_pool_of_its_own() -> None:
    second = RESERVATION | {
        "CapacityReservationId": "cr-00000000000000002",
        "StartDate": ENDS,
        "EndDate": ENDS + timedelta(days=7),
    }
    keys, _ = bought({"CapacityReservations": [RESERVATION, second]})
    named = [yaml.safe_load(each)["purchase"]["reservation"] for each in keys]
    assert named == [RESERVATION["CapacityReservationId"], "cr-00000000000000002"]
    # AWS states one fee for both.
    assert not any("fee:" in each for each in keys)


def test_what_was_bought_is_told_however_little_aws_answers() -> None:
    """The money is spent: an answer with gaps must not end in a traceback."""
    (keys,), _ = bought({"CapacityReservation": {"CapacityReservationId": "cr-0f1e2d3c4b5a69788"}})
    assert checked(keys).zones == ("us-west-2b",)
    with pytest.raises(UnsureError, match="AWS did not name the reservation\nIT IS NOT KNOWN"):
        bought({})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"option": "training-plan", "starts": None}, "AWS does not say when it starts and ends"),
        ({"fee": None}, "AWS does not say its fee"),
    ],
)
def test_an_offer_of_an_unknown_fee_or_window_is_not_bought(
    changes: dict[str, Any], says: str
) -> None:
    account, aws = fake_account()
    with pytest.raises(AccountError, match=f"not bought: {says}"):
        buy(make_offer(**changes), account, "train")
    assert aws.calls == []


# --- not twice ----------------------------------------------------------------------------------


HELD_BLOCK = {"CapacityReservations": [RESERVATION | {"State": "payment-pending"}]}
HELD_PLAN = {
    "TrainingPlanSummaries": [
        {"TrainingPlanName": "train", "TrainingPlanArn": PLAN_ARN, "Status": "Pending"}
    ]
}


@pytest.mark.parametrize(
    ("option", "held", "what"),
    [
        ("capacity-block", {RESERVATIONS: HELD_BLOCK}, RESERVATION["CapacityReservationId"]),
        ("training-plan", {HELD_PLANS: HELD_PLAN}, PLAN_ARN),
    ],
)
def test_what_was_bought_under_the_same_name_is_not_bought_again(
    option: str, held: dict[str, Told], what: str
) -> None:
    """Whoever tries again after an answer was lost pays the fee twice."""
    account, aws = fake_account(held)
    with pytest.raises(AccountError, match="not bought: it was bought as train before") as refusal:
        buy(make_offer(option=cast("Any", option)), account, "train")
    assert what in str(refusal.value)
    assert not {BLOCK_ACTION, PLAN_ACTION} & aws.actions


def test_a_block_is_looked_for_by_its_offer_and_its_name() -> None:
    _, aws = bought({"CapacityReservation": RESERVATION})
    (asked,) = aws.parameters(RESERVATIONS)
    assert asked["Filters"] == [
        {"Name": "tag:ultrascale.dev/offering", "Values": ["cb-1"]},
        {"Name": "tag:Name", "Values": ["train"]},
    ]


@pytest.mark.parametrize(
    ("option", "held"),
    [
        ("capacity-block", {"CapacityReservations": [RESERVATION | {"State": "payment-failed"}]}),
        (
            "training-plan",
            {
                "TrainingPlanSummaries": [
                    {"TrainingPlanName": name, "TrainingPlanArn": PLAN_ARN, "Status": status}
                    for name, status in (("train", "Failed"), ("other", "Active"))
                ]
            },
        ),
    ],
)
def test_what_was_not_paid_or_is_something_else_hinders_nothing(option: str, held: Told) -> None:
    answers = {RESERVATIONS: held, HELD_PLANS: held}
    sold: dict[str, Told] = {
        BLOCK_ACTION: {"CapacityReservation": RESERVATION},
        PLAN_ACTION: {"TrainingPlanArn": PLAN_ARN},
    }
    account, _ = fake_account(answers | sold)
    assert buy(make_offer(option=cast("Any", option)), account, "train")


def test_nothing_is_bought_where_nobody_says_what_was_bought_before() -> None:
    account, aws = fake_account({RESERVATIONS: denied(RESERVATIONS)})
    with pytest.raises(AccountError, match=f"not bought: .* unknown: .*; allow {RESERVATIONS}"):
        buy(make_offer(), account, "train")
    assert aws.actions == {RESERVATIONS}


def test_the_command_that_looks_asks_the_account_that_pays() -> None:
    """Another account says that nothing was bought, and so it is bought twice."""
    account, _ = fake_account()
    look = look_command(make_offer(), replace(account, profile="our prod"), "train")
    assert look.startswith(
        "aws ec2 describe-capacity-reservations --region us-west-2 --profile 'our prod' --filters"
    )


def test_the_page_of_a_proxy_in_place_of_a_plan_is_no_plan() -> None:
    account, _ = fake_account({**NOT_HELD, PLAN_ACTION: PROXY_PAGE})
    with pytest.raises(UnsureError, match="AWS did not name the plan\nIT IS NOT KNOWN"):
        buy(make_offer(option="training-plan"), account, "train")
