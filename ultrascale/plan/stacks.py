"""The layers of a cluster: its stacks, the order of their deployment and of their deletion."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ultrascale import config
from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan, PoolPlan

LayerId = Literal[
    "network",
    "cluster",
    "access",
    "node-addons",
    "nodes",
    "scaling",
    "system-node-groups",
    "system-node-pools",
    "storage",
    "addons",
    "registry",
    "images",
    "image-cache",
    "backend",
    "platform",
    "karpenter",
    "node-pools",
    "observability",
    "hyperpod-chart",
    "hyperpod-groups",
    "node-groups",
    "governance",
    "teams",
    "hyperpod-metrics",
]
Phase = Literal[
    "node-pools", "node-groups", "hyperpod", "platform", "add-ons", "cluster", "network"
]
"""A step of a teardown that deletes stacks."""

StackName = str
Condition = Callable[[ClusterPlan], bool]

PIPELINE, PIPELINE_GATE = "pipeline", "pipeline-gate"
"""Stacks of a pipeline. No teardown deletes them: they may deploy other clusters."""


def _always(_: ClusterPlan) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Stacks with one lifecycle.

    Attributes:
        exists: Whether a cluster has the layer.
        pools: Pools with a stack each, which has the name of the pool; None: the layer is one
            stack, which has the name of the layer.
        after: Layers that are deployed before it.
        after_if: Layers that are deployed before it in some clusters, with the condition.
        costs_nodes: Whether it launches accelerated nodes. They are paid for from the first minute:
            it is deployed after all other layers, and its failure stops only what waits for it.
        taken_down_in: Step of a teardown that deletes it.
        outlives: Layers that are deleted before it, although they do not need it.
    """

    exists: Condition = _always
    pools: Callable[[ClusterPlan], Sequence[PoolPlan]] | None = None
    after: tuple[LayerId, ...] = ()
    after_if: Mapping[LayerId, Condition] = field(default_factory=dict["LayerId", Condition])
    costs_nodes: bool = False
    taken_down_in: Phase = "platform"
    outlives: tuple[LayerId, ...] = ()


def _node_groups(pools: Sequence[PoolPlan]) -> Sequence[PoolPlan]:
    return [pool for pool in pools if pool.is_node_group]


def _is_governed(plan: ClusterPlan) -> bool:
    return plan.hyperpod is not None and plan.hyperpod.governance is not None


def _has_lustre(plan: ClusterPlan) -> bool:
    return bool(plan.lustre)


def _mounts_buckets(plan: ClusterPlan) -> bool:
    return any(bucket.access != "none" for bucket in plan.buckets)


# In the order of the assembly: the CDK deploys in it, as far as the dependencies leave a choice,
# and deploys nothing after a stack that failed. So layers whose nodes may lack capacity come late.
LAYERS: Mapping[LayerId, Layer] = {
    "network": Layer(taken_down_in="network"),
    "cluster": Layer(after=("network",), taken_down_in="cluster"),
    "access": Layer(
        exists=lambda plan: bool(plan.control_plane.admins),
        after=("cluster",),
        taken_down_in="add-ons",
        # The administrators lose the cluster with it.
        outlives=("addons", "system-node-groups", "system-node-pools"),
    ),
    # Without the CNI no node gets ready, and without their role Auto Mode's nodes never join.
    "node-addons": Layer(
        exists=lambda plan: bool(plan.control_plane.node_addons),
        after=("cluster",),
        taken_down_in="add-ons",
    ),
    "nodes": Layer(
        exists=lambda plan: plan.control_plane.auto_mode,
        after=("cluster",),
        taken_down_in="add-ons",
    ),
    "scaling": Layer(
        exists=lambda plan: bool(_node_groups(plan.all_pools)),
        after=("cluster",),
        taken_down_in="add-ons",
    ),
    "system-node-groups": Layer(
        pools=lambda plan: _node_groups(plan.system_pools),
        after=("network", "cluster", "node-addons", "nodes", "scaling"),
        taken_down_in="add-ons",
        # Storage may refuse to go: the cluster is then still of use.
        outlives=("storage",),
    ),
    "system-node-pools": Layer(
        exists=lambda plan: any(pool.is_node_pool for pool in plan.system_pools),
        after=("network", "cluster", "node-addons", "nodes", "scaling"),
        taken_down_in="add-ons",
        outlives=("storage",),
    ),
    "storage": Layer(
        exists=lambda plan: bool(plan.lustre or plan.buckets),
        after_if={"network": _has_lustre, "cluster": _has_lustre},
        taken_down_in="add-ons",
    ),
    "addons": Layer(
        exists=lambda plan: bool(plan.control_plane.workload_addons),
        after=("node-addons", "nodes", "system-node-groups", "system-node-pools"),
        # The driver's pods have credentials only where its account had a role before them.
        after_if={"storage": _mounts_buckets},
        taken_down_in="add-ons",
    ),
    "registry": Layer(exists=lambda plan: bool(plan.repositories)),
    "images": Layer(
        exists=lambda plan: bool(plan.repositories and plan.image_builds),
        after=("registry",),
        # It builds the image of the backend, whose pods belong to the platform.
        outlives=("platform",),
    ),
    "image-cache": Layer(exists=lambda plan: plan.image_cache is not None),
    "backend": Layer(
        exists=lambda plan: plan.backend is not None and plan.backend.database is not None,
        after=("network", "cluster"),
    ),
    "platform": Layer(
        after=(
            "network",
            "cluster",
            "scaling",
            "system-node-groups",
            "system-node-pools",
            "storage",
            "addons",
            "image-cache",
            "backend",
        ),
    ),
    "karpenter": Layer(
        exists=lambda plan: plan.karpenter is not None,
        after=("network", "cluster", "platform"),
    ),
    "node-pools": Layer(
        # With pools or without: a stack that went with the last pool would leave its nodes running.
        exists=lambda plan: plan.karpenter is not None or plan.control_plane.auto_mode,
        after=("network", "cluster", "platform", "karpenter"),
        costs_nodes=True,
        taken_down_in="node-pools",
    ),
    "observability": Layer(
        exists=lambda plan: plan.observability is not None,
        after=("network", "cluster", "platform"),
    ),
    "hyperpod-chart": Layer(
        exists=lambda plan: plan.hyperpod_chart is not None,
        after=("network", "cluster", "platform"),
        taken_down_in="hyperpod",
    ),
    "hyperpod-groups": Layer(
        exists=lambda plan: plan.hyperpod is not None,
        after=("network", "cluster", "hyperpod-chart"),
        costs_nodes=True,
        taken_down_in="hyperpod",
    ),
    "node-groups": Layer(
        pools=lambda plan: _node_groups(plan.pools),
        after=("network", "cluster", "scaling", "platform"),
        costs_nodes=True,
        taken_down_in="node-groups",
    ),
    # These fail as long as HyperPod has no node, which comes in its own time.
    "governance": Layer(exists=_is_governed, after=("hyperpod-groups",), taken_down_in="hyperpod"),
    "teams": Layer(
        exists=_is_governed,
        after=("network", "cluster", "hyperpod-groups", "governance"),
        taken_down_in="hyperpod",
    ),
    "hyperpod-metrics": Layer(
        exists=lambda plan: (
            plan.observability is not None and plan.observability.hyperpod_addon is not None
        ),
        after=("hyperpod-groups",),
        taken_down_in="hyperpod",
    ),
}


RESERVED_NAMES = frozenset(
    {
        *(id for id, layer in LAYERS.items() if layer.pools is None),
        PIPELINE,
        PIPELINE_GATE,
        # EKS Auto Mode's own NodeClass has it.
        "default",
        # Kept for layers to come.
        "jobs",
        "scheduling",
    }
)
"""Names that no pool may have."""


def stack_of(cluster: str, layer: LayerId) -> StackName:
    """Return the name of the stack of a layer that is one stack."""
    return names.stack(cluster, layer)


def stacks_of(plan: ClusterPlan, layer: LayerId) -> tuple[StackName, ...]:
    """Return the names that the stacks of a layer have, whether ``plan`` has the layer or not."""
    pools = LAYERS[layer].pools
    if pools is None:
        return (stack_of(plan.name, layer),)
    return tuple(names.stack(plan.name, pool.name) for pool in pools(plan))


def planned_layers(plan: ClusterPlan) -> Mapping[LayerId, tuple[StackName, ...]]:
    """Return the stacks that a deployment of ``plan`` makes or updates, by layer."""
    return {
        id: stacks
        for id, layer in LAYERS.items()
        if layer.exists(plan) and (stacks := stacks_of(plan, id))
    }


def planned_stacks(plan: ClusterPlan) -> frozenset[StackName]:
    """Return the name of each stack that a deployment of ``plan`` makes or updates."""
    return frozenset(stack for stacks in planned_layers(plan).values() for stack in stacks)


def layers_before(plan: ClusterPlan, layer: LayerId) -> tuple[LayerId, ...]:
    """Return the layers that the stacks of ``layer`` wait for."""
    row = LAYERS[layer]
    return (*row.after, *(id for id, applies in row.after_if.items() if applies(plan)))


def pipeline_stacks(cluster: str) -> tuple[StackName, StackName]:
    """Return the names of the pipeline's stack and of its gate in the account of a cluster."""
    return names.stack(cluster, PIPELINE), names.stack(cluster, PIPELINE_GATE)


def fixed_stacks(cluster: str) -> frozenset[StackName]:
    """Return each name that a stack of a cluster may have, whatever its pools are."""
    layers = {stack_of(cluster, id) for id, layer in LAYERS.items() if layer.pools is None}
    return frozenset(layers.union(pipeline_stacks(cluster)))


def name_is_free(pool: config.Pool) -> Iterator[config.Mistake]:
    """Refuse the name of a pool whose stack would replace another of the cluster."""
    if pool.name in RESERVED_NAMES:
        todo = "choose another, such as the name of its accelerator"
        yield config.refuse("name", "the name of one of the cluster's own stacks", todo)


def stack_names(plan: ClusterPlan) -> frozenset[StackName]:
    """Return each name that a stack of ``plan`` may have."""
    pools = (names.stack(plan.name, pool.name) for pool in plan.all_pools)
    return fixed_stacks(plan.name).union(pools)
