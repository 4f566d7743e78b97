"""Scaling of node groups by pods that wait, and draining before EC2 takes a node."""

from typing import Any

import pytest

from tests.support.pools import (
    CAPACITY_BLOCK,
    NEURON_POOL,
    ODCR,
    ON_DEMAND,
    SYSTEM_POOL,
    make_document,
    pool_document,
)
from tests.support.scaling_plans import FIXED, GPU_SPOT, SELF_MANAGED, autoscaler, planned
from ultrascale.catalog import versions
from ultrascale.errors import CatalogError
from ultrascale.plan.model import TerminationHandlerPlan
from ultrascale.plan.pools.scaling import plan_termination_handler

BLOCK = pool_document(purchase=CAPACITY_BLOCK)


def handler(*pools: dict[str, Any]) -> TerminationHandlerPlan | None:
    return plan_termination_handler(*planned(FIXED, *pools))


# Groups that it does not scale would ask for a block before its start.
SCALED: list[tuple[list[dict[str, Any]], set[str]]] = [
    ([FIXED, pool_document()], {"train"}),
    ([FIXED, pool_document(**SELF_MANAGED)], {"train"}),
    ([FIXED, GPU_SPOT], {"train"}),
    ([FIXED, pool_document(nodes={"static": 4})], set()),
    ([FIXED, pool_document(purchase=ODCR)], set()),
    ([FIXED, pool_document(purchase=CAPACITY_BLOCK)], set()),
    ([FIXED, pool_document(purchase=CAPACITY_BLOCK, **SELF_MANAGED)], set()),
    # Karpenter launches these.
    ([FIXED, pool_document(provisioner="karpenter")], set()),
    # It grows the system pool for controllers, and every shard is a group of its own.
    ([SYSTEM_POOL], {"system"}),
    ([FIXED, pool_document(shards=2)], {"train-1", "train-2"}),
    (make_document()["pools"], {"system", NEURON_POOL["name"]}),
]


@pytest.mark.parametrize(("pools", "scaled"), SCALED)
def test_the_cluster_autoscaler_scales_groups_that_follow_their_pods(
    pools: list[dict[str, Any]], scaled: set[str]
) -> None:
    launched = any(pool["provisioner"] == "karpenter" for pool in pools)
    plan = autoscaler(*pools, karpenter={"version": "1.15.2"} if launched else None)
    assert (set(plan.group_tags) if plan else set()) == scaled


@pytest.mark.parametrize("minor", ["1.35", "1.36"])
def test_the_cluster_autoscaler_is_of_the_clusters_own_minor(minor: str) -> None:
    plan = autoscaler(SYSTEM_POOL, kubernetes={"version": minor})
    assert plan is not None
    assert plan.image.startswith(f"registry.k8s.io/autoscaling/cluster-autoscaler:v{minor}.")
    # It finds groups by a tag that EKS puts nowhere.
    assert plan.discovery_tags == {"ultrascale.dev/cluster-autoscaler": "research"}
    assert plan.discovery_tags.items() <= plan.group_tags["system"].items()
    with pytest.raises(CatalogError, match=r"got '1\.37'; choose one of 1\.35, 1\.36"):
        versions.cluster_autoscaler("1.37")


def test_the_memory_of_the_cluster_autoscaler_grows_with_the_whole_fleet() -> None:
    pool = pool_document(provisioner="karpenter", nodes={"max": 4000})
    small, large = (
        autoscaler(SYSTEM_POOL),
        autoscaler(SYSTEM_POOL, pool, karpenter={"version": "1.15.2"}),
    )
    assert (small and small.memory, large and large.memory) == ("1624Mi", "5720Mi")


@pytest.mark.parametrize(
    ("pools", "seconds"),
    [
        ([GPU_SPOT | SELF_MANAGED], 120),
        ([BLOCK | SELF_MANAGED], 600),
        ([GPU_SPOT], None),
        ([BLOCK], None),
        ([pool_document(purchase=ON_DEMAND, **SELF_MANAGED)], 3600),
        ([pool_document(purchase=ODCR, **SELF_MANAGED)], 3600),
        # A block beside Spot has its ten minutes.
        ([GPU_SPOT | SELF_MANAGED, BLOCK | SELF_MANAGED | {"name": "block"}], 600),
    ],
)
def test_nodes_that_ec2_takes_from_groups_that_nobody_manages_are_drained(
    pools: list[dict[str, Any]], seconds: int | None
) -> None:
    plan = handler(*pools)
    assert (plan and plan.drain_seconds) == seconds


def test_every_node_of_a_block_is_drained_at_once() -> None:
    plan = handler(BLOCK | SELF_MANAGED | {"nodes": {"max": 64}})
    assert plan is not None
    assert plan.workers == 64
    # It knows its own cluster's instances by the key of their tag.
    assert plan.managed_tag == "ultrascale.dev/termination-handler/research"
    assert (plan.queue, plan.queue_url) == ("research-termination", "${TERMINATION_QUEUE_URL}")
