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


def handler(*pools: dict[str, Any]) -> TerminationHandlerPlan | None:
    return plan_termination_handler(*planned(FIXED, *pools))


class TestClusterAutoscaler:
    """Groups that it scales: others would ask for a block before its start."""

    @pytest.mark.parametrize(
        ("pool", "scaled"),
        [
            (pool_document(), True),
            (pool_document(**SELF_MANAGED), True),
            (GPU_SPOT, True),
            (pool_document(nodes={"static": 4}), False),
            (pool_document(purchase=ODCR), False),
            (pool_document(purchase=CAPACITY_BLOCK), False),
            (pool_document(purchase=CAPACITY_BLOCK, **SELF_MANAGED), False),
        ],
        ids=["on-demand", "self-managed", "spot", "static", "odcr", "block", "self-managed block"],
    )
    def test_it_scales_groups_that_follow_their_pods(
        self, pool: dict[str, Any], scaled: bool
    ) -> None:
        plan = autoscaler(FIXED, pool)

        assert (set(plan.group_tags) if plan else set()) == ({"train"} if scaled else set())

    def test_nodes_that_karpenter_launches_are_not_its_affair(self) -> None:
        pool = pool_document(provisioner="karpenter")

        assert autoscaler(FIXED, pool, karpenter={"version": "1.15.2"}) is None

    def test_it_grows_the_system_pool_for_controllers(self) -> None:
        plan = autoscaler(SYSTEM_POOL)

        assert plan is not None
        assert set(plan.group_tags) == {"system"}

    def test_every_shard_is_a_group_of_its_own(self) -> None:
        plan = autoscaler(FIXED, pool_document(shards=2))

        assert plan is not None
        assert set(plan.group_tags) == {"train-1", "train-2"}

    def test_it_finds_groups_by_a_tag_that_eks_puts_nowhere(self) -> None:
        plan = autoscaler(SYSTEM_POOL)

        assert plan is not None
        assert plan.discovery_tags == {"ultrascale.dev/cluster-autoscaler": "research"}
        assert plan.discovery_tags.items() <= plan.group_tags["system"].items()

    @pytest.mark.parametrize("minor", ["1.35", "1.36"])
    def test_it_is_of_the_clusters_own_minor(self, minor: str) -> None:
        plan = autoscaler(SYSTEM_POOL, kubernetes={"version": minor})

        assert plan is not None
        assert plan.image.startswith(f"registry.k8s.io/autoscaling/cluster-autoscaler:v{minor}.")

    def test_a_minor_without_one_is_answered_with_those_that_have_one(self) -> None:
        with pytest.raises(CatalogError, match=r"got '1\.37'; choose one of 1\.35, 1\.36"):
            versions.cluster_autoscaler("1.37")

    def test_its_memory_grows_with_the_whole_fleet(self) -> None:
        small = autoscaler(SYSTEM_POOL)
        pool = pool_document(provisioner="karpenter", nodes={"max": 4000})
        large = autoscaler(SYSTEM_POOL, pool, karpenter={"version": "1.15.2"})

        assert small is not None
        assert small.memory == "1624Mi"
        assert large is not None
        assert large.memory == "5720Mi"


def test_the_trainium_tutorial_gets_the_autoscaler_for_both_pools() -> None:
    plan = autoscaler(*make_document()["pools"])

    assert plan is not None
    assert set(plan.group_tags) == {"system", NEURON_POOL["name"]}


class TestTerminationHandler:
    """Nodes that it drains before EC2 takes them, and its time to do so."""

    @pytest.mark.parametrize(
        ("pool", "seconds"),
        [
            (GPU_SPOT | SELF_MANAGED, 120),
            (pool_document(purchase=CAPACITY_BLOCK, **SELF_MANAGED), 600),
            (GPU_SPOT, None),
            (pool_document(purchase=CAPACITY_BLOCK), None),
            (pool_document(purchase=ON_DEMAND, **SELF_MANAGED), 3600),
            (pool_document(purchase=ODCR, **SELF_MANAGED), 3600),
        ],
        ids=[
            "spot",
            "block",
            "managed spot",
            "managed block",
            "self-managed on-demand",
            "self-managed odcr",
        ],
    )
    def test_it_drains_what_ec2_takes_from_groups_that_nobody_manages(
        self, pool: dict[str, Any], seconds: int | None
    ) -> None:
        plan = handler(pool)

        assert (plan and plan.drain_seconds) == seconds

    def test_a_block_beside_spot_has_its_ten_minutes(self) -> None:
        block = pool_document(name="block", purchase=CAPACITY_BLOCK, **SELF_MANAGED)

        plan = handler(GPU_SPOT | SELF_MANAGED, block)

        assert plan is not None
        assert plan.drain_seconds == 600

    def test_every_node_of_a_block_is_drained_at_once(self) -> None:
        pool = pool_document(purchase=CAPACITY_BLOCK, nodes={"max": 64}, **SELF_MANAGED)

        plan = handler(pool)

        assert plan is not None
        assert plan.workers == 64

    def test_it_knows_its_own_clusters_instances_by_the_key_of_their_tag(self) -> None:
        plan = handler(GPU_SPOT | SELF_MANAGED)

        assert plan is not None
        assert plan.managed_tag == "ultrascale.dev/termination-handler/research"
        assert plan.queue == "research-termination"

    def test_its_queue_is_a_placeholder_until_it_is_made(self) -> None:
        plan = handler(GPU_SPOT | SELF_MANAGED)

        assert plan is not None
        assert plan.queue_url == "${TERMINATION_QUEUE_URL}"
