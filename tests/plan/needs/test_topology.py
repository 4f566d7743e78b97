"""Parts of a cluster that a picture shows, and where they lie."""

from datetime import date
from pathlib import Path

import pytest

from tests.support.needs import KARPENTER, POD_RANGES, needs, planned, subnets
from tests.support.pools import CAPACITY_BLOCK, ODCR, SPOT, pool_document
from ultrascale.catalog.prices import catalog_prices
from ultrascale.plan.needs.report import plan_needs
from ultrascale.pricing.price_file import read_price_file


def test_a_pool_lies_in_the_subnets_that_its_nodes_take_addresses_of() -> None:
    found = needs(pool_document(purchase=ODCR, nodes={"max": 4}), network=POD_RANGES)

    parts = {part.pool: (part.subnets, part.reservation) for part in found.topology.pools}
    assert parts == {"system": ("private", None), "train": ("accelerated", ODCR["reservation"])}


def test_shards_are_one_pool_with_all_of_their_nodes() -> None:
    pool = pool_document(
        purchase={"option": "odcr", "reservation_tags": {"fleet": "p5"}},
        provisioner="karpenter",
        role="reserved",
        nodes={"static": 40},
        shards=3,
    )

    found = needs(pool, network=POD_RANGES, karpenter=KARPENTER)

    part = found.topology.pools[1]
    counts = (part.nodes_min, part.nodes_max, part.shards, part.nodes_of_shard)
    assert counts == (120, 120, 3, 40)
    assert part.reservation == "fleet=p5"


def test_a_subnet_has_its_ranges_and_the_addresses_that_are_left() -> None:
    own = subnets(needs(), "control-plane", "us-west-2a")

    figures = own.figures
    assert len(own.cidrs) == 1
    assert own.cidrs[0].endswith("/28")
    assert (figures["addresses"].value, figures["addresses_free"].value) == (11, 5)


def test_nodes_that_spot_falls_back_to_are_counted_apart() -> None:
    pool = pool_document(
        purchase=SPOT | {"fallback": "on-demand", "fallback_max": 2},
        provisioner="karpenter",
        nodes={"max": 10},
        efa="none",
    )

    part = needs(pool, karpenter=KARPENTER).topology.pools[1]

    assert (part.nodes_max, part.fallback_nodes) == (10, 2)


def test_the_cost_a_day_changes_where_a_window_begins_or_ends(tmp_path: Path) -> None:
    file = tmp_path / "prices.csv"
    file.write_text(
        "region,service,item,unit,price,currency,valid_on,source\n"
        "us-west-2,ec2-capacity-block,p5.48xlarge,hour,10,USD,2026-11-01,the offer\n"
    )
    prices = catalog_prices().under(read_price_file(file, date(2026, 11, 22)).prices)
    plan = planned(pool_document(purchase=CAPACITY_BLOCK, nodes={"max": 4}))

    found = plan_needs(plan, None, prices)

    window, steps = found.calendar[0], found.spend.steps
    assert [step.starts for step in steps[1:]] == [step.ends for step in steps[:-1]]
    assert [step.starts for step in steps[1:]] == [window.starts, window.ends]
    assert [step.usd_per_day.get("train") for step in steps] == [None, 4 * 24 * 10, None]
    for step in steps:
        assert step.total_usd_per_day == sum(step.usd_per_day.values())
        assert step.total_usd_per_day - step.usd_per_day.get("train", 0) >= 0


def test_a_window_of_no_known_price_changes_no_cost() -> None:
    found = needs(pool_document(purchase=CAPACITY_BLOCK, nodes={"max": 4}))

    (step,) = found.spend.steps
    window = found.calendar[0]
    assert step.starts is not None
    assert step.ends is not None
    assert step.starts < window.starts < window.ends < step.ends
    assert "train" in found.spend.without


def test_without_a_window_all_days_cost_the_same() -> None:
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
    other = naming or "karpenter"
    pools = [
        pool_document(name="burst", provisioner=other),
        pool_document(
            name="mixed", provisioner=other, purchase=SPOT | {"fallback": "on-demand"}, efa="none"
        ),
        pool_document(name="spot", provisioner=other, purchase=SPOT, efa="none"),
        pool_document(name="group"),
        pool_document(
            name="kept", provisioner=naming or "managed-node-group", role="reserved", purchase=ODCR
        ),
    ]
    section = None if naming == "auto-mode" else KARPENTER

    told = [each for each in needs(*pools, karpenter=section).remarks if "reservation" in each]

    why = (
        "Open capacity reservations: On-Demand nodes of burst, mixed stay out of them: pool kept "
        f"names a reservation, and {by} then launches into named ones alone"
    )
    assert told == ([why] if naming else [])
