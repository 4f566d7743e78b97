"""The adviser's first choice of capacity, and its fallbacks."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.advice_questions import (
    AT,
    CPU,
    HELD,
    HELD_BLOCK,
    P4D,
    STEADY,
    G,
    advice,
    question,
    warned,
)
from ultrascale.offers.request import Wish, request_of
from ultrascale.plan.advice import Advice

ELSEWHERE = (
    "id=arn:aws:sagemaker:us-east-1:999999999999:training-plan/p,type=p5.48xlarge,zone=us-west-2b,"
    "count=16,starts=2026-11-30T11:30:00Z,ends=2026-12-21T11:30:00Z"
)


def chain(answer: Advice) -> list[str]:
    """Return options of choice and fallback; a Spot pool's own share of On-Demand follows it."""
    options = [step.judged.candidate.option for step in answer.steps]
    return options + (["on-demand"] if "fallback: on-demand" in answer.fragment else [])


@pytest.mark.parametrize(
    ("asked", "place", "expected"),
    [
        pytest.param({}, "P2", "capacity-block on-demand", id="pre-training"),
        pytest.param(
            {"workload": "fine-tuning", **P4D},
            "P2",
            "capacity-block on-demand spot",
            id="fine-tuning",
        ),
        pytest.param(
            {"workload": "batch-inference", **G}, "P5", "spot on-demand", id="batch-inference"
        ),
        pytest.param(
            {"workload": "online-inference", **G, **STEADY},
            "P3",
            "odcr on-demand spot",
            id="online-inference",
        ),
        pytest.param(
            {"workload": "online-inference", **P4D, **STEADY},
            "P3",
            "odcr on-demand spot",
            id="online-inference-on-p",
        ),
        pytest.param(
            {"workload": "data-processing", **CPU}, "P5", "spot on-demand", id="data-processing"
        ),
        pytest.param({"workload": "development", **STEADY}, "P6", "on-demand", id="development"),
        pytest.param(
            {"provisioner": "hyperpod"}, "P2", "training-plan on-demand", id="on-hyperpod"
        ),
        pytest.param({"held": [HELD]}, "P1", "odcr on-demand", id="held"),
        pytest.param(
            {"held": [HELD_BLOCK], "days": "14"},
            "P1",
            "capacity-block capacity-block on-demand",
            id="held-for-a-part-of-the-time",
        ),
        pytest.param(
            {**STEADY, "workload": "online-inference", "commitment": "1-year"},
            "P4",
            "odcr on-demand spot",
            id="a-service-on-p-under-a-contract",
        ),
        pytest.param(
            {"workload": "online-inference", "tolerance": "none"},
            "P2",
            "capacity-block odcr on-demand",
            id="a-service-on-p-that-ends",
        ),
        pytest.param(
            {"region": "us-gov-west-1", "zone": ["us-gov-west-1a"]},
            "P6",
            "on-demand",
            id="no-blocks-listed-in-the-region",
        ),
        pytest.param(
            {"workload": "fine-tuning", **G, "coupled": False},
            "P3",
            "odcr on-demand spot",
            id="a-date-for-g",
        ),
        pytest.param(
            {**CPU, **STEADY, "workload": "data-processing", "commitment": "1-year"},
            "P3",
            "odcr spot on-demand",
            id="steady-under-a-contract",
        ),
        pytest.param({**STEADY, "horizon_days": 400}, "P4", "odcr on-demand", id="steady-p"),
        pytest.param({**STEADY, "horizon_days": 300}, "P6", "on-demand", id="not-a-year"),
        pytest.param(
            {**STEADY, "horizon_days": 400, "utilisation": 20},
            "P6",
            "on-demand",
            id="too-seldom-for-a-contract",
        ),
        pytest.param({"days": "200"}, "P6", "on-demand", id="longer-than-a-block"),
        pytest.param({"days": "400"}, "P4", "odcr on-demand", id="more-than-a-year"),
        pytest.param(
            {"workload": "fine-tuning", "nodes": 8, **P4D, **STEADY, "coupled": True},
            "P5",
            "spot on-demand",
            id="eight-coupled-nodes",
        ),
        pytest.param(
            {"workload": "fine-tuning", "nodes": 9, **P4D, **STEADY, "coupled": True},
            "P6",
            "on-demand spot",
            id="nine-coupled-nodes",
        ),
    ],
)
def test_the_first_that_fits_is_chosen_and_the_rest_is_its_fallback(
    asked: dict[str, Any], place: str, expected: str
) -> None:
    answer = advice(**asked)

    assert answer.choice is not None
    assert answer.choice.judged.place.code == place
    assert chain(answer) == expected.split()


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"starts": None},
        {"nodes": 100, "days": "20", "until": "2026-12-20T00:00Z"},
        {"nodes": 300, "days": "20", "provisioner": "hyperpod"},
        {"workload": "batch-inference", **G},
    ],
)
def test_the_command_that_finds_the_capacity_is_one_that_is_understood(
    asked: dict[str, Any],
) -> None:
    choice = advice(**asked).choice

    assert choice is not None
    (line,) = choice.get
    words = line.removeprefix("ultrascale capacity ").split()
    said: dict[str, tuple[str, ...]] = {}
    for key, value in zip(words[::2], words[1::2], strict=True):
        said[key] = (*said.get(key, ()), value)
    wish = Wish(
        regions=said.pop("--region"),
        instance_types=said.pop("--type"),
        count=int(*said.pop("--count")),
        days=int(said.pop("--days")[0]) if "--days" in said else None,
        starts=said.pop("--starts", (None,))[0],
        until=said.pop("--until", (None,))[0],
        zones=said.pop("--zone", ()),
        options=said.pop("--option"),
    )
    assert said == {}
    assert request_of(wish, AT + timedelta(minutes=1)).options == (choice.judged.candidate.option,)


def test_a_preferred_provisioner_is_taken_where_it_can() -> None:
    for provisioner in ("karpenter", "auto-mode", "self-managed"):
        answer = advice(provisioner=provisioner)
        assert answer.choice is not None
        assert answer.choice.judged.candidate.provisioner == provisioner
    spot = advice(workload="batch-inference", **G, provisioner="hyperpod").choice
    assert spot is not None
    assert (spot.judged.candidate.option, spot.judged.candidate.provisioner) == (
        "spot",
        "karpenter",
    )


def test_karpenter_and_auto_mode_never_meet_in_one_answer() -> None:
    answer = advice(workload="fine-tuning", **P4D, provisioner="auto-mode")

    launched = {step.judged.candidate.provisioner for step in answer.steps}
    assert launched & {"karpenter", "auto-mode"} == {"auto-mode"}


def test_a_fallback_on_hyperpod_would_cost_from_the_first_day() -> None:
    answer = advice(provisioner="hyperpod")

    assert [step.judged.candidate.provisioner for step in answer.fallback] == ["managed-node-group"]


# --- what is paid for already ---------------------------------------------------------------------


def test_what_is_held_is_used_before_anything_is_bought() -> None:
    answer = advice(held=[HELD_BLOCK])

    assert answer.choice is not None
    assert answer.choice.judged.candidate.held is not None
    assert answer.choice.cost.high == 0
    assert "cr-0feedfeedfeedfee1" in answer.fragment
    assert "fill in" not in answer.fragment.split("name: ")[1]


def test_of_what_is_held_only_the_hours_that_are_left_count() -> None:
    answer = advice(held=[HELD_BLOCK], starts="2026-12-05T11:30Z", days="5")

    block, bought, _ = answer.steps
    assert block.usable_hours is not None
    assert block.usable_hours.value == pytest.approx(3 * 24 - 40 / 60)
    assert "of use for 71.3 hours" in " ".join(warned(answer)["P1"])
    assert bought.judged.candidate.option == "capacity-block"


def test_what_is_held_serves_a_part_where_the_work_can_be_divided() -> None:
    answer = advice(held=[HELD], nodes=20, coupled=False)

    assert answer.choice is not None
    assert answer.choice.nodes == 16
    assert [step.nodes for step in answer.fallback] == [4, 4]


@pytest.mark.parametrize(
    ("held", "changes"),
    [
        (HELD, {"nodes": 17}),
        (HELD, {"zone": ["us-west-2a"]}),
        (HELD, {"type": ["p5e.48xlarge"]}),
        (HELD_BLOCK, {"starts": "2026-12-08T12:00Z"}),
        (HELD_BLOCK, {"starts": "2026-12-08T11:00Z"}),
        (HELD_BLOCK, {"starts": "2026-11-22T00:00Z", "until": "2026-11-30T00:00Z"}),
        (HELD.replace("p5.48xlarge", "p6e-gb200.36xlarge"), {}),
        (ELSEWHERE, {}),
    ],
    ids=[
        "too-few-for-a-coupled-job",
        "zone",
        "type",
        "over",
        "drained",
        "too-late",
        "hardware",
        "region",
    ],
)
def test_what_is_held_and_does_not_fit_is_named_with_its_reason(
    held: str, changes: dict[str, Any]
) -> None:
    answer = advice(**{"held": [held], **changes})

    of_it = [each for each in answer.candidates if each.candidate.held is not None]
    assert not any(each.legal for each in of_it)
    assert answer.choice is not None
    assert answer.choice.judged.candidate.held is None
    assert all(
        text.startswith(f"{each.candidate.held.name} is ")
        for text in warned(answer)["held"]
        for each in of_it
        if each.candidate.held
    )


def test_the_adviser_reads_no_clock() -> None:
    assert question(starts=None).starts == AT
    assert advice() == advice()
