"""Disruption budgets of Karpenter and EKS Auto Mode."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.node_pool_plans import CELLS, PROVISIONERS, STATIC, planned
from tests.support.pools import CAPACITY_BLOCK, ODCR, ON_DEMAND, SPOT
from ultrascale.plan.model import NodePoolPlan

CPU: Mapping[str, Any] = {"instance_types": ["m7g.8xlarge"], "zones": None}
STATIC_BLOCK: Mapping[str, Any] = {"purchase": CAPACITY_BLOCK, **STATIC}
SYSTEM: Mapping[str, Any] = {
    **{"name": "system", "provisioner": "auto-mode", **CPU},
    **{"purchase": ON_DEMAND, "nodes": {"max": 6}},
}
KEPT: list[Mapping[str, Any]] = [
    {"role": "reserved"},
    {"purchase": ODCR, "role": "reserved"},
    {"purchase": ODCR, "role": "burst"},
    {"purchase": CAPACITY_BLOCK, "role": "burst"},
    {"purchase": ODCR, "role": "reserved", **CPU, "zones": ["us-west-2b"]},
    STATIC_BLOCK,
    STATIC,
]
each_provisioner = pytest.mark.parametrize("provisioner", PROVISIONERS)
each_cell = pytest.mark.parametrize("cell", CELLS.values(), ids=list(CELLS))


def hours(duration: str) -> float:
    return {"h": 1.0, "m": 1 / 60}[duration[-1]] * int(duration[:-1])


def drift_budgets(node_pool: NodePoolPlan) -> set[str]:
    """Return the nodes of every budget that bounds drift."""
    budgets = node_pool.budgets
    return {each.nodes for each in budgets if not each.reasons or "Drifted" in each.reasons}


@each_provisioner
@pytest.mark.parametrize("changes", KEPT, ids=str)
def test_a_reserved_node_is_never_given_back(provisioner: str, changes: Mapping[str, Any]) -> None:
    """It may not be had again, and is paid for anyway."""
    node_pool = planned(provisioner, **changes).node_pool
    (budget,) = node_pool.budgets
    assert node_pool.consolidation_policy == "WhenEmpty"
    assert node_pool.consolidate_after == "Never"
    # Neither drift nor anything else takes a node.
    assert (budget.nodes, budget.reasons) == ("0", ())
    assert node_pool.expire_after == ("503h" if provisioner == "auto-mode" else "Never")


def test_while_the_nodes_of_controllers_move_others_are_there() -> None:
    node_pool = planned(**SYSTEM).node_pool
    (budget,) = node_pool.budgets
    age, grace = node_pool.expire_after, node_pool.termination_grace_period
    assert (budget.nodes, budget.reasons) == ("1", ())
    # Age heeds no budget: nodes that came together would go together.
    assert grace is not None
    assert hours(age) + hours(grace) == 21 * 24
    # None in use goes to save cost.
    assert node_pool.consolidation_policy == "WhenEmpty"


class TestBurst:
    @each_provisioner
    def test_accelerated_nodes_go_only_once_they_are_empty(self, provisioner: str) -> None:
        node_pool = planned(provisioner).node_pool
        assert node_pool.consolidation_policy == "WhenEmpty"
        assert 0.5 <= hours(node_pool.consolidate_after) <= 1
        # Neither drift nor age takes one from a job; all empty ones may go at once.
        assert drift_budgets(node_pool) == {"0"}
        assert [each.nodes for each in node_pool.budgets if "Empty" in each.reasons] == ["100%"]
        assert node_pool.expire_after == ("503h" if provisioner == "auto-mode" else "Never")

    @each_provisioner
    def test_cpu_nodes_are_packed_and_renewed_a_few_at_a_time(self, provisioner: str) -> None:
        node_pool = planned(provisioner, **CPU).node_pool
        assert node_pool.consolidation_policy == "WhenEmptyOrUnderutilized"
        assert drift_budgets(node_pool) == {"10%"}
        # No age ends a long job; without a grace period drift waits for pods that forbid it.
        auto_mode = provisioner == "auto-mode"
        assert node_pool.expire_after == ("503h" if auto_mode else "Never")
        assert (node_pool.termination_grace_period is None) == (not auto_mode)


class TestGrace:
    @each_provisioner
    @pytest.mark.parametrize("nodes", [{"nodes": {"max": 16}}, STATIC])
    def test_pods_of_a_block_are_gone_when_ec2_begins_to_end_it(
        self, provisioner: str, nodes: Mapping[str, Any]
    ) -> None:
        plans = planned(provisioner, purchase=CAPACITY_BLOCK, **nodes)
        window = plans.pools[-1].window

        assert window is not None
        drained = (window.reclaimed_from - window.usable_until).total_seconds() / 3600
        assert hours(plans.node_pool.termination_grace_period or "9h") <= drained

    @each_provisioner
    @pytest.mark.parametrize("purchase", [ON_DEMAND, SPOT, ODCR])
    def test_others_have_the_time_of_a_checkpoint(
        self, provisioner: str, purchase: Mapping[str, Any]
    ) -> None:
        node_pool = planned(provisioner, purchase=purchase).node_pool

        assert hours(node_pool.termination_grace_period or "9h") == 1


@each_cell
def test_auto_modes_api_server_takes_age_and_grace_together(cell: Mapping[str, Any]) -> None:
    """It refuses a NodePool whose two add up to more than its limit for a node's life."""
    for node_pool in planned("auto-mode", **cell).node_pools:
        age, grace = node_pool.expire_after, node_pool.termination_grace_period
        assert grace is not None
        assert hours(age) + hours(grace) <= 21 * 24


@pytest.mark.parametrize(("nodes", "empty"), [(1_000, "100%"), (1_001, "10%"), (25_940, "10%")])
@pytest.mark.parametrize("changes", [CPU, {"instance_types": ["p5.48xlarge"]}])
def test_a_large_pool_shrinks_in_steps(nodes: int, empty: str, changes: Mapping[str, Any]) -> None:
    budgets = planned("karpenter", nodes={"max": nodes}, **changes).node_pool.budgets

    assert [budget.nodes for budget in budgets if "Empty" in budget.reasons] == [empty]


@pytest.mark.parametrize(
    ("nodes", "policy"), [(1_000, "WhenEmptyOrUnderutilized"), (1_001, "WhenEmpty")]
)
def test_karpenter_simulates_no_moves_within_a_large_pool(nodes: int, policy: str) -> None:
    node_pool, small = (planned(**CPU, nodes={"max": n}).node_pool for n in (nodes, 999))
    assert node_pool.consolidation_policy == policy
    assert drift_budgets(node_pool) == {"10%"}
    # A pool that grows large drifts no node: launch settings do not depend on its size.
    assert node_pool.expire_after == small.expire_after
    assert node_pool.termination_grace_period == small.termination_grace_period
