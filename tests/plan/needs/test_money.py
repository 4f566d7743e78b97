"""The cost of a file's purchases beside the same fleet On-Demand."""

from typing import Any

import pytest

from tests.support.needs import KARPENTER, needs
from tests.support.pools import (
    CAPACITY_BLOCK,
    HYPERPOD_POOL,
    ODCR,
    ON_DEMAND,
    SPOT,
    TRAINING_PLAN,
    pool_document,
)
from ultrascale.catalog import prices
from ultrascale.plan.model import MoneyNeeds, PoolMoney

ZONE = "us-east-1a"
EAST: dict[str, Any] = {
    "region": "us-east-1",
    "network": {"vpc_cidr": "10.0.0.0/16", "zones": [ZONE, "us-east-1b"]},
}
P5 = 55.04


def money(*pools: dict[str, Any]) -> MoneyNeeds:
    found = (pool | {"zones": [ZONE]} for pool in pools)
    return needs(*found, **EAST, karpenter=KARPENTER).money


def of(found: MoneyNeeds, pool: str) -> PoolMoney:
    (own,) = (each for each in found.pools if each.pool == pool)
    return own


def test_a_block_beats_on_demand_below_the_price_of_its_usable_hours() -> None:
    """It is paid for to its end; its nodes are of use until 40 minutes before that."""
    own = of(money(pool_document(purchase=CAPACITY_BLOCK)), "train").figures

    usable = 1 - (40 / 60) / (7 * 24)
    assert own["on_demand_usd_per_hour"].value == pytest.approx(16 * P5)
    assert own["break_even_usd_per_node_hour"].value == pytest.approx(P5 * usable)
    assert own["half_usd_per_node_hour"].value == pytest.approx(P5 * usable / 2)


def test_hyperpod_is_compared_with_the_same_nodes_of_ec2() -> None:
    purchase = TRAINING_PLAN | {"plan": TRAINING_PLAN["plan"].replace("us-west-2", "us-east-1")}
    own = of(money(HYPERPOD_POOL | {"purchase": purchase}), "hp").figures

    assert own["on_demand_usd_per_hour"].value == pytest.approx(8 * P5)
    assert "as nodes of EC2" in own["on_demand_usd_per_hour"].formula
    assert own["break_even_usd_per_node_hour"].value == pytest.approx(P5 * (1 - 1 / (7 * 24)))


def test_a_reservation_is_never_said_to_save_anything() -> None:
    own = of(money(pool_document(purchase=ODCR)), "train")

    assert own.holds_when.startswith("never")
    assert set(own.figures) == {"on_demand_usd_per_hour"}


def test_a_pool_without_a_price_is_on_neither_side_of_the_comparison() -> None:
    """It would be bought for nothing, or cost nothing On-Demand; it is named instead."""
    found = money(pool_document(purchase=CAPACITY_BLOCK))

    assert found.figures["on_demand_usd_per_hour"].value == pytest.approx(16 * P5)
    assert found.figures["half_ratio"].value == 0.5
    assert found.figures["half_ratio"].without == ("system",)
    assert found.half.endswith("50 % of their On-Demand price, without system, of no known price")


def test_no_discount_is_made_up_where_no_price_is_known() -> None:
    found = needs(pool_document(purchase=CAPACITY_BLOCK)).money

    assert found.figures["half_ratio"].value is None
    assert found.half.endswith("is unknown: no On-Demand prices of us-west-2 are known")


@pytest.mark.parametrize(
    ("nodes", "kept", "ratio"),
    [
        pytest.param(8, 0, 0.5, id="all of it is Spot"),
        pytest.param(8, 2, (10 / 2 - 2) / 8, id="a fifth is On-Demand"),
        pytest.param(5, 5, 0.0, id="half is On-Demand"),
        pytest.param(2, 8, (10 / 2 - 8) / 2, id="most is On-Demand"),
        pytest.param(0, 8, None, id="all of it is On-Demand"),
    ],
)
def test_half_the_cost_holds_where_what_has_a_discount_pays_for_what_has_none(
    nodes: int, kept: int, ratio: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An On-Demand Capacity Reservation has none either."""

    def priced(region: str, names: tuple[str, ...]) -> dict[str, float]:
        return {name: 10.0 if name.startswith("p5") else 0.0 for name in names}

    monkeypatch.setattr(prices, "on_demand", priced)
    halves = [
        pool_document(name="own", purchase=ON_DEMAND, nodes={"max": -(-kept // 2)}),
        pool_document(name="reserved", purchase=ODCR, nodes={"max": kept // 2}),
    ]
    spot = pool_document(name="spot", purchase=SPOT, provisioner="karpenter", nodes={"max": nodes})
    found = money(*(each for each in halves if each["nodes"]["max"]), *([spot] if nodes else []))

    assert found.figures["on_demand_usd_per_hour"].value == (nodes + kept) * 10
    assert found.figures["at_on_demand_rates_usd_per_hour"].value == kept * 10
    assert found.figures["half_ratio"].value == (ratio if ratio is None else pytest.approx(ratio))
    if ratio is not None and ratio > 0:
        assert f"at most {100 * ratio:.0f} % of their On-Demand price" in found.half
    elif ratio is not None:
        assert found.half.startswith("the file cannot cost half")
    else:
        assert found.half.endswith("no pool with a price is bought below On-Demand rates")


def test_nodes_of_a_fallback_are_bought_at_the_on_demand_rate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A pool of all of its nodes has those too: at half a price for Spot it is not half of it."""

    def priced(region: str, names: tuple[str, ...]) -> dict[str, float]:
        return dict.fromkeys(names, 10.0)

    monkeypatch.setattr(prices, "on_demand", priced)
    spot = pool_document(
        purchase=SPOT | {"fallback": "on-demand", "fallback_max": 2},
        provisioner="karpenter",
        nodes={"max": 10},
    )
    found = money(spot)

    own = of(found, "train")
    kept = 4 + 2  # of the system pool, and of the fallback
    assert own.figures["fallback_usd_per_hour"].value == 2 * 10
    assert own.holds_when.endswith("; 2 of its nodes are On-Demand")
    assert found.figures["at_on_demand_rates_usd_per_hour"].value == kept * 10
    assert found.figures["half_ratio"].value == pytest.approx((14 / 2 - kept) / 8)


def test_where_there_are_no_prices_none_is_taken_from_another_region() -> None:
    found = needs(pool_document(purchase=ODCR)).money

    own = of(found, "train").figures["on_demand_usd_per_hour"]
    assert (own.value, own.formula) == (None, "no On-Demand prices of us-west-2 are known")
    assert found.figures["cluster_usd_per_hour"].value is None
    assert found.figures["tier_usd_per_hour"].value is None


def test_the_fee_of_eks_says_that_it_was_not_read_on_aws_own_page() -> None:
    fee = money(pool_document(purchase=ODCR)).figures["cluster_usd_per_hour"]

    assert fee.value == prices.CLUSTER_USD_PER_HOUR
    assert "as others printed it" in fee.formula
    assert fee.sources == prices.CONTROL_PLANE_SOURCES


def test_what_a_comparison_rests_on_is_said() -> None:
    assert any("no discount is assumed" in each for each in money().assumptions)
