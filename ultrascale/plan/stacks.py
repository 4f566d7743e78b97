"""The stacks that a cluster may have in its account, and those that its plan has."""

from ultrascale.config.pools import RESERVED_NAMES
from ultrascale.plan import names
from ultrascale.plan.capacity import NODE_GROUPS, NODE_POOLS
from ultrascale.plan.model import ClusterPlan


def stack_names(plan: ClusterPlan) -> frozenset[str]:
    """Return every name that a stack of ``plan`` may have."""
    layers = RESERVED_NAMES | {pool.name for pool in plan.all_pools}
    return frozenset(names.stack(plan.name, layer) for layer in layers)


def planned_stacks(plan: ClusterPlan) -> frozenset[str]:
    """Return the name of each stack that a deployment of ``plan`` makes or updates."""
    layers = {"network", "cluster", "access", "platform", *_layers(plan)}
    return frozenset(names.stack(plan.name, layer) for layer in layers)


def _layers(plan: ClusterPlan) -> set[str]:
    groups = {pool.name for pool in plan.all_pools if pool.provisioner in NODE_GROUPS}
    system = any(pool.provisioner in NODE_POOLS for pool in plan.system_pools)
    hyperpod, observability = plan.hyperpod, plan.observability
    governed = hyperpod is not None and hyperpod.governance is not None
    there = {
        "node-addons": bool(plan.control_plane.node_addons),
        "addons": bool(plan.control_plane.workload_addons),
        "nodes": plan.control_plane.auto_mode,
        "scaling": bool(groups),
        "system-node-pools": system,
        "storage": bool(plan.lustre or plan.buckets),
        "backend": plan.backend is not None and plan.backend.database is not None,
        "image-cache": plan.image_cache is not None,
        "registry": bool(plan.repositories),
        "images": bool(plan.repositories and plan.image_builds),
        "karpenter": plan.karpenter is not None,
        "node-pools": plan.karpenter is not None or plan.control_plane.auto_mode,
        "hyperpod-chart": plan.hyperpod_chart is not None,
        "hyperpod-groups": hyperpod is not None,
        "governance": governed,
        "teams": governed,
        "observability": observability is not None,
        "hyperpod-metrics": observability is not None and observability.hyperpod_addon is not None,
    }
    return groups | {layer for layer, made in there.items() if made}
