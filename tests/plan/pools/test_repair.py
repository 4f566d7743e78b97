"""Broken nodes, cell by cell: what one meets, who decides, and what becomes of a reserved slot."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.support.cases import for_each
from tests.support.pools import (
    CAPACITY_BLOCK,
    ODCR,
    ON_DEMAND,
    SPOT,
    SYSTEM_POOL,
    TRAINING_PLAN,
    make_cluster,
    pool_document,
)
from ultrascale.catalog import karpenter as facts
from ultrascale.catalog import matrix
from ultrascale.errors import ConfigError
from ultrascale.plan import ClusterPlan, plan_cluster
from ultrascale.plan.model import RepairPlan

PURCHASES: Mapping[str, Mapping[str, Any]] = {
    "on-demand": ON_DEMAND,
    "spot": SPOT,
    "odcr": ODCR,
    "capacity-block": CAPACITY_BLOCK,
    "training-plan": TRAINING_PLAN,
}
G_TYPES = ["g6.12xlarge", "g6e.12xlarge", "g5.12xlarge"]
ROLES = ("burst", "reserved")
SIZES: Mapping[str, Mapping[str, int]] = {"scales": {"max": 4}, "fixed": {"static": 4}}
ACTIONS = ("none", "reboot", "replace")
# None of what stands here for reserved capacity ends a node whose slot is then free.
OFFERED: Mapping[tuple[str, str, str], tuple[str, ...]] = {
    **{("managed-node-group", "free", size): ("replace", "none") for size in SIZES},
    **{("managed-node-group", "reserved", size): ("none",) for size in SIZES},
    **{("self-managed", kind, size): ("none",) for kind in ("free", "reserved") for size in SIZES},
    ("karpenter", "free", "scales"): ("none", "reboot", "replace"),
    ("karpenter", "reserved", "scales"): ("none",),
    ("karpenter", "reserved", "fixed"): ("none", "reboot"),
    # Nothing switches it off. The slot stays the reservation's.
    ("auto-mode", "free", "scales"): ("replace",),
    **{("auto-mode", "reserved", size): ("replace",) for size in SIZES},
    # One setting for the cluster: `none` stands beside `hyperpod.node_recovery: none`.
    **{("hyperpod", kind, "fixed"): ("replace", "none") for kind in ("free", "reserved")},
}


def cells() -> Iterator[tuple[str, str, str, str]]:
    """Yield each legal cell of provisioner, purchase and role, of both kinds of size."""
    for (provisioner, option), cell in matrix.MATRIX.items():
        for role in ROLES if cell.works else ():
            for size in SIZES:
                yield provisioner, option, role, size


CELLS = {" ".join(cell): cell for cell in cells()}


def pool(provisioner: str, option: str, role: str, size: str, **changes: Any) -> dict[str, Any]:
    spot = {"instance_types": G_TYPES, "efa": "none"} if option == "spot" else {}
    own = {"provisioner": provisioner, "purchase": PURCHASES[option], "role": role}
    return pool_document(**own, nodes=SIZES[size], **spot) | changes


def planned(*pools: dict[str, Any], version: str = "1.15.2", **changes: Any) -> ClusterPlan:
    document: dict[str, Any] = {"pools": [SYSTEM_POOL, *pools]} | changes
    if any(each["provisioner"] == "karpenter" for each in pools):
        document["karpenter"] = {"version": version}
    return plan_cluster(make_cluster(**document))


def repair_of(plan: ClusterPlan) -> RepairPlan:
    return plan.nodes.repairs[-1]


def plan_or_nothing(document: dict[str, Any]) -> ClusterPlan | None:
    recovery: dict[str, Any] = {}
    if document["provisioner"] == "hyperpod" and document.get("repair") == "none":
        recovery = {"hyperpod": {"node_recovery": "none"}}
    try:
        return planned(document, **recovery)
    except ConfigError:
        return None


@for_each(CELLS)
def test_what_a_broken_node_of_each_cell_may_meet(
    provisioner: str, option: str, role: str, size: str
) -> None:
    unsaid = plan_or_nothing(pool(provisioner, option, role, size))
    if unsaid is None:
        return  # No cluster has such a pool.
    kind = "reserved" if role == "reserved" or option not in ("on-demand", "spot") else "free"
    default, *others = OFFERED[provisioner, kind, size]

    accepted = {
        action
        for action in ACTIONS
        if plan_or_nothing(pool(provisioner, option, role, size, repair=action)) is not None
    }

    assert repair_of(unsaid).action == default
    assert accepted == {default, *others}


@for_each(CELLS)
def test_no_cell_loses_a_reserved_slot_to_a_repair(
    provisioner: str, option: str, role: str, size: str
) -> None:
    for action in (None, *ACTIONS):
        changes = {} if action is None else {"repair": action}
        plan = plan_or_nothing(pool(provisioner, option, role, size, **changes))
        if plan is None:
            continue
        repair = repair_of(plan)
        if option not in ("on-demand", "spot") or role == "reserved":
            assert repair.slot.startswith("kept")
            assert_nothing_of_ours_ends_it(plan)
        else:
            assert repair.slot == ""
        assert bool(repair.decided_by) is (repair.action != "none")


def assert_nothing_of_ours_ends_it(plan: ClusterPlan) -> None:
    """No group of EKS is repaired, and Karpenter has no place for a successor."""
    for group in plan.nodes.groups:
        assert group.pool.role == "system" or not group.repaired
    for node_pool in plan.nodes.node_pools:
        if node_pool.node_class_kind == "NodeClass":
            continue
        touched = [
            budget
            for budget in node_pool.budgets
            if budget.nodes != "0" and (not budget.reasons or "Unhealthy" in budget.reasons)
        ]
        # A static pool at its limit: nothing replaces a node, whatever the fault.
        assert not touched or node_pool.replicas is not None
    if plan.nodes.karpenter is not None:
        gates = plan.nodes.karpenter.feature_gates
        assert not gates.get("TerminateFirstRepair", False)
        assert not gates.get("TerminateFirstDrift", False)


FIXED = pool("karpenter", "odcr", "reserved", "fixed")
BURST = pool("karpenter", "on-demand", "burst", "scales", name="burst")


def budgets(plan: ClusterPlan, name: str) -> list[tuple[str, tuple[str, ...]]]:
    (found,) = (each for each in plan.nodes.node_pools if each.name == name)
    return [(budget.nodes, budget.reasons) for budget in found.budgets]


class TestKarpenter:
    def test_pools_are_held_before_the_gates_of_another_are_on(self) -> None:
        # The controller's stack is deployed before that of the NodePools.
        plan = planned(FIXED, BURST)
        assert budgets(plan, "train") == [("0", ())]
        assert budgets(plan, "burst")[-1] == ("0", ("Unhealthy",))
        # No gate is on where no pool asks.
        assert plan.nodes.karpenter is not None
        assert not plan.nodes.karpenter.feature_gates["NodeRepair"]
        assert not plan.nodes.karpenter.reboots_nodes
        # A pool that does not ask is held where another does, and a reserved one by its one budget.
        assert budgets(planned(FIXED | {"repair": "reboot"}, BURST), "burst")[-1] == (
            "0",
            ("Unhealthy",),
        )
        assert budgets(planned(FIXED, BURST | {"repair": "replace"}), "train") == [("0", ())]

    def test_reserved_nodes_are_rebooted_one_at_a_time_and_kept_from_all_else(self) -> None:
        plan = planned(FIXED | {"repair": "reboot"})

        assert budgets(plan, "train") == [
            ("0", ("Underutilized", "Empty", "Drifted")),
            ("1", ("Unhealthy",)),
        ]
        assert plan.nodes.karpenter is not None
        assert plan.nodes.karpenter.feature_gates["NodeRepair"]
        assert plan.nodes.karpenter.reboots_nodes
        assert plan.nodes.karpenter.legacy_node_repair is False

    def test_a_replacement_alone_reboots_nothing(self) -> None:
        plan = planned(BURST | {"repair": "replace"})

        assert plan.nodes.karpenter is not None
        assert plan.nodes.karpenter.feature_gates["NodeRepair"]
        assert not plan.nodes.karpenter.reboots_nodes
        assert budgets(plan, "burst")[-1] == ("1", ("Unhealthy",))

    def test_spot_and_its_fallback_are_repaired_alike(self) -> None:
        spot = pool("karpenter", "spot", "burst", "scales", name="spot", repair="replace")
        plan = planned(spot | {"purchase": {"option": "spot", "fallback": "on-demand"}})
        last = [budgets(plan, p.name)[-1] for p in plan.nodes.node_pools]
        assert last == [("1", ("Unhealthy",))] * 2

    @for_each({"reboot": ("reboot", FIXED), "replace": ("replace", BURST)})
    def test_a_version_whose_repair_heeds_no_budget_is_refused(
        self, action: str, document: dict[str, Any]
    ) -> None:
        with pytest.raises(ConfigError, match=r"karpenter\.version: too old for repair within"):
            planned(document | {"repair": action}, version="1.14.3")

    def test_the_conservative_version_gets_no_gate_or_reason_that_it_does_not_know(self) -> None:
        plan = planned(FIXED, BURST, version="1.14.3").nodes
        assert plan.karpenter is not None
        assert (plan.karpenter.aws_feature_gates, plan.karpenter.legacy_node_repair) == ({}, None)
        assert not any(gate.startswith("TerminateFirst") for gate in plan.karpenter.feature_gates)
        assert not any("Unhealthy" in b.reasons for p in plan.node_pools for b in p.budgets)
        # Nor do NodePools of Auto Mode say anything of repair.
        auto = planned(pool("auto-mode", "odcr", "reserved", "fixed", repair="replace")).nodes
        assert not any("Unhealthy" in b.reasons for p in auto.node_pools for b in p.budgets)

    def test_pods_have_a_bound_so_that_one_that_must_not_go_blocks_no_repair(self) -> None:
        plans = [planned(FIXED | {"repair": "reboot"}), planned(BURST | {"repair": "replace"})]
        shortest, longest = facts.REPAIR_DRAIN_MINUTES
        for plan in plans:
            (node_pool,) = plan.nodes.node_pools
            assert node_pool.termination_grace_period
        assert f"{shortest} to {longest} minutes" in repair_of(plans[0]).meets


def test_a_managed_group_that_asks_for_none_keeps_its_broken_nodes() -> None:
    plan = planned(pool("managed-node-group", "on-demand", "burst", "scales", repair="none"))

    assert [group.repaired for group in plan.nodes.groups] == [True, False]
