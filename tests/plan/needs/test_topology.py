"""Parts of a cluster that a picture shows, and where they lie."""

import pytest

from tests.support.needs import KARPENTER, POD_RANGES, needs, planned, price, subnets
from tests.support.pools import CAPACITY_BLOCK, ODCR, SPOT, pool_document
from ultrascale.catalog.prices import PriceList, catalog_prices
from ultrascale.plan.needs.report import plan_needs


def test_a_pool_lies_in_the_subnets_that_its_nodes_take_addresses_of() -> None:
    found = needs(pool_document(purchase=ODCR, nodes={"max": 4}), network=POD_RANGES)
    parts = {part.pool: (part.subnets, part.reservation) for part in found.topology.pools}
    assert parts == {"system": ("private", None), "train": ("accelerated", ODCR["reservation"])}
    own = subnets(needs(), "control-plane", "us-west-2a")
    (cidr,) = own.cidrs
    assert cidr.endswith("/28")
    assert [own.figures[key].value for key in ("addresses", "addresses_free")] == [11, 5]


def test_nodes_that_spot_falls_back_to_are_counted_apart() -> None:
    fallback = SPOT | {"fallback": "on-demand", "fallback_max": 2}
    launched = {"provisioner": "karpenter", "nodes": {"max": 10}, "efa": "none"}
    found = needs(pool_document(purchase=fallback, **launched), karpenter=KARPENTER)
    part = found.topology.pools[1]
    assert (part.nodes_max, part.fallback_nodes) == (10, 2)


def test_the_cost_a_day_changes_where_a_window_begins_or_ends() -> None:
    block = price("us-west-2", "ec2-capacity-block", "p5.48xlarge", 10)
    known = catalog_prices().under(PriceList([block]))
    plan = planned(pool_document(purchase=CAPACITY_BLOCK, nodes={"max": 4}))
    found = plan_needs(plan, None, known)
    window, steps = found.calendar[0], found.spend.steps
    assert [step.starts for step in steps[1:]] == [step.ends for step in steps[:-1]]
    assert [step.starts for step in steps[1:]] == [window.starts, window.ends]
    assert [step.usd_per_day.get("train") for step in steps] == [None, 4 * 24 * 10, None]
    for step in steps:
        assert step.total_usd_per_day == sum(step.usd_per_day.values())
        assert step.total_usd_per_day - step.usd_per_day.get("train", 0) >= 0
    # A window of no known price changes no cost, and without a window all days cost the same.
    unpriced = plan_needs(plan).spend
    (step,) = unpriced.steps
    assert step.starts is not None
    assert step.ends is not None
    assert step.starts < window.starts < window.ends < step.ends
    assert "train" in unpriced.without
    (step,) = needs().spend.steps
    assert (step.starts, step.ends) == (None, None)


def test_a_decision_that_concerns_several_pools_is_told_once() -> None:
    pools = [
        pool_document(name=name, purchase=ODCR | {"reservation": f"cr-0123456789abcdef{index}"})
        for index, name in enumerate(("one", "two"))
    ]

    told = [(each.subjects, each.choice) for each in needs(*pools).decisions]

    assert (("one", "two"), "an update takes a node away before it starts its successor") in told
    assert len({choice for _, choice in told}) >= len(told) - 3


@pytest.mark.parametrize(
    ("naming", "by"), [("karpenter", "Karpenter"), ("auto-mode", "EKS Auto Mode"), (None, "")]
)
def test_pools_beside_one_that_names_a_reservation_stay_out_of_open_ones(
    naming: str | None, by: str
) -> None:
    spot = {"provisioner": naming or "karpenter", "efa": "none", "purchase": SPOT}
    mixed = spot | {"purchase": SPOT | {"fallback": "on-demand"}}
    kept = {"provisioner": naming or "managed-node-group", "role": "reserved", "purchase": ODCR}
    pools = [
        pool_document(name="burst", provisioner=naming or "karpenter"),
        pool_document(name="mixed", **mixed),
        pool_document(name="spot", **spot),
        pool_document(name="group"),
        pool_document(name="kept", **kept),
    ]
    section = None if naming == "auto-mode" else KARPENTER
    told = [each for each in needs(*pools, karpenter=section).remarks if "reservation" in each]
    why = (
        "Open capacity reservations: On-Demand nodes of burst, mixed stay out of them: pool kept "
        f"names a reservation, and {by} then launches into named ones alone"
    )
    assert told == ([why] if naming else [])
