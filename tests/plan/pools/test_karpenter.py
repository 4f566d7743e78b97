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
from tests.support.preflight_context import file_plan
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


def test_a_file_that_names_no_version_gets_no_karpenter() -> None:
    assert plan_for(karpenter=None) is None


def test_its_version_is_that_of_the_file() -> None:
    assert the_plan(launched(), karpenter={"version": "1.14.1"}).version == "1.14.1"


def test_the_crds_come_from_a_chart_of_their_own() -> None:
    plan = the_plan(launched())

    assert plan.crd_chart == "oci://public.ecr.aws/karpenter/karpenter-crd"
    assert plan.chart == "oci://public.ecr.aws/karpenter/karpenter"


def test_its_names_tell_clusters_and_regions_apart() -> None:
    plan = the_plan(launched(), name="vision")

    assert plan.node_role == "vision-node-us-west-2"
    assert plan.interruption_queue == "vision-karpenter"


@pytest.mark.parametrize(
    ("pools", "size"),
    [
        ([launched(nodes={"max": 200})], ("1", "1Gi")),
        ([launched(nodes={"max": 200}), launched(name="second", nodes={"max": 1})], ("2", "4Gi")),
        ([launched(nodes={"max": 500}, shards=3)], ("4", "16Gi")),
        ([pool_document(nodes={"max": 400})], ("1", "1Gi")),
    ],
    ids=["one pool", "two pools", "shards", "nodes that others launch"],
)
def test_it_is_sized_for_every_node_that_it_may_launch(
    pools: list[dict[str, Any]], size: tuple[str, str]
) -> None:
    plan = the_plan(*pools)

    assert (plan.cpu, plan.memory) == size


@pytest.mark.parametrize(
    ("pool", "static"),
    [
        (launched(nodes={"static": 4}, role="reserved"), True),
        (launched(nodes={"static": 4}, role="reserved", purchase=CAPACITY_BLOCK), True),
        (launched(), False),
        (pool_document(nodes={"static": 4}, role="reserved"), False),
    ],
    ids=["static", "static block", "dynamic", "static node group"],
)
def test_the_alpha_gate_for_static_pools_is_on_for_them_alone(
    pool: dict[str, Any], static: bool
) -> None:
    assert the_plan(pool).feature_gates["StaticCapacity"] is static


@pytest.mark.parametrize(
    ("pool", "told"),
    [
        (launched(), True),
        (launched(nodes={"static": 4}, role="reserved"), True),
        (launched(efa="none"), False),
        (pool_document(), False),
    ],
    ids=["efa", "static efa", "no efa", "node group"],
)
def test_the_alpha_gate_for_overlays_is_on_where_there_is_one(
    pool: dict[str, Any], told: bool
) -> None:
    assert the_plan(pool).feature_gates["NodeOverlay"] is told


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
    ids=[
        "odcr",
        "static, by tags",
        "block",
        "beside others",
        "on-demand",
        "fallback",
        "node group's odcr",
        "node group's block",
    ],
)
def test_the_gate_for_reservations_is_on_where_a_pool_of_karpenter_names_one(
    pools: list[dict[str, Any]], named: bool
) -> None:
    """While it is on, Karpenter keeps all other launches out of open reservations."""
    assert the_plan(*pools).feature_gates["ReservedCapacity"] is named


@pytest.mark.parametrize(
    ("file", "named"),
    [
        ("existing-estate", True),
        ("hybrid-hyperpod", False),
        ("llm-kueue", True),
        ("mixed-capacity", True),
        ("serving", False),
        ("ultra-100k", True),
    ],
)
def test_the_examples_that_name_a_reservation_have_its_gate(file: str, named: bool) -> None:
    plan = file_plan(file).nodes.karpenter
    assert plan is not None

    assert plan.feature_gates["ReservedCapacity"] is named


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
