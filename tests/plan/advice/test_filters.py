"""Candidates that the adviser refuses or doubts, each with the code of its reason."""

from typing import Any

import pytest

from tests.support.advice_questions import EC2_ALONE, STEADY, advice, question, warned
from ultrascale import config, plan
from ultrascale.plan.advice import Question
from ultrascale.plan.advice.candidates import candidates
from ultrascale.plan.advice.order import judge


def codes(asked: Question, option: str, provisioner: str | None = None) -> set[str]:
    """Return why the candidates of an option are refused before any is planned."""
    return {
        reason.code
        for each in candidates(asked)
        if each.option == option and provisioner in (None, each.provisioner)
        for reason in judge(asked, each).refused
    }


@pytest.mark.parametrize(
    ("code", "option", "provisioner", "asked"),
    [
        ("H2", "capacity-block", None, {"type": ["g6e.48xlarge"]}),
        ("H2", "capacity-block", None, {"nodes": 257}),
        ("H2", "capacity-block", None, {"days": "183"}),
        ("H2", "capacity-block", None, STEADY),
        ("H2", "capacity-block", None, {"starts": "2027-01-17T00:00Z"}),
        ("H2", "training-plan", "hyperpod", {"type": ["trn2.3xlarge"]}),
        ("H4", "spot", None, {"tolerance": "none"}),
        ("H5", "on-demand", "auto-mode", {"image": "al2023"}),
        ("H5", "on-demand", "auto-mode", {"efa_lustre": True}),
        ("H5", "on-demand", "auto-mode", {"custom_kubelet": True}),
        ("H5", "on-demand", "auto-mode", {"days": "22", "tolerance": "none"}),
        ("H6", "on-demand", "managed-node-group", {"nodes": 13_051, **STEADY}),
        ("H8", "training-plan", "hyperpod", {"kubernetes": "1.36"}),
        ("H8", "training-plan", "hyperpod", {"region": "ca-west-1", "zone": ["ca-west-1a"]}),
        ("H8", "on-demand", "hyperpod", {"type": ["g5g.16xlarge"]}),
        ("H10", "on-demand", None, {"type": ["g6.xlarge"], "coupled": True}),
        ("H10", "on-demand", None, {"type": ["p5.48xlarge", "p5en.48xlarge"]}),
        ("matrix", "capacity-block", "hyperpod", {}),
        ("asked", "training-plan", "hyperpod", {"outside_account": False}),
        ("asked", "on-demand", "karpenter", {"image": "bottlerocket"}),
        ("check", "spot", "managed-node-group", {}),
        ("check", "on-demand", "karpenter", {"type": ["p6e-gb200.36xlarge"]}),
    ],
)
def test_what_is_refused_has_a_code(
    code: str, option: str, provisioner: str | None, asked: dict[str, Any]
) -> None:
    assert code in codes(question(**asked), option, provisioner)
    if code not in ("matrix", "check"):
        assert code not in codes(question(), option, provisioner)


@pytest.mark.parametrize(
    ("asked", "option"),
    [
        ({"nodes": 256}, "capacity-block"),
        ({"days": "182"}, "capacity-block"),
        ({"starts": "2027-01-16T12:00Z"}, "capacity-block"),
        ({"nodes": 13_050, "coupled": False, **STEADY, "tolerance": "none"}, "on-demand"),
    ],
)
def test_a_limit_itself_is_allowed(asked: dict[str, Any], option: str) -> None:
    assert codes(question(**asked), option, "managed-node-group") == set()


@pytest.mark.parametrize(
    ("code", "asked"),
    [
        ("H1", {"type": ["p5e.48xlarge"], **STEADY}),
        ("H1", {"type": ["trn2.3xlarge"], **STEADY, "outside_account": False}),
        ("H2", {"region": "us-gov-west-1", "zone": ["us-gov-west-1a"]}),
        ("H8", {"type": ["trn2.48xlarge"], "provisioner": "hyperpod", **STEADY}),
    ],
)
def test_a_list_that_may_lag_warns_and_refuses_nothing(code: str, asked: dict[str, Any]) -> None:
    answer = advice(**asked)

    assert any(code == doubt.code for each in answer.candidates for doubt in each.doubts)
    assert code not in {reason.code for each in answer.candidates for reason in each.refused}
    assert answer.choice is not None
    if code == "H1":
        assert ["live call" in text for text in warned(answer)["H1"]] == [True]


def test_what_is_listed_comes_before_what_may_not_be_sold() -> None:
    answer = advice(type=["p5e.48xlarge", "p5.48xlarge"], **STEADY)

    assert answer.choice is not None
    assert answer.choice.judged.candidate.instance_types == ("p5.48xlarge",)
    assert "H1" not in warned(answer)


def test_a_placement_group_goes_where_it_can_and_its_absence_is_told() -> None:
    block, launched = advice(placement_group=True), advice(placement_group=True, **STEADY)

    assert block.fragment.count("placement_group: true") == 1
    assert "H7" in warned(block)
    assert "placement_group: true" in launched.fragment
    assert "H7" not in warned(launched)


def test_more_than_aws_publishes_is_answered_with_what_to_ask_for() -> None:
    answer = advice(nodes=8_000, **STEADY, **EC2_ALONE)

    assert answer.choice is not None
    text, *_ = warned(answer)["H9"]
    assert "L-BB24F6E5" in text
    assert "account team" in text


def test_what_aws_publishes_as_granted_comes_before_what_it_does_not() -> None:
    answer = advice(type=["p5.48xlarge", "p4d.24xlarge"], nodes=8_000, **STEADY, **EC2_ALONE)

    assert answer.choice is not None
    assert answer.choice.judged.candidate.instance_types == ("p4d.24xlarge",)
    doubted = [each for each in answer.candidates if "H9" in {r.code for r in each.doubts}]
    assert {each.candidate.instance_types for each in doubted} == {("p5.48xlarge",)}


def test_only_coupled_nodes_take_interfaces_for_efa() -> None:
    coupled, alone = advice(**STEADY), advice(**STEADY, coupled=False)

    efa = [
        [pool.efa_interfaces for pool in plan.plan_cluster(config.loads(each.cluster_file)).pools]
        for each in (coupled, alone)
    ]
    assert efa == [[32], [0]]


def test_nothing_legal_is_said_with_every_reason() -> None:
    answer = advice(type=["p6e-gb200.36xlarge"])

    assert (answer.choice, answer.fragment, answer.cluster_file) == (None, "", "")
    assert answer.candidates
    assert all(each.refused for each in answer.candidates)
