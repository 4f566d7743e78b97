"""Which way to buy capacity the adviser names, and what it says before anybody pays."""

import math
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.advice_questions import AT, HELD, HELD_BLOCK, advice, question
from ultrascale import config, plan
from ultrascale.offers.request import Wish, request_of
from ultrascale.plan.advice import Advice, Question
from ultrascale.plan.advice.candidates import candidates
from ultrascale.plan.advice.order import judge
from ultrascale.plan.needs import plan_needs

G_TYPES = ["g6e.12xlarge", "g6e.24xlarge", "g6.12xlarge"]
TWO_ZONES = {"region": "us-east-1", "zone": ["us-east-1a", "us-east-1b"]}
G: dict[str, Any] = {"type": G_TYPES, **TWO_ZONES}
P4D: dict[str, Any] = {"type": ["p4d.24xlarge"], **TWO_ZONES}
CPU: dict[str, Any] = {"type": ["m7g.8xlarge", "c7g.8xlarge", "r7g.8xlarge"], **TWO_ZONES}
STEADY: dict[str, Any] = {"days": "steady"}
EC2_ALONE: dict[str, Any] = {"hyperpod": False, "tolerance": "none"}


def chain(answer: Advice) -> list[str]:
    """Return options of choice and fallback; a Spot pool's own share of On-Demand follows it."""
    options = [step.judged.candidate.option for step in answer.steps]
    return options + (["on-demand"] if "fallback: on-demand" in answer.fragment else [])


def codes(asked: Question, option: str, provisioner: str | None = None) -> set[str]:
    """Return why the candidates of an option are refused before any is planned."""
    return {
        reason.code
        for each in candidates(asked)
        if each.option == option and provisioner in (None, each.provisioner)
        for reason in judge(asked, each).refused
    }


def warned(answer: Advice) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for reason in answer.warnings:
        found.setdefault(reason.code, []).append(reason.text)
    return found


# --- the order of preference ----------------------------------------------------------------------


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
        pytest.param({"held": [HELD]}, "P1", "odcr capacity-block on-demand", id="held"),
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
        (HELD_BLOCK, {"starts": "2026-11-22T00:00Z", "until": "2026-11-30T00:00Z"}),
    ],
    ids=["too-few-for-a-coupled-job", "zone", "type", "over", "too-late"],
)
def test_what_is_held_and_does_not_fit_is_named_with_its_reason(
    held: str, changes: dict[str, Any]
) -> None:
    answer = advice(**{"held": [held], **changes})

    refused = [each for each in answer.candidates if each.candidate.held is not None]
    assert all("held" in {reason.code for reason in each.refused} for each in refused)
    assert answer.choice is not None
    assert answer.choice.judged.candidate.held is None


# --- filters --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "option", "provisioner", "asked"),
    [
        ("H2", "capacity-block", None, {"type": ["g6e.48xlarge"]}),
        ("H2", "capacity-block", None, {"nodes": 257}),
        ("H2", "capacity-block", None, {"days": "183"}),
        ("H2", "capacity-block", None, STEADY),
        ("H2", "capacity-block", None, {"workload": "online-inference"}),
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
        ("asked", "training-plan", "hyperpod", {"hyperpod": False}),
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
        ("H1", {"type": ["trn2.3xlarge"], **STEADY, "hyperpod": False}),
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


# --- sizes, windows and money ---------------------------------------------------------------------


@pytest.mark.parametrize(("nodes", "blocks"), [(64, [64]), (65, [64, 1]), (256, [64] * 4)])
def test_what_one_block_cannot_hold_is_several(nodes: int, blocks: list[int]) -> None:
    answer = advice(nodes=nodes)

    cluster = config.loads(answer.cluster_file)
    found = [pool for pool in cluster.pools if pool.purchase.option == "capacity-block"]
    assert [pool.nodes.highest for pool in found] == blocks
    assert len({str(pool.purchase) for pool in found}) == len(blocks)
    assert ("H10" in warned(answer)) == (len(blocks) > 1)


def test_what_one_training_plan_cannot_hold_is_several() -> None:
    answer = advice(nodes=300, provisioner="hyperpod")

    pools = [p for p in config.loads(answer.cluster_file).pools if p.provisioner == "hyperpod"]
    assert [pool.nodes.highest for pool in pools] == [64, 64, 64, 64, 44]
    assert len({str(pool.purchase) for pool in pools}) == 5
    assert "5 training plans" in warned(answer)["H2"][0]
    assert "others may not be on offer" in warned(answer)["H2"][1]
    assert "others" not in " ".join(warned(advice(nodes=64, provisioner="hyperpod"))["H2"])


@pytest.mark.parametrize(
    ("provisioner", "nodes", "shards"),
    [("managed-node-group", 450, 1), ("managed-node-group", 451, 2), ("karpenter", 451, 1)],
)
def test_what_one_node_group_cannot_hold_is_several(
    provisioner: str, nodes: int, shards: int
) -> None:
    answer = advice(nodes=nodes, provisioner=provisioner, **STEADY)

    pool = config.loads(answer.cluster_file).pools[1]
    assert (pool.provisioner, pool.shards) == (provisioner, shards)
    assert pool.nodes.highest == math.ceil(nodes / shards)
    assert ("H6" in warned(answer)) == (shards > 1)


@pytest.mark.parametrize(
    ("changes", "hours"),
    [
        ({}, 7 * 24 - 40 / 60),
        ({"provisioner": "hyperpod"}, 7 * 24 - 1),
        ({"days": "15"}, 21 * 24 - 40 / 60),
        ({"days": "0.5"}, 24 - 40 / 60),
        ({"starts": "2026-12-01T12:30Z", "until": "2026-12-01T13:00Z"}, 8 * 24 - 1 - 40 / 60),
    ],
    ids=["block", "plan", "by-the-week", "half-a-day", "at-another-time-of-day"],
)
def test_the_hours_of_a_window_are_those_that_work_can_use(
    changes: dict[str, Any], hours: float
) -> None:
    choice = advice(**changes).choice

    assert choice is not None
    assert choice.usable_hours is not None
    assert choice.usable_hours.value == pytest.approx(hours)


def test_a_block_that_is_longer_than_the_work_is_paid_for_as_a_whole() -> None:
    assert "sold for 21 days" in warned(advice(days="15"))["H2"][0]
    assert "167.3" in warned(advice(days="7"))["H2"][0]


def test_a_reservation_is_dated_ahead_only_where_ec2_takes_a_date() -> None:
    service = {"workload": "online-inference", **STEADY, **TWO_ZONES, "nodes": 4}

    def command(**changes: Any) -> str:
        choice = advice(**{**service, "type": ["g6e.48xlarge"], **changes}).choice
        assert choice is not None
        (line,) = choice.get
        return line

    assert "--start-date 2026-12-01T00:00:00Z" in command()
    assert "--start-date" not in command(starts="2026-11-25T00:00Z")
    assert "--start-date" not in command(starts="2027-04-01T00:00Z")
    assert "--start-date" not in command(type=["p5.48xlarge"])
    assert "--start-date" not in command(type=["inf2.48xlarge"])
    assert "--start-date" not in command(type=["g6.xlarge"])


def test_a_price_that_is_not_known_is_no_number() -> None:
    block = advice(**P4D | {"workload": "fine-tuning", "budget": 1.0})

    on_demand, spot = block.fallback
    assert block.choice is not None
    assert (block.choice.cost.low, block.choice.cost.high) == (None, None)
    assert on_demand.cost.high == pytest.approx(16 * 168 * 21.957642)
    assert on_demand.cost.low == on_demand.cost.high
    assert spot.cost.low == pytest.approx(0.1 * 16 * 168 * 21.957642)
    assert "2026-07-20" in on_demand.cost.formula
    assert advice(**STEADY).steps[0].cost.high is None
    assert "not known" in warned(block)["cost"][0]


def test_a_ratio_seen_once_is_shown_with_its_date_and_quality_and_never_as_a_price() -> None:
    choice = advice(type=["p5en.48xlarge"]).choice

    assert choice is not None
    assert choice.cost.high is None
    assert "0.66 of On-Demand (third parties" in choice.cost.formula
    assert "January 2026" in choice.cost.formula


def test_what_exceeds_the_budget_is_said() -> None:
    asked = {"workload": "development", **P4D, **STEADY, "utilisation": 50}
    month = 16 * 730 * 21.957642 / 2

    assert "cost" not in warned(advice(**asked, budget=month + 1))
    (text,) = warned(advice(**asked, budget=month - 1))["cost"]
    assert "a month" in text


def test_a_reservation_costs_as_much_when_it_is_not_used() -> None:
    service = {"workload": "online-inference", **P4D, **STEADY, "utilisation": 50}

    reserved, launched, _ = advice(**service).steps
    assert reserved.cost.high == pytest.approx(16 * 730 * 21.957642)
    assert launched.cost.high == pytest.approx(16 * 730 * 21.957642 / 2)


def test_quotas_are_those_of_the_plan_without_the_system_pool() -> None:
    answer = advice(**TWO_ZONES)

    quotas = {need.code: need.needed.value for need in answer.quotas}
    assert quotas["L-417A185B"] == 16 * 192
    assert quotas["L-DA6814F2"] == 1
    assert "L-1216C47A" not in quotas
    whole = plan_needs(plan.plan_cluster(config.loads(answer.cluster_file)))
    assert {need.code for need in whole.quotas} == {*quotas, "L-1216C47A"}


def test_what_has_to_be_filled_in_is_marked() -> None:
    lines = advice(**TWO_ZONES).fragment.splitlines()

    marked = {line.split(":")[0].strip() for line in lines if "# fill in" in line}
    assert marked == {"reservation", "starts", "ends", "zones"}
    assert sum("zones:" in line for line in lines) == 2
    assert [line for line in lines if "zones:" in line][1].endswith("]")


@pytest.mark.parametrize("provisioner", ["managed-node-group", "hyperpod"])
def test_what_is_not_bought_yet_never_reaches_an_account(provisioner: str, tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(advice(provisioner=provisioner).cluster_file)

    (stands_in,) = config.placeholders(config.read(file))
    assert stands_in.at[:2] == ("pools", 1)


def test_the_adviser_reads_no_clock() -> None:
    assert question(starts=None).starts == AT
    assert advice() == advice()
