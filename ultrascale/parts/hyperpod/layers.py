"""Layers of HyperPod: its chart, its cluster, and what waits for its nodes."""

from collections.abc import Mapping, Sequence

from ultrascale.parts.hyperpod.model import Plan
from ultrascale.plan.model import ClusterPlan, PoolPlan
from ultrascale.plan.stacks import Layer, LayerId


def _is_there(plan: ClusterPlan) -> bool:
    return plan.part(Plan) is not None


def _is_governed(plan: ClusterPlan) -> bool:
    own = plan.part(Plan)
    return own is not None and own.cluster.governance is not None


def _is_operated(plan: ClusterPlan) -> bool:
    own = plan.part(Plan)
    return own is not None and own.cluster.training_operator is not None


def _is_measured(plan: ClusterPlan) -> bool:
    own = plan.part(Plan)
    return own is not None and own.metrics is not None


def _pools(plan: ClusterPlan) -> Sequence[PoolPlan]:
    return [pool for pool in plan.all_pools if pool.is_hyperpod]


LAYERS: Mapping[LayerId, Layer] = {
    "hyperpod-chart": Layer(
        exists=_is_there,
        after=("network", "cluster", "platform"),
        taken_down_in="hyperpod",
        follows="node-pools",
    ),
    "hyperpod-groups": Layer(
        exists=_is_there,
        after=("network", "cluster", "hyperpod-chart"),
        costs_nodes=True,
        may_lack_capacity=True,
        taken_down_in="hyperpod",
        follows="node-pools",
    ),
    # These fail as long as HyperPod has no node, which comes in its own time.
    "governance": Layer(
        exists=_is_governed,
        after=("hyperpod-groups",),
        runs_on=_pools,
        taken_down_in="hyperpod",
        follows="node-groups",
    ),
    "teams": Layer(
        exists=_is_governed,
        after=("network", "cluster", "hyperpod-groups", "governance"),
        runs_on=_pools,
        taken_down_in="hyperpod",
        follows="node-groups",
    ),
    "training-operator": Layer(
        exists=_is_operated,
        after=("addons", "hyperpod-groups"),
        after_if={"governance": _is_governed},
        runs_on=_pools,
        taken_down_in="hyperpod",
        follows="node-groups",
    ),
    "hyperpod-metrics": Layer(
        exists=_is_measured,
        after=("hyperpod-groups",),
        runs_on=_pools,
        taken_down_in="hyperpod",
        follows="node-groups",
    ),
}
