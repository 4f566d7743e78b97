"""Disruption budgets of NodePools: when Karpenter and EKS Auto Mode may remove a node.

A node that is removed under a job costs everything since the job's last checkpoint, on every node
of the job. An empty node costs only its price.

Source: https://karpenter.sh/docs/concepts/disruption/
"""

from datetime import timedelta
from typing import Literal

from msgspec.structs import replace

from ultrascale.catalog import auto_mode
from ultrascale.frozen import Frozen
from ultrascale.plan.model import Budget, PoolPlan

# EKS Auto Mode has no `Never`, and its API server counts the grace period of the end with it: the
# sum may not exceed its limit (aws-controllers-k8s/test-infra#1000).
_LONGEST_ON_AUTO_MODE = timedelta(days=auto_mode.NODE_DAYS)
# Time for a checkpoint of the largest models and for inference to finish its begun requests. Pods
# with `karpenter.sh/do-not-disrupt` hold an ending node no longer than this.
_GRACE = timedelta(hours=1)


class Disruption(Frozen):
    """Rules by which nodes of a pool are removed."""

    # Nodes that may be removed to save cost.
    consolidation_policy: Literal["WhenEmpty", "WhenEmptyOrUnderutilized"]
    consolidate_after: str  # How long a node must be so, or ``Never``
    budgets: tuple[Budget, ...]  # Limits of disruption


# Paid for whether it runs or not, and once given back perhaps not to be had again. The budget of 0
# holds drift back too: a new Karpenter or AMI would otherwise replace every node of the pool, and a
# termination grace period lets drift pass over pods that say `karpenter.sh/do-not-disrupt`. Source:
# https://karpenter.sh/docs/concepts/disruption/#terminationgraceperiod
_KEPT = Disruption(
    consolidation_policy="WhenEmpty",
    consolidate_after="Never",
    budgets=(Budget(nodes="0"),),
)
# Empty nodes go, after a pause in which the next job of a queue may take them. Drift waits until
# they are empty: the node that replaces an empty one is launched as the file has it by then.
_ACCELERATED = Disruption(
    consolidation_policy="WhenEmpty",
    consolidate_after="30m",
    budgets=(Budget(nodes="100%", reasons=("Empty",)), Budget(nodes="0", reasons=("Drifted",))),
)
# No age renews them: it heeds no budget, would take at once all nodes that came together, and every
# job that runs longer. Drift, which comes with a new image, goes by the budgets.
_CPU = Disruption(
    consolidation_policy="WhenEmptyOrUnderutilized",
    consolidate_after="5m",
    budgets=(
        Budget(nodes="100%", reasons=("Empty",)),
        Budget(nodes="10%", reasons=("Underutilized", "Drifted")),
    ),
)
# While a scheduler or a webhook moves, no job of the cluster starts. So no node in use goes for the
# price of a smaller one, and drift, which comes with every image that EKS Auto Mode releases, takes
# one at a time.
_SYSTEM = Disruption(
    consolidation_policy="WhenEmpty",
    consolidate_after="1h",
    budgets=(Budget(nodes="1"),),
)


# Removed nodes take their pods, leases and endpoints along, and every watcher of these gets an
# event for each. EKS advises steps of a tenth; small pools go at once.
# Source: https://docs.aws.amazon.com/eks/latest/best-practices/scale-control-plane.html
_MOST_AT_ONCE = 1_000
_STEP = "10%"


def plan_disruption(pool: PoolPlan) -> Disruption:
    """Return the rules of removal for nodes of ``pool``.

    Reserved capacity is kept whatever the pool's role is.
    """
    if pool.role == "reserved" or pool.static or pool.reservation is not None:
        return _KEPT
    if pool.role == "system":
        return _SYSTEM
    rules = _CPU if pool.accelerator is None else _ACCELERATED
    return rules if pool.max_nodes <= _MOST_AT_ONCE else _when_empty(_in_steps(rules))


def _when_empty(disruption: Disruption) -> Disruption:
    """Return ``disruption`` without the search for nodes whose pods would fit elsewhere.

    For each candidate Karpenter simulates new places of its pods, over all nodes of the cluster.

    Source: https://karpenter.sh/docs/concepts/disruption/#consolidation
    """
    budgets = tuple(
        replace(
            budget, reasons=tuple(reason for reason in budget.reasons if reason != "Underutilized")
        )
        for budget in disruption.budgets
    )
    return replace(disruption, consolidation_policy="WhenEmpty", budgets=budgets)


def _in_steps(disruption: Disruption) -> Disruption:
    budgets = tuple(
        replace(budget, nodes=_STEP) if budget.nodes == "100%" else budget
        for budget in disruption.budgets
    )
    return replace(disruption, budgets=budgets)


def is_kept(pool: PoolPlan) -> bool:
    """Return whether nodes of ``pool`` stay, drifted or empty, until a person ends them."""
    return plan_disruption(pool) is _KEPT


def expire_after(pool: PoolPlan) -> str:
    """Return the age at which a node of ``pool`` is replaced, budgets or not; or ``Never``.

    EKS Auto Mode ends every node in the end: no job there may be longer.
    """
    if not pool.is_auto_mode:
        return "Never"
    return f"{(_LONGEST_ON_AUTO_MODE - max(_GRACE, _grace(pool))) // timedelta(hours=1)}h"


def termination_grace_period(pool: PoolPlan) -> str | None:
    """Return the longest time for the pods of a node of ``pool`` to leave; None: no limit.

    With a grace period, drift passes over pods with `karpenter.sh/do-not-disrupt`, as those of jobs
    have it. Nodes without accelerators drift, and without one Karpenter waits for their jobs.

    Nodes of a Capacity Block have the time from the drain until EC2 begins to terminate them: a
    longer grace period would have EC2 end jobs in the middle of a checkpoint.

    Source: https://karpenter.sh/docs/tasks/odcrs/
    """
    waits = pool.accelerator is None and pool.role != "system" and not pool.is_auto_mode
    if waits and not is_kept(pool):
        return None
    return f"{_grace(pool) // timedelta(minutes=1)}m"


def _grace(pool: PoolPlan) -> timedelta:
    window = pool.window
    return window.reclaimed_from - window.usable_until if window else _GRACE
