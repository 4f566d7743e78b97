"""The Capacity Block that the block calendar waits for."""

from collections.abc import Iterator

import pytest

from tests.support.calendar_services import ENDS, STARTS, Aws
from ultrascale.lambdas.block_calendar.reservation import Block, Reservation, ReservationError, find

TAGGED = Reservation(id=None, tags={"purpose": "pretraining", "team": "core"})
FILTERS = [
    {"Name": "tag:purpose", "Values": ["pretraining"]},
    {"Name": "tag:team", "Values": ["core"]},
]


@pytest.fixture
def aws() -> Iterator[Aws]:
    fake = Aws()
    yield fake
    fake.verify()


@pytest.mark.parametrize(
    ("states", "state"),
    [
        (("active",), "active"),
        (("pending",), "pending"),
        (("expired", "active", "scheduled"), "active"),
        (("expired", "expired", "scheduled"), "scheduled"),
        (("expired", "cancelled"), "expired"),
    ],
    ids=str,
)
def test_of_the_blocks_that_tags_find_the_present_one_counts(
    aws: Aws, states: tuple[str, ...], state: str
) -> None:
    aws.reservation(*states, Filters=FILTERS)
    assert find(aws.client("ec2"), TAGGED) == Block(state=state, starts=STARTS, ends=ENDS)


@pytest.mark.parametrize("states", [("active", "active"), ("scheduled", "pending")], ids=str)
def test_tags_that_find_several_present_blocks_are_an_error(
    aws: Aws, states: tuple[str, ...]
) -> None:
    aws.reservation(*states, Filters=FILTERS)
    with pytest.raises(ReservationError, match=r"several .*: cr-0, cr-1; give each"):
        find(aws.client("ec2"), TAGGED)


def test_tags_that_find_no_block_are_an_error(aws: Aws) -> None:
    aws.reservation(Filters=FILTERS)
    with pytest.raises(ReservationError, match="no Capacity Block has the tags"):
        find(aws.client("ec2"), TAGGED)


def test_a_reservation_of_another_kind_with_the_same_tags_does_not_count(aws: Aws) -> None:
    aws.expect(
        "ec2:DescribeCapacityReservations",
        {
            "CapacityReservations": [
                {"State": "active", "ReservationType": "default"},
                {"State": "scheduled", "ReservationType": "capacity-block"},
            ]
        },
        {"Filters": FILTERS},
    )

    found = find(aws.client("ec2"), TAGGED)

    assert found == Block(state="scheduled", starts=None, ends=None)
