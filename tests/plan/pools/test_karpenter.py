"""Karpenter: sized for what it may launch, with the gates that its pools need."""

from typing import Any

import pytest

from tests.support.pools import (
    CAPACITY_BLOCK,
    ODCR,
    ON_DEMAND,
    SPOT,
    SYSTEM_POOL,
    make_cluster,
    pool_document,
    shards_of,
)
from ultrascale.catalog import karpenter as facts
from ultrascale.plan.model import KarpenterPlan
from ultrascale.plan.pools.karpenter import plan_karpenter
from ultrascale.plan.scale import plan_scale

KARPENTER = {"version": "1.15.2"}
ODCR_BY_TAGS = {"option": "odcr", "reservation_tags": {"team": "training"}}
# Its largest controllers need larger nodes than those of other tests.
LARGE_SYSTEM_POOL = SYSTEM_POOL | {"instance_types": ["m7g.8xlarge"]}


def launched(**changes: Any) -> dict[str, Any]:
    """Return a pool that Karpenter launches, with ``changes``."""
    return pool_document(provisioner="karpenter", **changes)


def plan_for(*pools: dict[str, Any], **changes: Any) -> KarpenterPlan | None:
    """Return the plan of Karpenter in a cluster with ``pools``."""
    changes = {"karpenter": KARPENTER, "pools": [LARGE_SYSTEM_POOL, *pools]} | changes
    cluster = make_cluster(**changes)
    return plan_karpenter(cluster, shards_of(cluster), plan_scale(cluster))


def the_plan(*pools: dict[str, Any], **changes: Any) -> KarpenterPlan:
    plan = plan_for(*pools, **changes)
    assert plan is not None
    return plan


def test_a_file_that_names_a_version_gets_that_karpenter() -> None:
    plan = the_plan(launched(), name="vision", karpenter={"version": "1.14.1"})
    assert plan.version == "1.14.1"
    assert plan.crd_chart == "oci://public.ecr.aws/karpenter/karpenter-crd"
    assert plan.chart == "oci://public.ecr.aws/karpenter/karpenter"
    # Its names tell clusters and Regions apart.
    assert plan.node_role == "vision-node-us-west-2"
    assert plan.interruption_queue == "vision-karpenter"
    assert plan_for(karpenter=None) is None


@pytest.mark.parametrize(
    ("pools", "size"),
    [
        ([launched(nodes={"max": 200})], ("1", "1Gi")),
        ([launched(nodes={"max": 200}), launched(name="second", nodes={"max": 1})], ("2", "4Gi")),
        ([launched(nodes={"max": 500}, shards=3)], ("4", "16Gi")),
        # Others launch these nodes.
        ([pool_document(nodes={"max": 400})], ("1", "1Gi")),
    ],
)
def test_it_is_sized_for_every_node_that_it_may_launch(
    pools: list[dict[str, Any]], size: tuple[str, str]
) -> None:
    plan = the_plan(*pools)
    assert (plan.cpu, plan.memory) == size


@pytest.mark.parametrize(
    ("pool", "static", "overlay"),
    [
        (launched(nodes={"static": 4}, role="reserved"), True, True),
        (launched(nodes={"static": 4}, role="reserved", purchase=CAPACITY_BLOCK), True, True),
        (launched(), False, True),
        (launched(efa="none"), False, False),
        (pool_document(nodes={"static": 4}, role="reserved"), False, False),
    ],
)
def test_alpha_gates_are_on_where_static_pools_or_overlays_need_them(
    pool: dict[str, Any], static: bool, overlay: bool
) -> None:
    gates = the_plan(pool).feature_gates
    assert (gates["StaticCapacity"], gates["NodeOverlay"]) == (static, overlay)


@pytest.mark.parametrize(
    ("pools", "named"),
    [
        ([launched(role="reserved", purchase=ODCR)], True),
        ([launched(role="reserved", purchase=ODCR_BY_TAGS, nodes={"static": 4})], True),
        ([launched(role="reserved", purchase=CAPACITY_BLOCK)], True),
        ([launched(), launched(name="kept", role="reserved", purchase=ODCR)], True),
        ([launched(role="burst", purchase=ON_DEMAND)], False),
        ([launched(role="burst", purchase=SPOT | {"fallback": "on-demand"})], False),
        ([launched(), pool_document(name="kept", role="reserved", purchase=ODCR)], False),
        ([launched(), pool_document(name="kept", purchase=CAPACITY_BLOCK)], False),
    ],
)
def test_the_gate_for_reservations_is_on_where_a_pool_of_karpenter_names_one(
    pools: list[dict[str, Any]], named: bool
) -> None:
    """While it is on, Karpenter keeps all other launches out of open reservations."""
    assert the_plan(*pools).feature_gates["ReservedCapacity"] is named


def test_a_new_version_changes_no_gate_by_its_defaults() -> None:
    gates = the_plan(launched(efa="none")).feature_gates

    assert gates == dict.fromkeys(facts.FEATURE_GATES, False)


@pytest.mark.parametrize(
    ("scheduler", "idle", "longest"),
    [("none", "1s", "10s"), ("volcano", "5s", "30s"), ("kueue", "5s", "30s")],
)
def test_a_gang_is_waited_for(scheduler: str, idle: str, longest: str) -> None:
    plan = the_plan(launched(), scheduling={"queueing": scheduler})

    assert (plan.batch_idle_duration, plan.batch_max_duration) == (idle, longest)
