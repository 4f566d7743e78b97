"""Rows of the ledger on reservations, as AWS answers; clients of boto3 check the answers."""

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import boto3
import pytest
from botocore.stub import Stubber

from tests.support.ledger_life import EVENT
from tests.support.ledgers import price_list, priced, reservation, write
from tests.support.stub_api_server import Object
from ultrascale.lambdas.fleet_metrics import ledger
from ultrascale.lambdas.fleet_metrics.settings import LedgerSettings
from ultrascale.lambdas.ledger import shares_of

ARN = "arn:aws:sagemaker:us-east-2:111122223333:training-plan/winter"
GROUP = "arn:aws:resource-groups:us-east-2:111122223333:group/odcr"
BLOCK: Object = EVENT["ledger"]["reserved"][2] | {"lead": 2_400}
NOW = int(datetime(2026, 12, 10, tzinfo=UTC).timestamp())


def moment(day: int, month: int = 12) -> datetime:
    return datetime(2026, month, day, 11, 30, tzinfo=UTC)


def seconds(day: int) -> int:
    return int(moment(day).timestamp())


PLAN = {
    "TrainingPlanArn": ARN,
    "TrainingPlanName": "winter",
    "Status": "Active",
    "StartTime": moment(1),
    "EndTime": moment(14),
    "UpfrontFee": "100000.01",
    "TotalInstanceCount": 4,
    "AvailableInstanceCount": 0,
}


def rows_of(
    patch: pytest.MonkeyPatch, service: str, answers: Object, *owns: Object, now: int = 0
) -> Object:
    """Return the rows of reservations where AWS answers each operation in turn."""
    make = vars(boto3)["client"]
    client = make(
        service, region_name="us-east-2", aws_access_key_id="a", aws_secret_access_key="b"
    )
    settings = LedgerSettings.parse(EVENT["ledger"] | {"reserved": owns})
    stubber = Stubber(client)
    with stubber:
        for name, own in answers.items():
            for answer in own:
                stubber.add_response(name, answer)
        patch.setattr(ledger, "boto3", SimpleNamespace(client=Mock(return_value=client)))
        found = dict(ledger.rows_by_id(settings, now or NOW))
        stubber.assert_no_pending_responses()
    return found


def extension(first: int, last: int, fee: str, status: str = "payment-succeeded") -> Object:
    return {
        "CapacityReservationId": BLOCK["id"],
        "CapacityBlockExtensionStatus": status,
        "CapacityBlockExtensionStartDate": moment(first),
        "CapacityBlockExtensionEndDate": moment(last),
        "UpfrontFee": fee,
    }


def ec2_entry(name: str, count: int, **own: object) -> Object:
    row = {"CapacityReservationId": name, "InstanceType": "p5.48xlarge", "State": "active"}
    return {**row, "TotalInstanceCount": count, "AvailableInstanceCount": 1, **own}


def test_all_extensions_of_a_block_have_their_fee_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    block = ec2_entry(BLOCK["id"], 2, StartDate=moment(1), EndDate=moment(14))
    paid = [
        extension(10, 14, "70.5"),
        extension(7, 10, "50"),
        extension(14, 20, "9", "payment-failed"),
    ]
    answers = {
        "describe_capacity_reservations": [{"CapacityReservations": [block]}],
        "describe_capacity_block_extension_history": [{"CapacityBlockExtensions": paid}],
    }

    row = rows_of(monkeypatch, "ec2", answers, BLOCK)[BLOCK["id"]]

    assert row["window"] == [seconds(1), seconds(14)]
    assert row["fees"] == [
        {"usd": "50", "since": seconds(7), "until": seconds(10)},
        {"usd": "70.5", "since": seconds(10), "until": seconds(14)},
    ]


@pytest.mark.parametrize(("day", "bought"), [(3, 4), (6, 0), (9, 4), (13, 4)])
def test_a_gap_of_a_plan_costs_nothing_and_its_fees_add_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, day: int, bought: int
) -> None:
    own = {**BLOCK, "purchase": "training-plan", "id": ARN, "types": {"ml.p5.48xlarge": 8}}
    capacity = {
        "ReservedCapacityArn": ARN.replace("training-plan", "reserved-capacity"),
        "InstanceType": "ml.p5.48xlarge",
        "TotalInstanceCount": 4,
        "Status": "Active",
    }
    plan = {
        **PLAN,
        "ReservedCapacitySummaries": [
            {**capacity, "StartTime": moment(low), "EndTime": moment(high)}
            for low, high in ((8, 14), (1, 5))
        ],
    }
    times = {"StartDate": moment(12), "EndDate": moment(14)}
    later = {**times, "TrainingPlanExtensionOfferingId": "tpeo-1", "UpfrontFee": "2000"}
    answers = {
        "describe_training_plan": [plan],
        "describe_training_plan_extension_history": [
            {"TrainingPlanExtensions": [{"Status": "Failed", **later}], "NextToken": "more"},
            {"TrainingPlanExtensions": [{"Status": "Active", **later}]},
        ],
    }

    row = rows_of(monkeypatch, "sagemaker", answers, own, now=seconds(day))[ARN]

    assert row["bought"] == bought
    spans = [(fee["since"], fee["until"]) for fee in row["fees"]]
    assert spans == [(seconds(a), seconds(b)) for a, b in ((1, 5), (8, 12), (12, 14))]
    rest = {name: value for name, value in row.items() if name not in ("window", "bought")}
    rows = [
        reservation(seconds(a), seconds(b), row["window"], count, **rest)
        for a, b, count in ((1, 5, 4), (5, 8, 0), (8, 14, 4))
    ]
    result = priced(write(tmp_path, rows), "2026-12-01", "2027-01-01", price_list())
    mine = [line for line in result.lines if line.key.reservation == ARN]
    assert sum(line.cents or 0 for line in mine) == 102_000_01
    assert sum(line.node_seconds for line in mine) == 4 * (4 + 6) * 86_400


def test_a_boto3_that_knows_no_extensions_of_plans_does_not_stop_the_ledger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = {**BLOCK, "purchase": "training-plan", "id": ARN, "types": {"ml.p5.48xlarge": 8}}
    client = Mock(spec=["describe_training_plan"])
    client.describe_training_plan.return_value = PLAN
    monkeypatch.setattr(ledger, "boto3", SimpleNamespace(client=Mock(return_value=client)))

    row = dict(ledger.rows_by_id(LedgerSettings.parse(EVENT["ledger"] | {"reserved": [own]}), NOW))

    assert row[ARN]["fees"] == [{"usd": "100000.01", "since": seconds(1), "until": seconds(14)}]


def test_reservations_of_a_resource_group_count_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {**BLOCK, "purchase": "odcr", "id": GROUP, "lead": None}
    names = {"cr-1": 3, "cr-2": 5, "cr-3": 7}
    odcrs = [ec2_entry(name, count) for name, count in names.items()]
    other = [ec2_entry("cr-4", 1, State="expired"), ec2_entry("cr-5", 1, InstanceType="m7g.large")]
    groups = [{"CapacityReservationGroups": [{"GroupArn": arn}]} for arn in (GROUP, GROUP, ARN)]
    answers = {
        "describe_capacity_reservations": [{"CapacityReservations": odcrs + other}],
        "get_groups_for_capacity_reservation": groups,
    }

    # Two pools share the group.
    found = rows_of(monkeypatch, "ec2", answers, own, {**own, "pool": "second"})

    assert [*found] == [GROUP]
    row = found[GROUP]
    assert (row["bought"], row["available"], row["window"]) == (8, 2, None)
    assert row["pool"] == BLOCK["pool"]


def block_answers(*blocks: Object) -> dict[str, list[Object]]:
    return {
        "describe_capacity_reservations": [{"CapacityReservations": blocks}],
        "describe_capacity_block_extension_history": [{"CapacityBlockExtensions": []}],
    }


def test_pools_with_the_same_tags_have_the_reservations_of_their_types_and_zones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tags = {"team": "a"}
    own = {**BLOCK, "id": "", "tags": tags, "zones": ["us-east-2a"]}
    pools = [
        {**own, "pool": "hopper-a"},
        {**own, "pool": "hopper-b", "zones": ["us-east-2b"]},
        {**own, "pool": "small", "types": {"g6e.12xlarge": 4, "g6e.48xlarge": 8}},
    ]
    blocks = [
        ec2_entry(
            name,
            2,
            InstanceType=type,
            AvailabilityZone=f"us-east-2{zone}",
            Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
            **{"ReservationType": "capacity-block", "StartDate": moment(1), "EndDate": moment(9)},
        )
        for name, type, zone in (
            ("cr-1", "p5.48xlarge", "a"),
            ("cr-2", "p5.48xlarge", "b"),
            ("cr-3", "g6e.12xlarge", "a"),
            ("cr-4", "m7i.large", "a"),
        )
    ]
    found = rows_of(monkeypatch, "ec2", block_answers(*blocks), *pools)

    assert {name: (row["pool"], row["accelerators"]) for name, row in found.items()} == {
        "cr-1": ("hopper-a", 8),
        "cr-2": ("hopper-b", 8),
        "cr-3": ("small", 4),
    }


@pytest.mark.parametrize(
    ("state", "paid"), [("scheduled", True), ("expired", True), ("payment-failed", False)]
)
def test_a_block_whose_payment_failed_costs_nothing(
    monkeypatch: pytest.MonkeyPatch, state: str, *, paid: bool
) -> None:
    block = ec2_entry(BLOCK["id"], 2, State=state, StartDate=moment(1), EndDate=moment(14))
    row = rows_of(monkeypatch, "ec2", block_answers(block), BLOCK)[BLOCK["id"]]
    row |= {"from": seconds(2), "to": seconds(3), "started": True}
    paid_for = sum(share.n for share in shares_of([row], seconds(2), seconds(3)))
    assert paid_for == (16 if paid else 0)
