"""Reservations outlive a cluster, and cost as much without it: the plan has to say so."""

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.account import fake_account
from tests.support.estate.cluster import estate, research
from tests.support.fake_aws import ID, denied
from tests.support.folders import ROOT
from tests.support.hyperpod import hyperpod_of, with_hyperpod
from ultrascale.account import Account
from ultrascale.plan import ClusterPlan, load
from ultrascale.plan.model import ReservationPlan
from ultrascale.teardown.inventory import as_left
from ultrascale.teardown.model import Left, Scope
from ultrascale.teardown.reservations import reservations

RESERVATION = "cr-0123456789abcdef0"
TRAINING_PLAN = f"arn:aws:sagemaker:us-west-2:{ID}:training-plan/research"
GROUP = f"arn:aws:resource-groups:us-west-2:{ID}:group/research"


def plan(**changes: Any) -> ClusterPlan:
    """Return the plan of a cluster of which both pools launch into the same reservation."""
    fields: dict[str, Any] = {"id": RESERVATION, "tags": {}, "resource_group": None, "spill": False}
    named = ReservationPlan(**(fields | changes))
    pools = tuple(replace(each, reservation=named, window=None) for each in research().pools)
    return replace(research(), pools=pools)


def answer(**changes: Any) -> dict[str, Any]:
    return {
        "CapacityReservationId": RESERVATION,
        "OwnerId": ID,
        "InstanceType": "trn1.32xlarge",
        "TotalInstanceCount": 4,
        "State": "active",
        "ReservationType": "default",
    } | changes


def left_by(account: Account, plan: ClusterPlan) -> list[Left]:
    """Return the reservations of a plan as the plan of a teardown tells them."""
    found = reservations(Scope(account=account, plan=plan))
    return [as_left(each, account.region, asked=True) for each in found]


def told(*answers: dict[str, Any]) -> dict[str, Any]:
    return {"ec2:DescribeCapacityReservations": {"CapacityReservations": list(answers)}}


def test_a_reservation_is_priced_once_and_whole() -> None:
    account, _ = fake_account(told(answer()), region="us-east-1")
    (left,) = left_by(account, plan())
    assert (left.thing.id, left.thing.note) == (RESERVATION, "4 of trn1.32xlarge")
    assert left.usd_per_hour > 4 * 10
    assert left.price.startswith("4 times $")
    assert left.asked
    assert left.paid
    assert "cancel-capacity-reservation --capacity-reservation-id cr-0" in left.command


@pytest.mark.parametrize(
    "changes",
    [
        {"State": "cancelled"},
        {"State": "payment-failed", "ReservationType": "capacity-block"},
        {"OwnerId": "444455556666"},
        {"OwnerId": "444455556666", "UnusedReservationBillingOwnerId": "777788889999"},
    ],
)
def test_what_nobody_here_pays_for_is_not_listed(changes: dict[str, str]) -> None:
    account, _ = fake_account(told(answer(**changes)), region="us-west-2")
    assert not [*left_by(account, plan(id=None, tags={"team": "a"}))]


def test_unused_capacity_that_another_account_assigned_to_us_is_ours_to_pay() -> None:
    changes = {"OwnerId": "444455556666", "UnusedReservationBillingOwnerId": ID}
    account, _ = fake_account(told(answer(**changes)), region="us-west-2")
    assert [*left_by(account, plan(id=None, tags={"team": "a"}))]


def test_a_block_that_runs_on_is_told_with_its_end_and_costs_nothing_more() -> None:
    changes = {"ReservationType": "capacity-block", "EndDate": datetime(2026, 12, 9, tzinfo=UTC)}
    account, _ = fake_account(told(answer(**changes)), region="us-west-2")
    (left,) = left_by(account, plan())
    assert left.thing.note == "Capacity Block, 4 of trn1.32xlarge, until 2026-12-09T00:00Z"
    assert left.price == "paid in advance"
    assert not left.usd_per_hour
    assert "cancel-capacity-reservation" not in left.command


def test_each_reservation_of_a_group_is_priced_by_itself() -> None:
    arn = f"arn:aws:ec2:us-west-2:{ID}:capacity-reservation/{RESERVATION}"
    identifier = {"ResourceArn": arn, "ResourceType": "AWS::EC2::CapacityReservation"}
    answers = told(answer()) | {
        "resource-groups:ListGroupResources": {"Resources": [{"Identifier": identifier}]}
    }
    account, aws = fake_account(answers, region="us-east-1")

    (left,) = left_by(account, plan(id=None, resource_group=GROUP))

    assert aws.parameters("ec2:DescribeCapacityReservations") == [
        {"CapacityReservationIds": [RESERVATION]}
    ]
    assert left.thing.id == RESERVATION
    assert left.usd_per_hour > 4 * 10


@pytest.mark.parametrize(
    ("told", "note"),
    [
        ({"Status": "Active", "EndTime": datetime(2026, 12, 9, tzinfo=UTC)}, "until 2026-12-09T00"),
        ({"Status": "Expired"}, ""),
        (denied("sagemaker:DescribeTrainingPlan"), "nobody knows until when: sagemaker:Describe"),
    ],
    ids=["active", "expired", "denied"],
)
def test_a_training_plan_that_runs_on_is_told(told: Any, note: str) -> None:
    if not isinstance(told, Exception):
        told |= {"TrainingPlanArn": TRAINING_PLAN, "TrainingPlanName": "research"}
    account, _ = fake_account({"sagemaker:DescribeTrainingPlan": told}, region="us-west-2")
    hybrid = load(ROOT / "clusters" / "hybrid-hyperpod.yaml")
    (group, *_) = hyperpod_of(hybrid).cluster.groups
    groups = (replace(group, training_plan=TRAINING_PLAN),) * 2
    own = with_hyperpod(hybrid, cluster=replace(hyperpod_of(hybrid).cluster, groups=groups))

    left = [*left_by(account, replace(research(), parts=own.parts))]

    assert [each.thing.id for each in left] == (["research"] if note else [])
    assert all(each.thing.note.startswith(note) for each in left)


def test_what_may_not_be_asked_is_said_to_be_paid_for() -> None:
    action = "ec2:DescribeCapacityReservations"
    account, _ = fake_account({action: denied(action)}, region="us-west-2")
    (left,) = left_by(account, plan())
    assert action in left.why
    assert left.paid


def test_the_plan_says_that_reservations_stay() -> None:
    cluster = estate()
    cluster.plan = plan()
    cluster.answers |= told(answer())
    teardown = cluster.planned()
    assert RESERVATION in {each.thing.id for each in teardown.kept}
    assert RESERVATION not in {thing.id for thing in teardown.things}
