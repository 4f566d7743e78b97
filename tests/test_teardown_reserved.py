"""Reservations outlive a cluster, and cost as much without it: the plan has to say so."""

from dataclasses import replace
from typing import Any

import pytest

from tests.account import ID, denied, fake_account
from tests.teardown_cluster import estate, research
from ultrascale.plan import ClusterPlan
from ultrascale.plan.model import ReservationPlan
from ultrascale.teardown.reserved import reservations

RESERVATION = "cr-0123456789abcdef0"
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


def told(*answers: dict[str, Any]) -> dict[str, Any]:
    return {"ec2:DescribeCapacityReservations": {"CapacityReservations": list(answers)}}


def test_a_reservation_is_priced_once_and_whole() -> None:
    account, _ = fake_account(told(answer()), region="us-east-1")

    (left,) = reservations(account, plan())

    assert (left.thing.id, left.thing.note) == (RESERVATION, "4 of trn1.32xlarge")
    assert left.usd_per_hour > 4 * 10
    assert left.price.startswith("4 times $")
    assert left.asked
    assert left.paid
    assert "cancel-capacity-reservation --capacity-reservation-id cr-0" in left.command


@pytest.mark.parametrize(
    "changes",
    [{"State": "cancelled"}, {"OwnerId": "444455556666"}, {"ReservationType": "capacity-block"}],
)
def test_what_nobody_here_pays_for_is_not_listed(changes: dict[str, str]) -> None:
    account, _ = fake_account(told(answer(**changes)), region="us-west-2")

    assert not [*reservations(account, plan(id=None, tags={"team": "a"}))]


def test_a_group_of_reservations_is_named() -> None:
    account, _ = fake_account({}, region="us-west-2")

    (left,) = reservations(account, plan(id=None, resource_group=GROUP))

    assert left.thing.id == GROUP
    assert left.paid


def test_what_may_not_be_asked_is_said_to_be_paid_for() -> None:
    action = "ec2:DescribeCapacityReservations"
    account, _ = fake_account({action: denied(action)}, region="us-west-2")

    (left,) = reservations(account, plan())

    assert action in left.why
    assert left.paid


def test_the_plan_says_that_reservations_stay() -> None:
    cluster = estate()
    cluster.plan = plan()
    cluster.answers |= told(answer())

    teardown = cluster.planned()

    assert RESERVATION in {each.thing.id for each in teardown.kept}
    assert RESERVATION not in {thing.id for thing in teardown.things}
