"""Repair of broken nodes: who decides, and how a reserved slot is kept.

Sources:
    https://karpenter.sh/v1.15/concepts/disruption/#node-auto-repair
    https://docs.aws.amazon.com/eks/latest/userguide/node-repair.html
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-resiliency-node-recovery.html
"""

from collections.abc import Mapping, Sequence

from ultrascale import config
from ultrascale.catalog import karpenter
from ultrascale.core.table import all_parts
from ultrascale.plan.model import Budget, DisruptionReason, RepairPlan

# Nodes under repair at a time: the others of a gang go on, or wait for one alone.
_AT_A_TIME = "1"
_UNHEALTHY: tuple[DisruptionReason, ...] = ("Unhealthy",)
_OTHERS: tuple[DisruptionReason, ...] = ("Underutilized", "Empty", "Drifted")
_SHORTEST, _LONGEST = karpenter.REPAIR_DRAIN_MINUTES
_STAYS = "it stays, marked by the node monitoring agent, until you decide"


def karpenter_repairs(cluster: config.Cluster) -> frozenset[config.Repair]:
    """Return the repairs that pools ask of Karpenter; empty where none asks."""
    asked = {pool.repair for pool in cluster.pools if pool.is_karpenter}
    return frozenset(action for action in asked if action in ("reboot", "replace"))


def repair_of(pool: config.Pool, *, keeps_broken: bool = False) -> config.Repair:
    """Return the repair of a broken node of ``pool``.

    Args:
        pool: The pool.
        keeps_broken: Whether a part keeps the broken nodes of all pools of a fixed number.
    """
    if pool.repair is not None:
        return pool.repair
    if pool.is_auto_mode:
        return "replace"
    if pool.facts.is_fixed:
        return "none" if keeps_broken else "replace"
    # Not where capacity is reserved: a replacement needs a free slot, which a fully used
    # reservation does not have, and a verdict of the agent may be wrong.
    # Source: https://github.com/aws/containers-roadmap/issues/2555
    return "replace" if pool.is_managed and not pool.is_reserved else "none"


def repaired_groups(cluster: config.Cluster) -> frozenset[str]:
    """Return the pools, by name in the file, whose managed groups EKS repairs."""
    return frozenset(
        pool.name for pool in cluster.pools if pool.is_managed and repair_of(pool) == "replace"
    )


def repair_by_karpenter(version: str, pool: config.Pool) -> config.Repair | None:
    """Return Karpenter's repair of a broken node of ``pool``; None where it knows no repair.

    Args:
        version: Karpenter's.
        pool: One of its pools.
    """
    if karpenter.release(version) < karpenter.release(karpenter.FEATURES["repair"]):
        return None
    return repair_of(pool)


def repair_budgets(budgets: Sequence[Budget], repair: config.Repair | None) -> tuple[Budget, ...]:
    """Return the budgets of a NodePool with one for repair, where its Karpenter knows of it.

    Its gates hold for the whole cluster, so a budget of 0 holds a pool that does not ask. That one
    exists before any pool asks: a deploy switches the gates before it changes NodePools. A pool of
    fixed size has no place for a successor at its limit of nodes, so Karpenter only touches those
    of its nodes that a reboot heals.

    Args:
        budgets: The others.
        repair: Repair of a broken node; None where Karpenter knows no repair.
    """
    if repair is None:
        return tuple(budgets)
    nodes = "0" if repair == "none" else _AT_A_TIME
    if nodes == "0" and any(not budget.reasons and budget.nodes == "0" for budget in budgets):
        return tuple(budgets)
    others = (
        budget if budget.reasons else Budget(nodes=budget.nodes, reasons=_OTHERS)
        for budget in budgets
    )
    return (*others, Budget(nodes=nodes, reasons=_UNHEALTHY))


def plan_repairs(cluster: config.Cluster) -> tuple[RepairPlan, ...]:
    """Return each pool's repair of a broken node."""
    reboots = "reboot" in karpenter_repairs(cluster)
    return tuple(_repair(cluster, pool, reboots=reboots) for pool in cluster.pools)


def _repair(cluster: config.Cluster, pool: config.Pool, *, reboots: bool) -> RepairPlan:
    keeps_broken = any(part.keeps_broken_nodes(cluster) for part in all_parts())
    action = repair_of(pool, keeps_broken=keeps_broken)
    return RepairPlan(
        pool=pool.name,
        action=action,
        decided_by="" if action == "none" else pool.facts.name,
        meets=_repair_words(pool, action, reboots=reboots),
        slot=_slot(pool, action) if pool.is_reserved else "",
    )


def _repair_words(pool: config.Pool, action: config.Repair, *, reboots: bool) -> str:
    if action == "none":
        if pool.is_node_group:
            return f"EC2 Auto Scaling replaces it once its status checks fail; else {_STAYS}"
        return _STAYS
    rebooted = (
        f"a reboot where that may heal it, with {_SHORTEST} to {_LONGEST} minutes for its pods"
    )
    if action == "reboot":
        return f"{rebooted}; else {_STAYS if pool.is_reserved else 'Karpenter replaces it'}"
    replaced = pool.facts.repairs
    # The gate holds for the whole cluster.
    return f"{rebooted}; else {replaced}" if pool.is_karpenter and reboots else replaced


_KEPT: Mapping[config.Repair, str] = {
    "none": "kept",
    "reboot": "kept: the instance stays, and no other is launched",
    "replace": "kept: the reservation launches the successor into it",
}


def _slot(pool: config.Pool, action: config.Repair) -> str:
    return (action == "replace" and pool.facts.keeps_slots) or _KEPT[action]
