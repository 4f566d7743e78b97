"""Wrong questions to the adviser: every mistake at once, each with what to do."""

from typing import Any

import pytest

from tests.support.advice_questions import AT, HELD, HELD_BLOCK, mistakes, question
from ultrascale.errors import QuestionError
from ultrascale.plan.advice import REQUIRED, Given, read_question


def test_all_that_is_missing_is_named_at_once() -> None:
    with pytest.raises(QuestionError) as refusal:
        read_question(Given(at=AT))

    assert [line.split(":")[0] for line in refusal.value.mistakes] == [f"--{n}" for n in REQUIRED]


def test_several_mistakes_are_told_together() -> None:
    lines = mistakes(workload="pretraining", nodes=0, region="us-west-9", image="windows")
    keys = [line.split(":")[0] for line in lines]
    assert keys == ["--workload", "--image", "--nodes", "--region"]
    assert "did you mean pre-training?" in lines[0]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"type": ["p5.48xlrage"]}, "--type: unknown instance type 'p5.48xlrage'; did you mean"),
        ({"type": ["ml.p5.48xlarge"]}, "--type: a name with SageMaker's prefix"),
        ({"type": ["p5.48xlarge"] * 2}, "--type: given twice"),
        ({"zone": ["us-east-1a"]}, "--zone: not a zone of us-west-2"),
        ({"zone": ["us-west-2a", "usw2-az2"]}, "--zone: names and ids mixed"),
        ({"region": "cn-north-1", "zone": ["cn-north-1a"]}, "--region: Regions of China"),
        ({"nodes": 100_001}, "--nodes: not a number of nodes"),
        ({"days": "0"}, "--days: not a number of days"),
        ({"days": "nan"}, "--days: not a number of days"),
        ({"days": "a week"}, "--days: not a number of days"),
        ({"starts": "2026-11-21T11:59Z"}, "--starts: before 2026-11-21T12:00Z"),
        ({"starts": "2026-12-01"}, "--starts: not an ISO 8601 time with its zone"),
        ({"starts": "soon"}, "--starts: not an ISO 8601 time with its zone"),
        ({"until": "2026-11-30T00:00Z"}, "--until: before --starts"),
        ({"at": "9999-12-31T00:00Z"}, "--at: not an ISO 8601 time with its zone"),
        ({"at": "now"}, "--at: not an ISO 8601 time with its zone"),
        ({"horizon_days": 400}, "--horizon-days: a horizon of work that ends"),
        ({"days": "steady", "horizon_days": -1}, "--horizon-days: not more than nothing"),
        ({"utilisation": 0}, "--utilisation: not a part of the time"),
        ({"utilisation": float("nan")}, "--utilisation: not a part of the time"),
        ({"budget": float("nan")}, "--budget: not more than nothing"),
        ({"tolerance": "some"}, "--tolerance: no tolerance"),
        ({"commitment": "2-year"}, "--commitment: no commitment"),
        ({"provisioner": "fargate"}, "--provisioner: no provisioner"),
        ({"provisioner": "hyperpod", "outside_account": False}, "--provisioner: HyperPod beside"),
        ({"kubernetes": "1.20"}, "--kubernetes: a version that is not supported"),
        ({"held": ["cr-0feedfeedfeedfee1"]}, "--held: no id, type, zone, count"),
        ({"held": [f"{HELD},az=a"]}, "--held: unknown key az"),
        ({"held": [HELD.replace("count=16", "count=many")]}, "--held: no number of instances"),
        ({"held": [HELD.replace("p5.", "p55.")]}, "--held: an unknown instance type"),
        ({"held": [HELD.replace("cr-", "c-")]}, "--held: neither a reservation"),
        ({"held": [f"{HELD},ends=2026-12-08T11:30:00Z"]}, "--held: no window"),
        ({"held": [f"{HELD_BLOCK},option=plan"]}, "--held: neither a reservation"),
        ({"held": [HELD, HELD]}, "--held: one reservation twice"),
    ],
)
def test_a_mistake_is_named_with_what_to_do(changes: dict[str, Any], line: str) -> None:
    (told,) = mistakes(**changes)

    assert told.startswith(line)
    assert "; " in told
    assert not told.endswith(".")


@pytest.mark.parametrize(
    ("works", "tolerance", "coupled"),
    [
        ("pre-training fine-tuning", "checkpoint", True),
        ("batch-inference online-inference data-processing", "stateless", False),
        ("development", "none", False),
    ],
)
def test_what_is_not_said_follows_from_the_work(works: str, tolerance: str, coupled: bool) -> None:
    for work in works.split():
        asked = question(workload=work)
        assert (asked.tolerance, asked.coupled) == (tolerance, coupled)
    # One node and types without EFA are not coupled by themselves.
    assert not question(nodes=1).coupled
    assert not question(type=["g6.xlarge"]).coupled
    assert question(nodes=1, coupled=True).coupled


def test_what_is_held_says_what_it_is() -> None:
    plan = "id=arn:aws:sagemaker:us-west-2:999999999999:training-plan/p,type=ml.p5.48xlarge"
    window = "zone=us-west-2b,count=8,starts=2026-12-01T11:30:00Z,ends=2026-12-08T11:30:00Z"
    limited = f"{HELD.replace('fee1', 'fee2')},ends=2027-01-01T00:00Z,option=odcr"
    block = HELD_BLOCK.replace("fee1", "fee3")

    found = question(held=[HELD, limited, block, f"{plan},{window}"]).held

    assert [each.option for each in found] == ["odcr", "odcr", "capacity-block", "training-plan"]
    assert found[3].instance_type == "p5.48xlarge"
