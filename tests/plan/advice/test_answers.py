"""Answers of the adviser: sizes, hours, money, quotas and values to fill in."""

import math
from pathlib import Path
from typing import Any

import pytest

from tests.support.advice_questions import P4D, STEADY, TWO_ZONES, G, advice, warned
from ultrascale import config, plan
from ultrascale.plan.advice import Advice
from ultrascale.plan.model import NodePoolPlan
from ultrascale.plan.needs.report import plan_needs


def _node_pools(answer: Advice) -> tuple[NodePoolPlan, ...]:
    return plan.plan_cluster(config.loads(answer.cluster_file)).nodes.node_pools


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


# A block, a training plan, by the week, half a day, and at another time of day.
@pytest.mark.parametrize(
    ("changes", "hours"),
    [
        ({}, 7 * 24 - 40 / 60),
        ({"provisioner": "hyperpod"}, 7 * 24 - 1),
        ({"days": "15"}, 21 * 24 - 40 / 60),
        ({"days": "0.5"}, 24 - 40 / 60),
        ({"starts": "2026-12-01T12:30Z", "until": "2026-12-01T13:00Z"}, 8 * 24 - 1 - 40 / 60),
    ],
)
def test_the_hours_of_a_window_are_those_that_work_can_use(
    changes: dict[str, Any], hours: float
) -> None:
    choice = advice(**changes).choice
    assert choice is not None
    assert choice.usable_hours is not None
    assert choice.usable_hours.value == pytest.approx(hours)


def test_a_reservation_is_dated_ahead_only_where_ec2_takes_a_date() -> None:
    service = {"workload": "online-inference", **STEADY, **TWO_ZONES, "nodes": 4}

    def command(**changes: Any) -> str:
        choice = advice(**{**service, "type": ["g6e.48xlarge"], **changes}).choice
        assert choice is not None
        (line,) = choice.get
        return line

    assert (
        "--availability-zone us-east-1a --instance-platform Linux/UNIX --instance-match-criteria "
        "targeted --delivery-preference incremental --start-date 2026-12-01T00:00:00Z "
        "--commitment-duration 1209600"
    ) in command()
    assert "--commitment-duration 2592000" in command(days="30")
    assert "--availability-zone-id use1-az4" in command(zone=["use1-az4"])
    for at in ("2026-11-25T00:00Z", "2027-04-01T00:00Z"):
        assert "--start-date" not in command(starts=at)
    for name in ("p5.48xlarge", "inf2.48xlarge", "g6.xlarge"):
        assert "--start-date" not in command(type=[name])


def test_a_price_that_is_not_known_is_no_number() -> None:
    block = advice(**P4D | {"workload": "fine-tuning", "budget": 1.0})
    on_demand, spot = block.fallback
    assert block.choice is not None
    assert (block.choice.cost.low, block.choice.cost.high) == (None, None)
    assert on_demand.cost.high == pytest.approx(16 * 168 * 21.957642)
    assert on_demand.cost.low == on_demand.cost.high
    assert spot.cost.low == pytest.approx(0.1 * 16 * 168 * 21.957642)
    assert "2026-07-20" in on_demand.cost.formula
    assert advice(**STEADY | {"type": ["g6e.48xlarge"]}).steps[0].cost.high is None
    assert "not known" in warned(block)["cost"][0]
    # A ratio that was seen once is shown with its date and quality, and never as a price.
    seen = advice(type=["p5en.48xlarge"]).choice
    assert seen is not None
    assert seen.cost.high is None
    assert "0.66 of On-Demand (third parties" in seen.cost.formula
    assert "January 2026" in seen.cost.formula
    # A block that is longer than the work is paid for as a whole.
    assert "sold for 21 days" in warned(advice(days="15"))["H2"][0]
    assert "167.3" in warned(advice(days="7"))["H2"][0]


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


def test_a_reservation_with_a_start_date_is_paid_for_two_weeks_at_least() -> None:
    week = {"workload": "fine-tuning", "type": ["g6e.48xlarge"], **TWO_ZONES, "coupled": False}

    def cost(**changes: Any) -> float | None:
        return advice(**{**week, **changes}).steps[0].cost.high

    assert cost() == pytest.approx(16 * 14 * 24 * 30.13118)
    assert cost(days="30") == pytest.approx(16 * 30 * 24 * 30.13118)
    assert cost(starts="2026-11-24T00:00Z") == pytest.approx(16 * 7 * 24 * 30.13118)


@pytest.mark.parametrize("nodes", [16, 1])
def test_spot_is_had_for_every_node_and_so_is_its_fallback(nodes: int) -> None:
    answer = advice(workload="batch-inference", **G, nodes=nodes)
    pool = config.loads(answer.cluster_file).pools[1]
    node_pools = {each.name: each.max_nodes for each in _node_pools(answer)}
    assert answer.steps[0].nodes == nodes
    assert [*node_pools.values()] == [nodes, nodes]
    assert pool.nodes.max == 2 * nodes
    assert f"{nodes} of Spot" in warned(answer)["P5"][0]
    assert "fallback: on-demand" in answer.fragment


def test_what_only_an_account_team_can_give_is_asked_of_it_first() -> None:
    choice = advice(**STEADY, horizon_days=400).choice

    assert choice is not None
    assert choice.get[0].startswith("ask your AWS account team for 16 of p5.48xlarge")
    assert "Savings Plan" in choice.get[0]
    assert choice.get[1].startswith("aws ec2 create-capacity-reservation")


def test_the_fee_of_auto_mode_is_no_part_of_a_cost_and_named() -> None:
    launched = advice(**P4D, **STEADY, provisioner="auto-mode").steps[0]

    assert launched.judged.candidate.provisioner == "auto-mode"
    assert "without the fee of EKS Auto Mode" in launched.cost.formula


@pytest.mark.parametrize(
    ("changes", "code", "text"),
    [
        ({"provisioner": "auto-mode", "days": "22"}, "H5", "stops with the first"),
        ({"workload": "online-inference", **P4D, **STEADY}, "P3", "all of it is in us-east-1a"),
        (
            {"workload": "fine-tuning"},
            "check",
            "fine-tuning-on-demand.provisioner: pods that fit here and on fine-tuning-spot",
        ),
        (
            {"workload": "online-inference", **P4D, **STEADY},
            "fallback",
            "Spot is launched before On-Demand",
        ),
    ],
)
def test_what_the_pools_do_otherwise_than_one_might_think_is_said(
    changes: dict[str, Any], code: str, text: str
) -> None:
    assert any(text in line for line in warned(advice(**changes))[code])
    assert code not in warned(advice())


def test_the_fragment_says_what_it_wants_of_the_rest_of_the_file() -> None:
    first = advice(workload="batch-inference", **G).fragment.splitlines()[0]

    assert first.startswith("# the cluster file says besides: network.zones with us-east-1a, us-")
    assert "karpenter.version" in first
    assert "karpenter" not in advice().fragment


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
