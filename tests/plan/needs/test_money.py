"""The cost of a file's purchases beside the same fleet On-Demand."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.folders import ROOT
from tests.support.needs import KARPENTER, needs, planned, price, values
from tests.support.pools import (
    CAPACITY_BLOCK,
    HYPERPOD_POOL,
    ODCR,
    ON_DEMAND,
    SPOT,
    TRAINING_PLAN,
    pool_document,
)
from ultrascale.catalog.prices import PriceList, catalog_prices
from ultrascale.catalog.upgrades import STANDARD_SUPPORT_ENDS
from ultrascale.parts.backend.model import InstanceCapacity, Plan
from ultrascale.plan import load
from ultrascale.plan.model import MoneyItem, MoneyNeeds, PoolMoney
from ultrascale.plan.needs.report import plan_needs

ZONE = "us-east-1a"
EAST: dict[str, Any] = {
    "region": "us-east-1",
    "network": {"vpc_cidr": "10.0.0.0/16", "zones": [ZONE, "us-east-1b"]},
}
P5 = 55.04
VERSION = planned().control_plane.version
ENDS = STANDARD_SUPPORT_ENDS[VERSION]


# A Region of which no price is known.
UNPRICED: dict[str, Any] = {
    "region": "sa-east-1",
    "network": {"vpc_cidr": "10.0.0.0/16", "zones": ["sa-east-1a", "sa-east-1b"]},
}


def spot_pool(nodes: int, **purchase: Any) -> dict[str, Any]:
    launched = {"provisioner": "karpenter", "zones": [ZONE], "nodes": {"max": nodes}}
    return pool_document(**launched, purchase=SPOT | purchase)


def prices_of(**usd: float) -> PriceList:
    """Return prices of p5.48xlarge by service, On-Demand as `ec2`."""
    named = ((name.replace("_", "-"), each) for name, each in usd.items())
    return PriceList(price("us-east-1", name, "p5.48xlarge", each) for name, each in named)


def money(*pools: dict[str, Any], price_list: PriceList | None = None) -> MoneyNeeds:
    found = (pool | {"zones": [ZONE]} for pool in pools)
    return needs(*found, **EAST, karpenter=KARPENTER, price_list=price_list).money


def nodes_at(**usd: float) -> PriceList:
    """Return prices of the types in the file, by the first letter of their names."""
    return PriceList(
        price("us-east-1", "ec2", name, usd[name[0]]) for name in ("m7g.8xlarge", "p5.48xlarge")
    )


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
    known = PriceList([price("us-east-1", "ec2", "p5.48xlarge", P5)])
    found = money(pool_document(purchase=CAPACITY_BLOCK), price_list=known)

    assert found.figures["on_demand_usd_per_hour"].value == pytest.approx(16 * P5)
    assert found.figures["half_ratio"].value == 0.5
    assert found.figures["half_ratio"].without == ("system",)
    assert found.half.endswith("50 % of their On-Demand price, without system, of no known price")


# All of it is Spot; a fifth, half, most and all of it is On-Demand.
@pytest.mark.parametrize(
    ("nodes", "kept", "ratio"),
    [(8, 0, 0.5), (8, 2, (10 / 2 - 2) / 8), (5, 5, 0.0), (2, 8, (10 / 2 - 8) / 2), (0, 8, None)],
)
def test_half_the_cost_holds_where_what_has_a_discount_pays_for_what_has_none(
    nodes: int, kept: int, ratio: float | None
) -> None:
    """An On-Demand Capacity Reservation has none either."""
    halves = [
        pool_document(name="own", purchase=ON_DEMAND, nodes={"max": -(-kept // 2)}),
        pool_document(name="reserved", purchase=ODCR, nodes={"max": kept // 2}),
    ]
    pools = [each for each in halves if each["nodes"]["max"]]
    spot = [spot_pool(nodes) | {"name": "spot"}] if nodes else []
    found = money(*pools, *spot, price_list=nodes_at(m=0, p=10))
    assert found.figures["on_demand_usd_per_hour"].value == (nodes + kept) * 10
    assert found.figures["at_on_demand_rates_usd_per_hour"].value == kept * 10
    assert found.figures["half_ratio"].value == (ratio if ratio is None else pytest.approx(ratio))
    if ratio is not None and ratio > 0:
        assert f"at most {100 * ratio:.0f} % of their On-Demand price" in found.half
    elif ratio is not None:
        assert found.half.startswith("the file cannot cost half")
    else:
        assert found.half.endswith("no pool with a price is bought below On-Demand rates")


def test_nodes_of_a_fallback_are_bought_at_the_on_demand_rate() -> None:
    """A pool of all of its nodes has those too: at half a price for Spot it is not half of it."""
    spot = spot_pool(10, fallback="on-demand", fallback_max=2)
    found = money(spot, price_list=nodes_at(m=10, p=10))
    own = of(found, "train")
    kept = 4 + 2  # of the system pool, and of the fallback
    assert own.figures["fallback_usd_per_hour"].value == 2 * 10
    assert own.holds_when.endswith("; 2 of its nodes are On-Demand")
    assert found.figures["at_on_demand_rates_usd_per_hour"].value == kept * 10
    assert found.figures["half_ratio"].value == pytest.approx((14 / 2 - kept) / 8)
    # Nor are they counted at the Spot price.
    dated = price("us-east-1", "ec2", "p5.48xlarge", 50, date(2026, 10, 1))
    known = PriceList([dated]).under(prices_of(ec2_spot=20))
    paid = needs(spot, **EAST, karpenter=KARPENTER, price_list=known)
    usd = paid.pools[1].figures["usd_per_hour"]
    assert usd.value == 8 * 20 + 2 * 50
    assert " + 2 nodes x $50 of p5.48xlarge On-Demand" in usd.formula
    assert paid.money.oldest == date(2026, 10, 1)
    assert paid.spend.steps[0].usd_per_day["train"] == 24 * (8 * 20 + 2 * 50)


def test_where_there_are_no_prices_none_is_taken_from_another_region() -> None:
    pools = [pool_document(purchase=by, zones=["sa-east-1a"]) for by in (ODCR, CAPACITY_BLOCK)]
    found, block = (needs(pool, **UNPRICED).money for pool in pools)
    own = of(found, "train").figures["on_demand_usd_per_hour"]
    assert (own.value, own.formula) == (
        None,
        "no On-Demand price of p5.48xlarge in sa-east-1 is known",
    )
    assert found.figures["cluster_usd_per_hour"].value is None
    assert {"EKS cluster", "NAT gateways", "root volumes"} <= set(found.unpriced)
    assert found.oldest is None
    # No discount is made up either.
    assert block.figures["half_ratio"].value is None
    assert block.half.endswith("no On-Demand price of p5.48xlarge in sa-east-1 is known")
    assert any("no discount is assumed" in each for each in found.assumptions)


def test_the_fee_of_eks_says_that_it_was_not_read_on_aws_own_page() -> None:
    fee = money(pool_document(purchase=ODCR)).figures["cluster_usd_per_hour"]

    assert fee.value == 0.1
    assert fee.formula == "a cluster, in us-east-1 on 2026-04-01 by cloudburn.io"
    assert "https://aws.amazon.com/eks/pricing/" in fee.sources


def item(found: MoneyNeeds, name: str) -> MoneyItem:
    (own,) = (each for each in found.items if each.name == name)
    return own


def test_what_stands_beside_nodes_is_priced_each_with_formula_day_and_source() -> None:
    """Five nodes of 100 GiB, two zones: counted by hand."""
    found = money(pool_document(purchase=ODCR, nodes={"max": 1}))

    gateways, volumes = item(found, "NAT gateways"), item(found, "root volumes")
    assert gateways.usd_per_hour.value == pytest.approx(2 * 0.045)
    assert gateways.usd_per_hour.formula == ("2 gateways x $0.045 in us-east-1 on 2026-08-21")
    assert volumes.quantity is not None
    assert volumes.usd_per_month.value == pytest.approx(volumes.quantity * 0.08)
    assert all(each.source and each.valid_on for each in found.items)
    standing = [each for each in found.items if each.kind == "baseline"]
    assert found.figures["standing_usd_per_hour"].value == pytest.approx(
        sum(each.usd_per_hour.value or 0 for each in standing)
    )
    assert found.figures["usd_per_hour"].value == pytest.approx(
        P5 + 4 * 1.3056 + sum(each.usd_per_hour.value or 0 for each in standing)
    )


def test_the_load_balancer_of_the_front_stands_beside_nodes() -> None:
    """One on the internet has an address to pay for in each of the two zones."""
    arn = "arn:aws:acm:us-east-1:111122223333:certificate/" + "1" * 36
    public = {"exposure": "internet", "certificate": arn, "api_keys": "keys"}
    public |= {"allowed_cidrs": ["192.0.2.0/24"]}

    def of_front(front: dict[str, Any]) -> float:
        plan = planned(**EAST, karpenter=KARPENTER, serving={"front": front})
        items = plan_needs(plan).money.items
        return sum(each.usd_per_hour.value or 0 for each in items if "of the front" in each.name)

    assert of_front({"exposure": "cluster"}) == 0
    assert of_front({}) == pytest.approx(0.0225)
    assert of_front(public) == pytest.approx(0.0325)


def test_usage_is_told_by_its_unit_price_and_is_in_no_sum_of_an_hour() -> None:
    found = money(pool_document(purchase=ODCR))

    data = item(found, "data through NAT gateways")
    assert (data.kind, data.quantity, data.unit, data.unit_price) == ("usage", None, "GB", 0.045)
    assert data.usd_per_hour.value is None
    audit = item(found, "audit log")
    assert audit.quantity
    assert found.figures["usage_usd_per_month"].value is not None


def test_a_users_price_goes_before_that_of_the_catalog() -> None:
    """A negotiated discount is in no public table."""
    gateway = price("us-east-1", "vpc", "nat-gateway", 0.01)
    own = prices_of(ec2=30).under(PriceList([gateway]))
    found = money(pool_document(purchase=ODCR), price_list=catalog_prices().under(own))
    figure = of(found, "train").figures["on_demand_usd_per_hour"]
    assert figure.value == 16 * 30
    assert figure.formula.endswith("$30 of p5.48xlarge On-Demand in us-east-1 on 2026-11-01")
    assert figure.sources == ("contract",)
    assert item(found, "NAT gateways").usd_per_hour.value == pytest.approx(0.02)
    assert found.newest == date(2026, 11, 1)


def test_a_block_or_spot_is_summed_where_the_user_states_its_price() -> None:
    own = catalog_prices().under(prices_of(ec2_capacity_block=31.5, ec2_spot=20))
    block = pool_document(name="block", purchase=CAPACITY_BLOCK, nodes={"max": 2}, zones=[ZONE])
    spot = spot_pool(2) | {"name": "spot"}
    found = needs(block, spot, **EAST, karpenter=KARPENTER, price_list=own)
    assert [pool.figures["usd_per_hour"].value for pool in found.pools][1:] == [2 * 31.5, 2 * 20]


def test_a_block_of_a_known_price_is_in_the_sum_and_not_told_as_left_out_of_it() -> None:
    """Its month has no more hours than its window, a week."""
    known = catalog_prices().under(prices_of(ec2_capacity_block=31.5))
    block = pool_document(purchase=CAPACITY_BLOCK, nodes={"max": 2}, zones=[ZONE])
    found = needs(block, **EAST, price_list=known)
    alone = needs(**EAST, price_list=known).totals["usd_per_month"].value or 0
    answer, without = found.answer.money, needs(block, **EAST).answer.money
    assert (answer.paid_before, answer.unpriced) == ((), ())
    assert without.paid_before == ("train",)
    week = 2 * 31.5 * 7 * 24
    assert values(found, "train")["usd_per_month"] == pytest.approx(week)
    assert found.totals["usd_per_month"].value == pytest.approx(week + alone)
    assert (answer.usd_per_month.value or 0) < 730 * (answer.usd_per_hour.value or 0)


def test_a_block_costs_its_fee_and_no_rate_of_a_list() -> None:
    known = catalog_prices().under(prices_of(ec2_capacity_block=31.5))
    block = pool_document(purchase=CAPACITY_BLOCK | {"fee": 26_880.5}, nodes={"max": 2})
    found = needs(block | {"zones": [ZONE]}, **EAST, price_list=known)
    assert values(found, "train")["usd_per_month"] == pytest.approx(26_880.5)
    daily = max(step.usd_per_day.get("train", 0) for step in found.spend.steps)
    assert daily == pytest.approx(26_880.5 / 7)
    assert found.answer.money.paid_before == ()


def test_volumes_of_a_window_cost_nothing_outside_of_it() -> None:
    """A week of a block has a week of its nodes' volumes."""
    block = pool_document(purchase=CAPACITY_BLOCK, nodes={"max": 2}, zones=[ZONE])
    found, spend = money(block), needs(block, **EAST).spend
    own = item(found, "root volumes of train")
    hourly = own.usd_per_hour.value or 0
    assert (own.pool, item(found, "root volumes").pool) == ("train", None)
    assert own.usd_per_month.value == pytest.approx(7 * 24 * hourly)
    before, during, after = spend.steps
    assert own.name not in before.usd_per_day
    assert during.usd_per_day[own.name] == pytest.approx(24 * hourly)
    assert after.total_usd_per_day == spend.baseline_usd_per_day + after.usd_per_day["system"]


def test_the_fee_of_auto_mode_is_that_of_the_dearest_type() -> None:
    usd = {"p5.48xlarge": 3, "p5e.48xlarge": 5}
    own = PriceList(price("us-east-1", "eks", f"auto-mode/{name}", usd[name]) for name in usd)
    launched = {"provisioner": "auto-mode", "purchase": ON_DEMAND, "nodes": {"max": 2}}
    pool = pool_document(**launched, instance_types=[*usd], efa="none", zones=[ZONE])
    fee = item(needs(pool, **EAST, price_list=own).money, "EKS Auto Mode fee of train")
    assert (fee.item, fee.usd_per_hour.value) == ("auto-mode/p5e.48xlarge", 2 * 5)


def test_extended_support_is_paid_for_once_standard_support_is_over() -> None:
    def found(at: datetime | None) -> tuple[float | None, str]:
        answer = needs(**EAST, at=at)
        own = [each for each in answer.money.items if each.item == "extended-support"]
        return (own[0].usd_per_hour.value if own else None), answer.answer.money.excluded[-1]

    later = f"extended support of Kubernetes {VERSION}, from {ENDS} on"
    midnight = datetime(ENDS.year, ENDS.month, ENDS.day, tzinfo=UTC)
    assert found(None) == (None, later)
    assert found(midnight - timedelta(minutes=1)) == (None, later)
    usd, excluded = found(midnight)
    assert usd == 0.5
    assert "extended support" not in excluded


def test_an_instance_of_a_database_is_priced_with_its_storage() -> None:
    """Its class can be priced, and a storage without a price is told beside the sum."""
    plan = load(ROOT / "clusters" / "hybrid-hyperpod.yaml")
    backend = plan.part(Plan)
    assert backend is not None
    assert backend.database is not None
    capacity = InstanceCapacity(
        instance_class="db.m6g.large", multi_az=True, storage_gib=100, max_storage_gib=1_000
    )
    database = replace(backend.database, capacity=capacity)
    others = (part for part in plan.parts if part is not backend)
    own = replace(plan, parts=(*others, replace(backend, database=database)))
    known = PriceList([price(plan.region, "rds", "db.m6g.large", 0.159)])

    found = plan_needs(own, None, known)
    serverless = plan_needs(plan, None, known)

    items = {each.name: each for each in found.money.items}
    assert items["backend database"].usd_per_hour.value == pytest.approx(2 * 0.159)
    assert items["storage of backend database"].quantity == 200
    assert "storage of backend database" in found.answer.money.unpriced
    assert "storage of backend database" in serverless.answer.money.excluded
