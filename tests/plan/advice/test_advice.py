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
from tests.support.cases import for_each
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


SERVED: dict[str, Any] = {"workload": "online-inference"}
TUNED: dict[str, Any] = {"workload": "fine-tuning"}
MADE: dict[str, Any] = {"workload": "data-processing", **CPU}
YEAR: dict[str, Any] = {"commitment": "1-year"}
GOVCLOUD: dict[str, Any] = {"region": "us-gov-west-1", "zone": ["us-gov-west-1a"]}
COUPLED: dict[str, Any] = {**TUNED, **P4D, **STEADY, "coupled": True}
CHOICES: dict[str, tuple[dict[str, Any], str]] = {
    "pre-training": ({}, "P2 capacity-block on-demand"),
    "fine-tuning": (TUNED | P4D, "P2 capacity-block on-demand spot"),
    "batch-inference": ({"workload": "batch-inference", **G}, "P5 spot on-demand"),
    "online-inference": (SERVED | G | STEADY, "P3 odcr on-demand spot"),
    "online-inference on P": (SERVED | P4D | STEADY, "P3 odcr on-demand spot"),
    "data-processing": (MADE, "P5 spot on-demand"),
    "development": ({"workload": "development", **STEADY}, "P6 on-demand"),
    "on HyperPod": ({"provisioner": "hyperpod"}, "P2 training-plan on-demand"),
    "held": ({"held": [HELD]}, "P1 odcr on-demand"),
    "held for a part of the time": (
        {"held": [HELD_BLOCK], "days": "14"},
        "P1 capacity-block capacity-block on-demand",
    ),
    "a service on P under a contract": (STEADY | SERVED | YEAR, "P4 odcr on-demand spot"),
    "a service on P that ends": (
        SERVED | {"tolerance": "none"},
        "P2 capacity-block odcr on-demand",
    ),
    "no blocks listed in the Region": (GOVCLOUD, "P6 on-demand"),
    "a date for G": (TUNED | G | {"coupled": False}, "P3 odcr on-demand spot"),
    "steady under a contract": (STEADY | MADE | YEAR, "P3 odcr spot on-demand"),
    "steady P": (STEADY | {"horizon_days": 400}, "P4 odcr on-demand"),
    "not a year": (STEADY | {"horizon_days": 300}, "P6 on-demand"),
    "too seldom for a contract": (
        STEADY | {"horizon_days": 400, "utilisation": 20},
        "P6 on-demand",
    ),
    "longer than a block": ({"days": "200"}, "P6 on-demand"),
    "more than a year": ({"days": "400"}, "P4 odcr on-demand"),
    "eight coupled nodes": (COUPLED | {"nodes": 8}, "P5 spot on-demand"),
    "nine coupled nodes": (COUPLED | {"nodes": 9}, "P6 on-demand spot"),
}


@for_each(CHOICES)
def test_the_first_that_fits_is_chosen_and_the_rest_is_its_fallback(
    asked: dict[str, Any], expected: str
) -> None:
    answer = advice(**asked)
    assert answer.choice is not None
    assert [answer.choice.judged.place.code, *chain(answer)] == expected.split()


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
    candidate = spot.judged.candidate
    assert (candidate.option, candidate.provisioner) == ("spot", "karpenter")


def test_karpenter_and_auto_mode_never_meet_in_one_answer() -> None:
    answer = advice(workload="fine-tuning", **P4D, provisioner="auto-mode")
    launched = {step.judged.candidate.provisioner for step in answer.steps}
    assert launched & {"karpenter", "auto-mode"} == {"auto-mode"}
    # A fallback on HyperPod would cost from the first day.
    others = advice(provisioner="hyperpod").fallback
    assert [step.judged.candidate.provisioner for step in others] == ["managed-node-group"]
    # The adviser reads no clock.
    assert question(starts=None).starts == AT


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


MISFITS: dict[str, tuple[str, dict[str, Any]]] = {
    "too few for a coupled job": (HELD, {"nodes": 17}),
    "zone": (HELD, {"zone": ["us-west-2a"]}),
    "type": (HELD, {"type": ["p5e.48xlarge"]}),
    "over": (HELD_BLOCK, {"starts": "2026-12-08T12:00Z"}),
    "drained": (HELD_BLOCK, {"starts": "2026-12-08T11:00Z"}),
    "too late": (HELD_BLOCK, {"starts": "2026-11-22T00:00Z", "until": "2026-11-30T00:00Z"}),
    "hardware": (HELD.replace("p5.48xlarge", "p6e-gb200.36xlarge"), {}),
    "Region": (ELSEWHERE, {}),
}


@for_each(MISFITS)
def test_what_is_held_and_does_not_fit_is_named_with_its_reason(
    held: str, changes: dict[str, Any]
) -> None:
    answer = advice(**{"held": [held], **changes})
    names = [each.candidate.held.name for each in answer.candidates if each.candidate.held]
    assert not any(each.legal for each in answer.candidates if each.candidate.held)
    assert answer.choice is not None
    assert answer.choice.judged.candidate.held is None
    for name in names:
        assert all(text.startswith(f"{name} is ") for text in warned(answer)["held"])
