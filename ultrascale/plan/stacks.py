"""The layers of a cluster: its stacks, the order of their deployment and of their deletion."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Literal

from msgspec import field
from msgspec.structs import replace

from ultrascale import config
from ultrascale.core.table import all_parts
from ultrascale.frozen import Frozen
from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan, PoolPlan, WindowPlan
from ultrascale.plan.rules import rule

LayerId = str
"""The name of a row of the table of layers, of the core or of a part."""

Phase = Literal[
    "node-pools", "node-groups", "hyperpod", "platform", "add-ons", "cluster", "network"
]
"""A step of a teardown that deletes stacks."""

StackName = str
Condition = Callable[[ClusterPlan], bool]


class Layer(Frozen):
    """Stacks with one lifecycle."""

    exists: Condition = lambda _: True  # Whether a cluster has the layer
    # Pools with a stack each, named after the pool; None: the layer is one stack, named after the
    # layer.
    pools: Callable[[ClusterPlan], Sequence[PoolPlan]] | None = None
    after: tuple[LayerId, ...] = ()  # Layers that are deployed before it
    # Layers that are deployed before it in some clusters, with the condition.
    after_if: Mapping[LayerId, Condition] = field(default_factory=dict[LayerId, Condition])
    # Whether it launches accelerated nodes. They are paid for from the first minute: it is deployed
    # after all other layers, and its failure stops only the stacks that wait for it.
    costs_nodes: bool = False
    # Whether its deployment waits for nodes, and fails where EC2 has none.
    may_lack_capacity: bool = False
    # Pools with a node that must run before its deployment; None: it needs none.
    runs_on: Callable[[ClusterPlan], Sequence[PoolPlan]] | None = None
    taken_down_in: Phase = "platform"  # Step of a teardown that deletes it
    # Layers that are deleted before it, although they do not need it.
    outlives: tuple[LayerId, ...] = ()
    # Layer that a part's layer follows in the assembly; empty: it is the core's.
    follows: LayerId = ""
    # Other owners' layers that are deployed after a part's.
    before: tuple[LayerId, ...] = ()


def _node_groups(pools: Sequence[PoolPlan]) -> Sequence[PoolPlan]:
    return [pool for pool in pools if pool.is_node_group]


# In the order of the assembly: the CDK deploys in it, as far as the dependencies leave a choice,
# and deploys nothing after a failed stack. So layers whose nodes may lack capacity come late.
_CORE: Mapping[LayerId, Layer] = {
    # In an existing VPC only endpoints may be ours.
    "network": Layer(
        exists=lambda plan: plan.network.existing is None or bool(plan.network.interface_endpoints),
        taken_down_in="network",
    ),
    "cluster": Layer(after=("network",), taken_down_in="cluster"),
    "access": Layer(
        exists=lambda plan: bool(plan.access.entries),
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
        exists=lambda plan: (
            plan.storage.names_cluster or bool(plan.storage.lustre or plan.storage.buckets)
        ),
        after_if={
            "network": lambda plan: bool(plan.storage.lustre),
            "cluster": lambda plan: plan.storage.names_cluster,
        },
        taken_down_in="add-ons",
    ),
    "addons": Layer(
        exists=lambda plan: bool(plan.control_plane.workload_addons),
        after=("node-addons", "nodes", "system-node-groups", "system-node-pools"),
        # The driver's pods have credentials only where its account had a role before them.
        after_if={"storage": lambda plan: plan.storage.mounts_buckets},
        taken_down_in="add-ons",
    ),
    "registry": Layer(exists=lambda plan: bool(plan.images.repositories)),
    "images": Layer(
        exists=lambda plan: bool(plan.images.repositories and plan.images.builds),
        after=("registry",),
        # It builds the image of the backend, whose pods belong to the platform.
        outlives=("platform",),
    ),
    "image-cache": Layer(exists=lambda plan: plan.images.cache is not None),
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
        ),
    ),
    "karpenter": Layer(
        exists=lambda plan: plan.nodes.karpenter is not None,
        after=("network", "cluster", "platform"),
    ),
    "node-pools": Layer(
        # With pools or without: a stack that went with the last pool would leave its nodes running.
        exists=lambda plan: plan.nodes.karpenter is not None or plan.control_plane.auto_mode,
        after=("network", "cluster", "platform", "karpenter"),
        costs_nodes=True,
        taken_down_in="node-pools",
    ),
    "node-groups": Layer(
        pools=lambda plan: _node_groups(plan.pools),
        after=("network", "cluster", "scaling", "platform"),
        costs_nodes=True,
        may_lack_capacity=True,
        taken_down_in="node-groups",
    ),
}


@cache
def all_layers() -> Mapping[LayerId, Layer]:
    """Return the table of layers: the rows of the core, and behind them those of parts."""
    parts = {id: layer for part in all_parts() for id, layer in part.layers.items()}
    before: dict[LayerId, list[LayerId]] = {}
    behind: dict[LayerId, list[LayerId]] = {}
    for id, layer in parts.items():
        # The layer that it follows may be of a missing part.
        follows = layer.follows if layer.follows in {*_CORE, *parts} else "platform"
        behind.setdefault(follows, []).append(id)
        for later in layer.before:
            before.setdefault(later, []).append(id)
    rows: dict[LayerId, Layer] = {}

    def add(id: LayerId, layer: Layer) -> None:
        rows[id] = replace(layer, after=(*layer.after, *before.get(id, ())))
        for part in behind.get(id, ()):
            add(part, parts[part])

    for id, layer in _CORE.items():
        add(id, layer)
    return rows


@cache
def reserved_names() -> frozenset[str]:
    """Return the names that no pool may have."""
    layers = (id for id, layer in all_layers().items() if layer.pools is None)
    apart = (name for part in all_parts() for name in part.stacks_apart)
    # "default" is EKS Auto Mode's own NodeClass, and "jobs" is kept for a layer to come.
    return frozenset({*layers, *apart, "default", "jobs"})


def stack_of(cluster: str, layer: LayerId) -> StackName:
    """Return the name of the stack of a layer that is one stack."""
    return names.stack(cluster, layer)


def stacks_of(plan: ClusterPlan, layer: LayerId) -> tuple[StackName, ...]:
    """Return the names of a layer's stacks, whether ``plan`` has the layer or not."""
    pools = all_layers()[layer].pools
    if pools is None:
        return (stack_of(plan.name, layer),)
    return tuple(names.stack(plan.name, pool.name) for pool in pools(plan))


def planned_layers(plan: ClusterPlan) -> Mapping[LayerId, tuple[StackName, ...]]:
    """Return the stacks that a deployment of ``plan`` makes or updates, by layer."""
    return {
        id: stacks
        for id, layer in all_layers().items()
        if layer.exists(plan) and (stacks := stacks_of(plan, id))
    }


def planned_stacks(plan: ClusterPlan) -> frozenset[StackName]:
    """Return the name of each stack that a deployment of ``plan`` makes or updates."""
    return frozenset(stack for stacks in planned_layers(plan).values() for stack in stacks)


def stacks_that_may_lack_capacity(
    planned: Mapping[LayerId, Sequence[StackName]],
) -> tuple[StackName, ...]:
    """Return the stacks whose deployment fails where EC2 has no nodes for them."""
    may_lack = (id for id in planned if all_layers()[id].may_lack_capacity)
    return tuple(stack for id in may_lack for stack in planned[id])


def stacks_on_nodes(planned: Mapping[LayerId, Sequence[StackName]]) -> tuple[StackName, ...]:
    """Return the stacks that fail as long as none of their nodes runs."""
    return tuple(
        stack for id, stacks in planned.items() if all_layers()[id].runs_on for stack in stacks
    )


def node_windows(plan: ClusterPlan, layer: LayerId) -> tuple[WindowPlan, ...]:
    """Return the windows in which a layer can be deployed; empty: at any time."""
    runs_on = all_layers()[layer].runs_on
    windows = [pool.window for pool in runs_on(plan)] if runs_on else []
    known = [window for window in windows if window is not None]
    return tuple(known) if len(known) == len(windows) else ()


def not_due(plan: ClusterPlan, at: datetime) -> Mapping[StackName, datetime | None]:
    """Return the stacks that need nodes and can have none at ``at``.

    Args:
        plan: The cluster.
        at: The time that counts as now, in UTC.

    Returns:
        The start of their next window, by stack; None where the last one is over.
    """
    late: dict[StackName, datetime | None] = {}
    for layer, stacks in planned_layers(plan).items():
        windows = node_windows(plan, layer)
        if windows and not any(window.starts <= at < window.reclaimed_from for window in windows):
            ahead = min((window.starts for window in windows if window.starts > at), default=None)
            late |= dict.fromkeys(stacks, ahead)
    return late


def layers_before(plan: ClusterPlan, layer: LayerId) -> tuple[LayerId, ...]:
    """Return the layers that the stacks of ``layer`` wait for."""
    row = all_layers()[layer]
    return (*row.after, *(id for id, applies in row.after_if.items() if applies(plan)))


def stacks_apart(cluster: str) -> Mapping[StackName, str]:
    """Return the stacks of parts beside the layers, with what to do while they change."""
    apart = (row for part in all_parts() for row in part.stacks_apart.items())
    return {names.stack(cluster, name): todo for name, todo in apart}


def fixed_stacks(cluster: str) -> frozenset[StackName]:
    """Return every possible stack name of a cluster outside its pools."""
    layers = {stack_of(cluster, id) for id, layer in all_layers().items() if layer.pools is None}
    return frozenset(layers.union(stacks_apart(cluster)))


@rule
def name_is_free(pool: config.Pool) -> Iterator[config.Mistake]:
    """Refuse the name of a pool whose stack would replace another of the cluster."""
    if pool.name in reserved_names():
        todo = "choose another, such as the name of its accelerator"
        yield config.refuse("name", "the name of one of the cluster's own stacks", todo)


def stack_names(name: str, all_pools: Sequence[PoolPlan]) -> frozenset[StackName]:
    """Return every possible stack name of the cluster ``name``."""
    pools = (names.stack(name, pool.name) for pool in all_pools)
    return fixed_stacks(name).union(pools)
