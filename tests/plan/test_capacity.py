"""Capacity of a pool: the time of its nodes, their purchase and changes of their number."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.pools import CAPACITY_BLOCK, ODCR, ON_DEMAND, SPOT, make_pool
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
    assert plan.capacity_type == plan.labels["karpenter.sh/capacity-type"] == expected
    assert plan.labels["ultrascale.dev/capacity"] == purchase["option"]


# A deploy that changes a size which another hand has set takes nodes from running jobs.
@pytest.mark.parametrize(
    ("provisioners", "purchase", "nodes", "sized_by", "initial"),
    [
        # A block is empty until the calendar fills it, a reservation is used from the first minute.
        (GROUPS, CAPACITY_BLOCK, {"max": 16}, "calendar", 0),
        (GROUPS, ODCR, {"min": 0, "max": 4}, "file", 4),
        (GROUPS, ON_DEMAND, {"min": 1, "max": 4}, "cluster-autoscaler", 1),
        (GROUPS, ON_DEMAND, {"min": 4, "max": 4}, "file", 4),
        (POOLS, CAPACITY_BLOCK, {"static": 16}, "calendar", 0),
        (POOLS, ODCR, {"static": 16}, "file", 16),
        # Any other NodePool follows its pods.
        (POOLS, ON_DEMAND, {"max": 16}, "provisioner", 0),
        (POOLS, ODCR, {"max": 16}, "provisioner", 0),
        (POOLS, CAPACITY_BLOCK, {"max": 16}, "provisioner", 0),
    ],
)
def test_one_hand_sizes_a_pool(
    provisioners: tuple[str, str],
    purchase: dict[str, Any],
    nodes: dict[str, int],
    sized_by: str,
    initial: int,
) -> None:
    for name in provisioners:
        plan = planned(provisioner=name, purchase=purchase, nodes=nodes, role="reserved")
        assert (plan.sized_by, plan.initial_nodes) == (sized_by, initial)
        if sized_by == "calendar":
            assert plan.min_nodes == 0
            assert plan.static == (name in POOLS)


# Shards that share a name would be one pool; shards of a pool that differ would be several.
def test_each_shard_is_a_pool_of_its_own_with_the_files_count_and_labels() -> None:
    pool = make_pool(provisioner="karpenter", shards=3, nodes={"max": 4})
    plans = plan_pools(pool, kubernetes_version="1.35")
    (whole,) = plan_pools(make_pool(), kubernetes_version="1.35")
    assert [plan.name for plan in plans] == ["train-1", "train-2", "train-3"]
    assert [plan.labels["ultrascale.dev/shard"] for plan in plans] == ["1", "2", "3"]
    assert {plan.max_nodes for plan in plans} == {4}
    for label in ("ultrascale.dev/pool", "node-type"):
        assert {plan.labels[label] for plan in plans} == {"train"}
    assert (whole.name, whole.shard) == ("train", None)
    assert "ultrascale.dev/shard" not in whole.labels


@pytest.mark.parametrize(
    ("instance_type", "reclaimed", "usable"), [("p5.48xlarge", 30, 40), ("trn2u.48xlarge", 60, 70)]
)
def test_a_block_is_usable_until_ten_minutes_before_ec2_reclaims_it(
    instance_type: str, reclaimed: int, usable: int
) -> None:
    """A job that counts on the printed end loses what it did since its last checkpoint."""
    pool = make_pool(purchase=CAPACITY_BLOCK)
    window = plan_window(pool.model_copy(update={"instance_types": (instance_type,)}))
    assert window is not None
    assert window.ends == ENDS
    assert window.reclaimed_from == ENDS - timedelta(minutes=reclaimed)
    assert window.usable_until == ENDS - timedelta(minutes=usable)
    assert planned(purchase=CAPACITY_BLOCK).window is not None
    assert planned(purchase=ON_DEMAND).window is planned(purchase=ODCR).window is None


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
    launched = {"provisioner": "karpenter", "instance_types": G_TYPES, "efa": "none"}
    plan = planned(**launched, purchase=purchase, nodes={"max": 16})
    assert plan.fallback_nodes == expected
