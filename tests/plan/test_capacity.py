"""Capacity of a pool: the time of its nodes, their purchase and changes of their number."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.pools import CAPACITY_BLOCK, ODCR, ON_DEMAND, SPOT, make_pool
from ultrascale import config
from ultrascale.catalog import versions
from ultrascale.plan.capacity import plan_window
from ultrascale.plan.model import PoolPlan
from ultrascale.plan.pools.pool import plan_pool, plan_pools

ENDS = datetime(2026, 12, 8, 11, 30, tzinfo=UTC)
GROUPS = ("managed-node-group", "self-managed")
POOLS = ("karpenter", "auto-mode")
G_TYPES = ["g6.12xlarge", "g6e.12xlarge", "g5.12xlarge"]


def planned(**changes: Any) -> PoolPlan:
    return plan_pool(make_pool(**changes), kubernetes_version="1.35")


def reserved(provisioner: str, purchase: dict[str, Any], **nodes: int) -> PoolPlan:
    return planned(provisioner=provisioner, purchase=purchase, nodes=nodes, role="reserved")


@pytest.mark.parametrize(
    ("purchase", "expected"),
    [(ON_DEMAND, "on-demand"), (SPOT, "spot"), (ODCR, "reserved"), (CAPACITY_BLOCK, "reserved")],
)
def test_nodes_say_in_one_word_how_they_are_paid_for(
    purchase: dict[str, Any], expected: str
) -> None:
    types = G_TYPES if purchase == SPOT else ["p5.48xlarge"]
    plan = planned(purchase=purchase, instance_types=types)

    assert plan.capacity_type == expected
    assert plan.labels["karpenter.sh/capacity-type"] == expected
    assert plan.labels["ultrascale.dev/capacity"] == purchase["option"]


class TestWindow:
    """A job that counts on the printed end loses what it did since its last checkpoint."""

    def test_a_block_is_usable_until_forty_minutes_before_its_end(self) -> None:
        window = planned(purchase=CAPACITY_BLOCK).window

        assert window is not None
        assert window.ends == ENDS
        assert window.reclaimed_from == ENDS - timedelta(minutes=30)
        assert window.usable_until == ENDS - timedelta(minutes=40)

    def test_a_block_of_ultraservers_is_usable_until_seventy_minutes_before_its_end(self) -> None:
        types = {"instance_types": ("trn2u.48xlarge",)}
        pool = make_pool(purchase=CAPACITY_BLOCK).model_copy(update=types)

        window = plan_window(pool)

        assert window is not None
        assert window.reclaimed_from == ENDS - timedelta(minutes=60)
        assert window.usable_until == ENDS - timedelta(minutes=70)

    @pytest.mark.parametrize("purchase", [ON_DEMAND, ODCR])
    def test_nothing_else_ends_by_itself(self, purchase: dict[str, Any]) -> None:
        assert planned(purchase=purchase).window is None


class TestSize:
    """A deploy that changes a size which another hand has set takes nodes from running jobs."""

    @pytest.mark.parametrize("provisioner", GROUPS)
    def test_a_block_group_is_empty_until_the_calendar_fills_it(self, provisioner: str) -> None:
        plan = reserved(provisioner, CAPACITY_BLOCK, max=16)

        assert (plan.sized_by, plan.initial_nodes, plan.min_nodes) == ("calendar", 0, 0)

    @pytest.mark.parametrize("provisioner", GROUPS)
    def test_a_reservation_is_used_from_the_first_minute(self, provisioner: str) -> None:
        plan = reserved(provisioner, ODCR, min=0, max=4)

        assert (plan.sized_by, plan.initial_nodes) == ("file", 4)

    @pytest.mark.parametrize("provisioner", GROUPS)
    def test_a_group_with_room_to_grow_is_the_autoscalers(self, provisioner: str) -> None:
        plan = reserved(provisioner, ON_DEMAND, min=1, max=4)

        assert (plan.sized_by, plan.initial_nodes) == ("cluster-autoscaler", 1)

    @pytest.mark.parametrize("provisioner", GROUPS)
    def test_a_group_without_room_to_grow_stays_as_the_file_says(self, provisioner: str) -> None:
        plan = reserved(provisioner, ON_DEMAND, min=4, max=4)

        assert (plan.sized_by, plan.initial_nodes) == ("file", 4)

    @pytest.mark.parametrize("provisioner", POOLS)
    def test_a_static_pool_on_a_block_is_empty_until_the_calendar_fills_it(
        self, provisioner: str
    ) -> None:
        plan = reserved(provisioner, CAPACITY_BLOCK, static=16)

        assert (plan.sized_by, plan.initial_nodes, plan.min_nodes) == ("calendar", 0, 0)
        assert plan.static

    @pytest.mark.parametrize("provisioner", POOLS)
    def test_a_static_pool_on_a_reservation_is_full_at_once(self, provisioner: str) -> None:
        plan = reserved(provisioner, ODCR, static=16)

        assert (plan.sized_by, plan.initial_nodes) == ("file", 16)

    @pytest.mark.parametrize("provisioner", POOLS)
    @pytest.mark.parametrize("purchase", [ON_DEMAND, ODCR, CAPACITY_BLOCK])
    def test_any_other_node_pool_follows_its_pods(
        self, provisioner: str, purchase: dict[str, Any]
    ) -> None:
        plan = reserved(provisioner, purchase, max=16)

        assert (plan.sized_by, plan.initial_nodes) == ("provisioner", 0)


class TestShards:
    """Shards that share a name would be one pool; shards of a pool that differ would be several."""

    def pool(self) -> config.Pool:
        return make_pool(provisioner="karpenter", shards=3, nodes={"max": 4})

    def test_each_is_a_pool_of_its_own_with_the_files_count(self) -> None:
        plans = plan_pools(self.pool(), kubernetes_version="1.35")

        assert [plan.name for plan in plans] == ["train-1", "train-2", "train-3"]
        assert {plan.max_nodes for plan in plans} == {4}

    def test_all_carry_the_labels_of_their_pool_and_their_own_number(self) -> None:
        plans = plan_pools(self.pool(), kubernetes_version="1.35")

        assert {plan.labels["ultrascale.dev/pool"] for plan in plans} == {"train"}
        assert {plan.labels["node-type"] for plan in plans} == {"train"}
        assert [plan.labels["ultrascale.dev/shard"] for plan in plans] == ["1", "2", "3"]

    def test_a_pool_without_shards_keeps_its_name(self) -> None:
        (plan,) = plan_pools(make_pool(), kubernetes_version="1.35")

        assert (plan.name, plan.shard) == ("train", None)
        assert "ultrascale.dev/shard" not in plan.labels


@pytest.mark.parametrize(
    ("instance_type", "variant"),
    [
        ("m7i.2xlarge", "x86_64/standard/amazon-eks-node-al2023-x86_64-standard"),
        ("m7g.2xlarge", "arm64/standard/amazon-eks-node-al2023-arm64-standard"),
        ("p5.48xlarge", "x86_64/nvidia/amazon-eks-node-al2023-x86_64-nvidia"),
        ("trn1.32xlarge", "x86_64/neuron/amazon-eks-node-al2023-x86_64-neuron"),
    ],
)
def test_self_managed_nodes_start_from_the_release_that_managed_ones_do(
    instance_type: str, variant: str
) -> None:
    plan = planned(instance_types=[instance_type])
    tag = plan.ami_release.rpartition("-")[2]

    folder = "/aws/service/eks/optimized-ami/1.35/amazon-linux-2023"
    assert plan.ami_parameter == f"{folder}/{variant}-1.35-v{tag}/image_id"
    assert plan.ami_alias == f"al2023@v{tag}"
    assert versions.ami_release("1.35").version == plan.ami_release


@pytest.mark.parametrize(
    ("purchase", "expected"),
    [
        (SPOT, 0),
        (SPOT | {"fallback": "on-demand"}, 8),
        (SPOT | {"fallback": "on-demand", "fallback_max": 3}, 3),
        (ON_DEMAND, 0),
    ],
)
def test_no_more_on_demand_nodes_are_paid_for_than_the_file_allows(
    purchase: dict[str, Any], expected: int
) -> None:
    plan = planned(
        provisioner="karpenter",
        purchase=purchase,
        instance_types=G_TYPES,
        nodes={"max": 16},
        efa="none",
    )

    assert plan.fallback_nodes == expected
