"""Nodes that an upgrade of Kubernetes replaces, and nodes that stay until a person renews them."""

from collections.abc import Iterator, Sequence
from typing import Literal

from ultrascale.catalog import auto_mode, upgrades, versions
from ultrascale.errors import CatalogError
from ultrascale.frozen import Frozen
from ultrascale.plan.model import NodePoolPlan, NodesPlan, PoolPlan
from ultrascale.plan.model.node_pools import DisruptionReason
from ultrascale.plan.pools.disruption import is_kept
from ultrascale.plan.pools.node_groups import is_guarded

Fate = Literal["empty first", "rolls", "drifts", "kept", "new nodes only", "apart"]

_DRIFTED: DisruptionReason = "Drifted"
_NONE = "0"


class PoolUpgrade(Frozen):
    """Effect of an upgrade on the nodes of a pool, or of one of its shards."""

    pool: str  # Its name
    most: int  # Most nodes, all of which the upgrade concerns
    # ``empty first``: the pool must have no nodes when it is deployed. ``rolls``: the deploy
    # replaces them. ``drifts``: Karpenter or EKS Auto Mode replaces them by itself. ``kept``: they
    # drift, and stay. ``new nodes only``: they stay as they are. ``apart``: the upgrade does not
    # reach them.
    fate: Fate
    how: str  # In which steps, and what to do
    rolled_by_hand: bool  # Whether `ultrascale roll` renews them
    # Release of the nodes' image now and afterwards; empty where it has none of ours.
    images: tuple[str, ...]


def pool_upgrades(
    nodes: NodesPlan, pools: Sequence[PoolPlan], then: str
) -> tuple[PoolUpgrade, ...]:
    """Return the effect of an upgrade to the minor ``then`` on each of ``pools``."""
    return tuple(upgrade for pool in pools for upgrade in _upgrades(nodes, pool, then))


def _upgrades(nodes: NodesPlan, pool: PoolPlan, then: str) -> Iterator[PoolUpgrade]:
    if pool.is_node_pool:
        for node_pool in nodes.node_pools:
            if (node_pool.pool, node_pool.shard) == (pool.pool, pool.shard):
                fate, how = _drift(pool, node_pool)
                images = _images(pool, then) if pool.is_karpenter else ()
                yield PoolUpgrade(
                    pool=node_pool.name,
                    most=node_pool.max_nodes,
                    fate=fate,
                    how=how,
                    rolled_by_hand=fate == "kept" and is_kept(pool),
                    images=images,
                )
        return
    fate, how = _fate_of_group(pool)
    images = () if pool.facts.upgraded_by else _images(pool, then)
    yield PoolUpgrade(
        pool=pool.name,
        most=pool.max_nodes,
        fate=fate,
        how=how,
        rolled_by_hand=fate == "new nodes only",
        images=images,
    )


def _images(pool: PoolPlan, then: str) -> tuple[str, str]:
    try:
        return (pool.ami_release, versions.ami_release(then).version)
    except CatalogError:
        return (pool.ami_release, "")


def _fate_of_group(pool: PoolPlan) -> tuple[Fate, str]:
    """Return the deploy's effect on a group, and a note on it.

    Sources:
        https://docs.aws.amazon.com/eks/latest/userguide/capacity-blocks-mng.html
        https://docs.aws.amazon.com/eks/latest/userguide/managed-node-update-behavior.html
    """
    if pool.facts.upgraded_by:
        return "apart", pool.facts.upgraded_by
    if pool.is_self_managed:
        behind = upgrades.KUBELET_MINORS_BEHIND
        return "new nodes only", (
            f"nodes that run stay, up to {behind} minors behind; renew them by `ultrascale roll`"
        )
    if pool.purchase == "capacity-block":
        return "empty first", (
            "EKS upgrades the group of a Capacity Block at a size of 0 only: before its window, "
            "after it, or between jobs once its first hour is over"
        )
    if is_guarded(pool):
        return "empty first", (
            "a deploy fails while nodes of this pool run: a roll would break off their jobs"
        )
    order = (
        "ending a node before its successor starts"
        if pool.replace_before_launch
        else "starting a node before it ends another"
    )
    minutes = upgrades.EVICTION_MINUTES
    return "rolls", (
        f"{pool.max_unavailable} at a time, {order}; a pod that a disruption budget keeps for "
        f"{minutes} minutes fails the deploy"
    )


def _drift(pool: PoolPlan, node_pool: NodePoolPlan) -> tuple[Fate, str]:
    """Return the effect of drift: images follow the control plane's minor, so all nodes drift.

    Source: https://karpenter.sh/docs/tasks/managing-amis/
    """
    nodes = _nodes_at_a_time(node_pool, _DRIFTED)
    if nodes != _NONE:
        return "drifts", f"{nodes} of the nodes at a time, as soon as the control plane is upgraded"
    how = f"all drift, and the budget of 0 keeps them; {_renewal_words(pool)}"
    if pool.is_auto_mode:
        how += f"; EKS Auto Mode ends each after {auto_mode.NODE_DAYS} days at the latest"
    return "kept", how


def _renewal_words(pool: PoolPlan) -> str:
    if is_kept(pool):
        return "renew them by `ultrascale roll`"
    return "empty ones go by themselves, and the next pods bring new ones"


def _nodes_at_a_time(node_pool: NodePoolPlan, reason: DisruptionReason) -> str:
    """Return the nodes that may go at a time for ``reason``: by its first budget, 0 before all.

    Source: https://karpenter.sh/docs/concepts/disruption/#nodes
    """
    limits = [b.nodes for b in node_pool.budgets if not b.reasons or reason in b.reasons]
    return _NONE if _NONE in limits else next(iter(limits), "all")
