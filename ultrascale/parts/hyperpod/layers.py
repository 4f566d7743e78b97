"""Layers of HyperPod: its chart, its cluster, and the layers that wait for its nodes."""

from collections.abc import Callable, Mapping, Sequence

from ultrascale.parts.hyperpod.model import Plan
from ultrascale.plan.model import ClusterPlan, PoolPlan
from ultrascale.plan.stacks import Condition, Layer, LayerId


def _where(holds: Callable[[Plan], bool]) -> Condition:
    """Return the condition that the file has HyperPod, and that ``holds`` is true of its plan."""
    return lambda plan: (own := plan.part(Plan)) is not None and holds(own)


_THERE = _where(lambda own: True)
_GOVERNED = _where(lambda own: own.cluster.governance is not None)


def _pools(plan: ClusterPlan) -> Sequence[PoolPlan]:
    return [pool for pool in plan.all_pools if pool.is_hyperpod]


LAYERS: Mapping[LayerId, Layer] = {
    "hyperpod-chart": Layer(
        exists=_THERE,
        after=("network", "cluster", "platform"),
        taken_down_in="hyperpod",
        follows="node-pools",
    ),
    "hyperpod-groups": Layer(
        exists=_THERE,
        after=("network", "cluster", "hyperpod-chart"),
        costs_nodes=True,
        may_lack_capacity=True,
        taken_down_in="hyperpod",
        follows="node-pools",
    ),
    # These fail as long as HyperPod has no node, which comes in its own time.
    "governance": Layer(
        exists=_GOVERNED,
        after=("hyperpod-groups",),
        runs_on=_pools,
        taken_down_in="hyperpod",
        follows="node-groups",
    ),
    "teams": Layer(
        exists=_GOVERNED,
        after=("network", "cluster", "hyperpod-groups", "governance"),
        runs_on=_pools,
        taken_down_in="hyperpod",
        follows="node-groups",
    ),
    "training-operator": Layer(
        exists=_where(lambda own: own.cluster.training_operator is not None),
        after=("addons", "hyperpod-groups"),
        after_if={"governance": _GOVERNED},
        runs_on=_pools,
        taken_down_in="hyperpod",
        follows="node-groups",
    ),
    "hyperpod-metrics": Layer(
        exists=_where(lambda own: own.metrics is not None),
        after=("hyperpod-groups",),
        runs_on=_pools,
        taken_down_in="hyperpod",
        follows="node-groups",
    ),
}
