"""A training plan in another zone, or for another use, is paid for twice."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.fake_aws import ID, Refusal, denied
from tests.support.pools import HYPERPOD_POOL, TRAINING_PLAN
from tests.support.preflight_context import NOW, file_plan, found, make_context, pools_plan, zone
from ultrascale.errors import UnansweredError
from ultrascale.findings import Finding
from ultrascale.parts.hyperpod.preflight import TRAINING_PLANS

ACTION = "sagemaker:DescribeTrainingPlan"
ZONES = "ec2:DescribeAvailabilityZones"
ARN = str(TRAINING_PLAN["plan"])
STARTS = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
ENDS = datetime(2026, 12, 8, 11, 30, tzinfo=UTC)
THERE = {"AvailabilityZones": [zone("us-west-2b", "usw2-az2"), zone("us-west-2c", "usw2-az3")]}


def part(**changes: Any) -> dict[str, Any]:
    return {
        "ReservedCapacityArn": f"arn:aws:sagemaker:us-west-2:{ID}:reserved-capacity/one",
        "InstanceType": "ml.p5.48xlarge",
        "TotalInstanceCount": 8,
        "Status": "Scheduled",
        "AvailabilityZone": "us-west-2b",
        "AvailabilityZoneId": "usw2-az2",
        "StartTime": STARTS,
        "EndTime": ENDS,
    } | changes


def bought(**changes: Any) -> dict[str, Any]:
    """Return what SageMaker says of the plan of these tests; None leaves a field out."""
    answer = {
        "TrainingPlanArn": ARN,
        "TrainingPlanName": "baseline",
        "Status": "Scheduled",
        "StartTime": STARTS,
        "EndTime": ENDS,
        "TotalInstanceCount": 8,
        "TargetResources": ["hyperpod-cluster"],
        "ReservedCapacitySummaries": [part()],
    } | changes
    return {key: value for key, value in answer.items() if value is not None}


def found_of(answer: dict[str, Any] | Refusal, *, at: datetime = NOW) -> Finding:
    plan = pools_plan(HYPERPOD_POOL)
    (finding,) = found(TRAINING_PLANS, plan, {ACTION: answer, ZONES: THERE}, at=at)
    return finding


def of_part(**changes: Any) -> dict[str, Any]:
    return {"ReservedCapacitySummaries": [part(**changes)]}


LATER = part(StartTime=STARTS + timedelta(days=4), TotalInstanceCount=2)
OTHER_ZONE = of_part(AvailabilityZone="us-west-2c", AvailabilityZoneId="usw2-az3")


def without(key: str) -> dict[str, Any]:
    return {"ReservedCapacitySummaries": [{k: v for k, v in part().items() if k != key}]}


@pytest.mark.parametrize(
    ("changes", "state", "text"),
    [
        ({}, "pass", ""),
        # A zone is found by its name and by its id.
        (without("AvailabilityZone"), "pass", ""),
        (without("AvailabilityZoneId"), "pass", ""),
        ({"Status": "Failed", "StatusMessage": "no money"}, "fail", "Status is Failed (no money)"),
        ({"Status": "Expired"}, "fail", "Status is Expired"),
        ({"Status": "Pending"}, "warn", "Status is Pending: the purchase is not final"),
        ({"TargetResources": ["training-job"]}, "fail", "are training-job: HyperPod cannot use"),
        ({"TargetResources": None}, "fail", "TargetResources are none"),
        ({"StartTime": STARTS + timedelta(days=1)}, "fail", "StartTime is 2026-12-02T11:30:00Z in"),
        ({"EndTime": ENDS - timedelta(days=1)}, "fail", "EndTime is 2026-12-07T11:30:00Z in the"),
        ({"EndTime": None}, "unknown", "AWS reports no EndTime"),
        ({"TrainingPlanArn": ARN.replace("111122223333", ID)}, "fail", "TrainingPlanArn is arn:"),
        ({"ReservedCapacitySummaries": []}, "unknown", "ReservedCapacitySummaries is empty"),
        ({"UnhealthyInstanceCount": 2}, "warn", "UnhealthyInstanceCount is 2"),
        (of_part(InstanceType="ml.p5en.48xlarge"), "fail", "InstanceType is ml.p5en.48xlarge in"),
        (of_part(TotalInstanceCount=4), "fail", "TotalInstanceCount is 4, the pools take 8"),
        (of_part(TotalInstanceCount=16), "warn", "8 are paid for and not used by this cluster"),
        (OTHER_ZONE, "fail", "the zone is us-west-2c (usw2-az3) in the account, us-west-2b (usw2"),
        (of_part(AvailabilityZoneId="usw2-az4"), "fail", "the zone is usw2-az4 in the account"),
        # Each part of a plan with a gap has to hold the nodes.
        (
            {"ReservedCapacitySummaries": [part(), LATER]},
            *("fail", "[] from 2026-12-05T11:30:00Z: TotalInstanceCount is 2"),
        ),
    ],
)
def test_the_field_that_differs_is_named_with_both_values(
    changes: dict[str, Any], state: str, text: str
) -> None:
    finding = found_of(bought(**changes))
    assert (finding.subject, finding.state) == ("hp: baseline", state)
    assert text in finding.evidence
    assert (finding.fix is None) == (state == "pass")


def test_a_plan_that_is_not_there_or_does_not_run_in_time_is_told() -> None:
    late = found_of(bought(), at=STARTS)
    gone = found_of(Refusal("ResourceNotFound", "Training plan baseline not found"))
    assert (late.state, late.evidence) == (
        "warn",
        "Status is Scheduled, to start 2026-12-01T11:30:00Z, which is over",
    )
    assert (gone.state, "Training plan baseline not found" in gone.evidence) == ("fail", True)


def test_a_denied_question_is_unknown_with_the_action() -> None:
    finding = found_of(denied(ACTION))
    assert finding.state == "unknown"
    assert ACTION in str(finding.fix)
    with pytest.raises(UnansweredError, match=ZONES):
        found(TRAINING_PLANS, pools_plan(HYPERPOD_POOL), {ZONES: denied(ZONES)})


def test_the_plan_of_our_own_file_is_asked_for_by_its_name() -> None:
    context, aws = make_context(
        file_plan("hybrid-hyperpod"), {ACTION: Refusal("ResourceNotFound"), ZONES: THERE}
    )
    (finding,) = TRAINING_PLANS.run(context)
    assert finding.subject == "hyperpod: baseline-2026"
    assert aws.parameters(ACTION) == [{"TrainingPlanName": "baseline-2026"}]
