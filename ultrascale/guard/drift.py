"""Drift of NodePools: nodes that Karpenter and EKS Auto Mode replace, within their budgets.

Sources:
    https://karpenter.sh/docs/concepts/disruption/#drift
    https://docs.aws.amazon.com/eks/latest/userguide/create-node-pool.html
"""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ultrascale.documents import JsonObject, look_up, mapping, objects, sequence, text
from ultrascale.guard.model import RolledPool, Rolling, hourly
from ultrascale.guard.objects import (
    NODE_CLASSES,
    NODE_POOL,
    KubernetesObject,
    Objects,
    is_reserved,
)
from ultrascale.guard.protection import fewer_protection, reserved_protection
from ultrascale.guard.templates import count, shown_change

# Kind of the node classes of EKS Auto Mode.
_AUTO_MODE_CLASS = "NodeClass"
_INSTANCE_TYPE = "node.kubernetes.io/instance-type"
_SIZE = "replicas"
_DRIFTED = "Drifted"
_DEFAULT_BUDGET = "10%"
_NONE = frozenset({"0", "0%"})
KARPENTER = "Karpenter"
"""Subject of a change of Karpenter's own version or settings."""

_OPENED = "the budget of 0 for drift goes"
# A node stays where it still meets new requirements; a new Karpenter hashes other fields, or not.
_PERHAPS = ("spec.requirements", f"{KARPENTER}'s", _OPENED)


def drifted_pools(
    applied: tuple[Objects, Objects], of_all: tuple[str, ...], region: str
) -> Iterator[RolledPool]:
    """Yield the NodePools whose nodes end, or no longer match their changed template.

    Args:
        applied: The objects in the cluster, of both sides.
        of_all: Changes that concern the nodes of every NodePool.
        region: Region, for prices.
    """
    old, new = applied
    for pool in old.of_kind(NODE_POOL):
        later = new.by_id.get(pool.id)
        if later is None:
            continue
        why = [*of_all, *_template_changes(pool, later), *_node_class(pool, old, new)]
        if not why and holds_drift_back(pool) and not holds_drift_back(later):
            why = [f"{_OPENED}, for nodes that drifted before"]
        if why:
            yield _drifted_pool(pool, later, tuple(dict.fromkeys(why)), region)
        yield from _surplus_nodes(pool, later, region)


def _surplus_nodes(
    pool: KubernetesObject, later: KubernetesObject, region: str
) -> Iterator[RolledPool]:
    """Yield the nodes above the size of a static NodePool that is lowered.

    The limit of a NodePool that is not static ends no running node: it only stops launches.

    Sources:
        https://karpenter.sh/docs/concepts/nodepools/#specreplicas
        https://github.com/kubernetes-sigs/karpenter/blob/main/pkg/controllers/static/deprovisioning/controller.go
        https://docs.aws.amazon.com/eks/latest/userguide/auto-static-capacity.html
    """
    before, after = nodes_of(pool), nodes_of(later)
    if _SIZE in pool.spec and before is not None and after is not None and after < before:
        why = (f"nodes from {before} to {after}",)
        at_once = "all at once, empty ones first, within the pods' disruption budgets"
        fewer = _rolled_pool(pool, "ends", before - after, at_once, why, region)
        lost, instead = fewer_protection() if is_reserved(pool) else ("", "")
        yield replace(fewer, lost=lost, instead=instead)


def disabled_pools(applied: tuple[Objects, Objects], region: str) -> Iterator[RolledPool]:
    """Yield the NodePools that stay, but lose their nodes because EKS Auto Mode is disabled.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/auto-disable.html

    Args:
        applied: The objects in the cluster, of both sides.
        region: Region, for prices.
    """
    old, new = applied
    for pool in old.of_kind(NODE_POOL):
        if _node_class_of(pool, "kind") == _AUTO_MODE_CLASS and pool.id in new.by_id:
            why = ("EKS Auto Mode is disabled, with which EKS ends all its instances",)
            yield _rolled_pool(pool, "rolls", nodes_of(pool), "all at once, by EKS", why, region)


def nodes_of(pool: KubernetesObject) -> int | None:
    """Return the most nodes of a NodePool; None if it sets no limit.

    A static NodePool states its nodes, unless a calendar sets them.
    """
    return count(look_up(pool.spec, _SIZE)) or count(look_up(pool.spec, "limits", "nodes"))


def ended_pool(pool: KubernetesObject, why: str, region: str) -> RolledPool:
    """Return the nodes that end with a deleted NodePool."""
    at_once = "all at once, within the pods' disruption budgets"
    waits = "the deployment waits minutes for them, and their controller ends the others after it"
    return _rolled_pool(pool, "ends", nodes_of(pool), at_once, (why, waits), region)


def _template_changes(pool: KubernetesObject, later: KubernetesObject) -> Iterator[str]:
    """Yield the changes of a NodePool that replace nodes: all but weight, limits and disruption."""
    for part in ("metadata", "spec"):
        before, after = (mapping(side.spec, "template", part) for side in (pool, later))
        yield from _fields(part, before, after)


def _node_class(pool: KubernetesObject, old: Objects, new: Objects) -> Iterator[str]:
    name = _node_class_of(pool, "name")
    for before in old.of_kind(*NODE_CLASSES):
        after = new.by_id.get(before.id)
        if before.name == name and after is not None:
            yield from _fields(before.kind, before.spec, after.spec)


def _node_class_of(pool: KubernetesObject, key: str) -> str:
    return text(pool.spec, "template", "spec", "nodeClassRef", key)


def _fields(kind: str, before: JsonObject, after: JsonObject) -> Iterator[str]:
    for key in {**before, **after}:
        old, new = before.get(key), after.get(key)
        if old != new:
            was, becomes = shown_change(old, new, most=60)
            yield f"{kind}.{key} from {was} to {becomes}"


def _drifted_pool(
    pool: KubernetesObject, later: KubernetesObject, why: tuple[str, ...], region: str
) -> RolledPool:
    budgets = _budgets(later)
    if holds_drift_back(later):
        at_once = "none: a budget of 0 holds drift back; a node is another one once it is renewed"
        return _rolled_pool(pool, "held", nodes_of(pool), at_once, why, region)
    # A budget with a schedule holds drift back only at its times.
    counts = [nodes for nodes, always in budgets if always]
    at_once = f"{' and '.join(counts)} at once, by drift" if counts else "all at once, by drift"
    rolling: Rolling = "may roll" if all(reason.startswith(_PERHAPS) for reason in why) else "rolls"
    return _rolled_pool(pool, rolling, nodes_of(pool), at_once, why, region)


def holds_drift_back(pool: KubernetesObject) -> bool:
    """Return whether a budget of 0 holds drift back at all times."""
    return any(nodes in _NONE and always for nodes, always in _budgets(pool))


def _budgets(pool: KubernetesObject) -> Sequence[tuple[str, bool]]:
    """Return the nodes of each budget for drift, and whether it holds at all times."""
    stated = "budgets" in mapping(pool.spec, "disruption")
    budgets = (
        objects(pool.spec, "disruption", "budgets") if stated else [{"nodes": _DEFAULT_BUDGET}]
    )
    return [
        (str(budget["nodes"]), "schedule" not in budget)
        for budget in budgets
        if "reasons" not in budget or _DRIFTED in sequence(budget, "reasons")
    ]


def _rolled_pool(
    pool: KubernetesObject,
    rolling: Rolling,
    nodes: int | None,
    at_once: str,
    why: tuple[str, ...],
    region: str,
) -> RolledPool:
    rolls = rolling in ("rolls", "may roll") and is_reserved(pool)
    lost, instead = reserved_protection() if rolls else ("", "")
    return RolledPool(
        pool=pool.name,
        stack=pool.holder[0],
        rolling=rolling,
        nodes=nodes,
        at_once=at_once,
        why=why,
        usd_per_hour=hourly(nodes, _instance_types(pool), region),
        lost=lost,
        instead=instead,
    )


def _instance_types(pool: KubernetesObject) -> Sequence[str]:
    for requirement in objects(pool.spec, "template", "spec", "requirements"):
        if requirement.get("key") == _INSTANCE_TYPE and requirement.get("operator") == "In":
            return [str(value) for value in sequence(requirement, "values")]
    return ()
