"""Cost of a service and of its tokens: who decides by it must not decide by half of the nodes."""

from typing import Any

import pytest

from tests.support.needs import KARPENTER, SYSTEM, price
from tests.support.pools import ON_DEMAND, SPOT, make_cluster, pool_document
from ultrascale.catalog.prices import PriceList
from ultrascale.plan.cluster import assemble
from ultrascale.plan.model import ServiceNeeds
from ultrascale.plan.needs.services import plan_service_needs
from ultrascale.plan.services import plan_services

REGION = "us-west-2"
FOUR = {"name": "four", "instance_types": ["g6e.12xlarge"]}
EIGHT = {"name": "eight", "instance_types": ["g6e.48xlarge"]}
PRICES = PriceList(
    [
        price(REGION, "ec2", "g6e.12xlarge", 10.0),
        price(REGION, "ec2", "g6e.48xlarge", 30.0),
        price(REGION, "ec2-spot", "g6e.12xlarge", 4.0),
        price(REGION, "eks", "auto-mode/g6e.12xlarge", 1.2),
    ]
)


def pool(kind: dict[str, Any], **changes: Any) -> dict[str, Any]:
    growing = {"provisioner": "karpenter", "purchase": ON_DEMAND, "efa": "none"}
    return pool_document(**growing, nodes={"max": 8}) | kind | changes


def service(
    *pools: dict[str, Any], price_list: PriceList = PRICES, karpenter: Any = KARPENTER, **keys: Any
) -> ServiceNeeds:
    """Return the needs of the only service of a cluster of ``pools``."""
    job = {"kind": "service", "image": "docker.io/vllm/vllm-openai:v0.33.0", **keys}
    cluster = make_cluster(pools=[SYSTEM, *pools], jobs={"chat": job}, karpenter=karpenter)
    (found,) = plan_service_needs(assemble(cluster), price_list)
    return found


def values(found: ServiceNeeds, *keys: str) -> list[float | None]:
    return [found.figures[key].value for key in keys]


def both(found: ServiceNeeds, key: str) -> list[float | None]:
    return values(found, f"{key}_least", f"{key}_most")


SCALED = {"metric": "waiting", "target": 5, "min": 1, "max": 6}


def test_pods_that_share_a_node_pay_for_the_whole_one_while_nothing_else_is_on_it() -> None:
    found = service(
        pool(FOUR), resources={"gpu": 1}, autoscale=SCALED, tokens_per_second=1000, pool="four"
    )

    assert both(found, "replicas") == [1, 6]
    assert both(found, "nodes") == [1, 2]
    assert both(found, "usd_per_hour") == [10, 20]
    # 10 dollars for 3.6 million tokens, and 20 for 21.6 million.
    assert both(found, "usd_per_million_tokens") == pytest.approx([10 / 3.6, 20 / 21.6])
    assert values(found, "usd_per_hour_share") == pytest.approx([2.5], rel=0.01)
    assert values(found, "share") == pytest.approx([0.25], rel=0.01)


ZONES = ["us-west-2a", "us-west-2b", "us-west-2c"]


@pytest.mark.parametrize(
    ("replicas", "changes", "expected"),
    [
        (1, {}, 1),
        (2, {}, 2),
        (4, {}, 3),
        # Five, four and four pods.
        (13, {}, 4),
        (13, {"nodes": {"max": 2}}, 4),
        (4, {"nodes": {"max": 2}}, 2),
        (4, {"role": "reserved", "nodes": {"static": 8}}, 1),
        (4, {"provisioner": "managed-node-group"}, 1),
        (4, {"provisioner": "auto-mode"}, 3),
    ],
)
def test_each_zone_has_nodes_of_its_own_where_pods_prefer_several_as_nodes_launch(
    replicas: int, changes: dict[str, Any], expected: int
) -> None:
    found = service(
        pool(FOUR, zones=ZONES, **changes),
        resources={"gpu": 1},
        replicas=replicas,
        pool="four",
        karpenter=None if changes.get("provisioner") else KARPENTER,
    )

    assert both(found, "nodes") == [expected, expected]
    words = found.figures["nodes_least"].formula
    assert words.endswith("zones") == (expected > 1)


def test_a_very_large_fleet_launches_nodes_without_regard_to_zones() -> None:
    job = {"kind": "service", "image": "docker.io/vllm/vllm-openai:v0.33.0", "pool": "four"}
    cluster = make_cluster(
        pools=[SYSTEM, pool(FOUR, zones=ZONES)],
        jobs={"chat": job | {"resources": {"gpu": 1}, "replicas": 4}},
        karpenter=KARPENTER,
    )
    pools = assemble(cluster).all_pools

    for ignores, expected in ((True, 1), (False, 3)):
        (chat,) = plan_services(
            cluster, pools, claims=(), queueing=None, ignores_preferences=ignores
        )
        assert {part.zones for part in chat.parts} == {expected}


def test_a_replica_over_several_nodes_pays_for_all_of_them() -> None:
    found = service(
        pool(EIGHT), nodes=2, replicas=3, tokens_per_second=500, pool="eight", port=8000
    )

    assert both(found, "nodes") == [6, 6]
    assert both(found, "usd_per_million_tokens") == pytest.approx([180 / 5.4, 180 / 5.4])


def test_the_dearest_node_that_it_may_land_on_counts() -> None:
    """A part of a larger node may cost more than a whole smaller one."""
    found = service(pool(FOUR), pool(EIGHT), resources={"gpu": 4}, capacity="on-demand")
    assert found.pools == ("four", "eight")
    assert values(found, "usd_per_hour_share") == pytest.approx([15], rel=0.01)
    assert "g6e.48xlarge" in found.figures["usd_per_hour_least"].formula
    # A pod that takes all CPUs leaves no room for another.
    full = service(pool(FOUR), resources={"gpu": 1, "cpu": "40"}, replicas=4, pool="four")
    assert both(full, "nodes") == [4, 4]
    assert (full.figures["share"].value or 0) > 0.8


def test_money_is_of_the_purchase_and_of_auto_modes_fee() -> None:
    on_demand = PriceList([price(REGION, "ec2", "g6e.12xlarge", 10.0)])
    own: dict[str, Any] = {"replicas": 1, "pool": "four"}
    spot = service(pool(FOUR, purchase=SPOT), **own)
    auto = service(pool(FOUR, provisioner="auto-mode"), karpenter=None, **own)
    capped = service(pool(FOUR, purchase=SPOT), price_list=on_demand, **own)
    assert (values(spot, "usd_per_hour_least"), spot.is_bound) == ([4], False)
    # Without a price of Spot it is the most that Spot costs.
    assert (values(capped, "usd_per_hour_least"), capped.is_bound) == ([10], True)
    assert values(auto, "usd_per_hour_least") == [11.2]


def test_what_nobody_stated_has_no_price_and_says_what_to_state() -> None:
    unstated = service(pool(FOUR), pool="four").figures["usd_per_million_tokens_least"]
    unpriced = service(pool(FOUR), pool="four", tokens_per_second=1, price_list=PriceList([]))
    figure = unpriced.figures["usd_per_million_tokens_most"]
    assert unstated.value is figure.value is None
    assert unstated.formula == "tokens_per_second of the service is not stated"
    assert figure.formula == "no On-Demand price of g6e.12xlarge in us-west-2 is known"
