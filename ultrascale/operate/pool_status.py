"""Number of nodes of each pool that take work, and the reasons why other nodes do not."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import field

from ultrascale.cluster_api.objects import (
    NODE,
    NODE_CLAIM,
    NODE_POOL,
    Object,
    condition,
    label,
    name,
)
from ultrascale.cluster_api.server import Cluster
from ultrascale.documents import look_up, text
from ultrascale.frozen import Frozen
from ultrascale.operate.node_pools import OF_NODE_POOL, trouble, unfit
from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan, NodesPlan, PoolPlan

# Answer of `unfit` for a node that takes work.
_FIT = ""


class PoolNodes(Frozen):
    """Counts of the nodes of a pool, or of a shard."""

    pool: str  # Its name
    fewest: int  # Fewest nodes that it may have
    most: int  # Most nodes that it may have
    kept: int | None  # Count of its static NodePool; None without one
    nodes: int  # Number of nodes
    ready: int  # Nodes that take work: ready, with their accelerators and EFA interfaces
    drifted: int  # NodeClaims on an older template. Kubernetes does not know this of node groups.
    unfit: Mapping[str, int]  # Number of nodes by the reason why they take no work
    coming: Mapping[str, int]  # Number of NodeClaims by the reason why they are not nodes yet


class _Claims(Frozen, kw_only=False):
    """Counts of the NodeClaims of a NodePool."""

    drifted: Counter[bool] = field(default_factory=Counter[bool])
    coming: Counter[str] = field(default_factory=Counter[str])


def pool_nodes(cluster: Cluster, plan: ClusterPlan) -> Sequence[PoolNodes]:
    """Return the counts of the nodes of each pool.

    Raises:
        ClusterError: The user may not list nodes, or the API server cannot be reached.
    """
    pools = {_pool_labels(pool): pool for pool in plan.all_pools}
    # Nodes are counted as they arrive: a hundred thousand are too many for the memory.
    states: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for node in cluster.items(NODE.path(), {"labelSelector": names.POOL_LABEL}):
        key = label(node, names.POOL_LABEL), label(node, names.SHARD_LABEL)
        if key in pools:
            states[key][unfit(node, pools[key])] += 1
    kept, claims = _static_counts(cluster, plan.nodes), _claims(cluster, plan.nodes)
    return [
        _counts_of_pool(
            pool, states[_pool_labels(pool)], _node_pools(plan.nodes, pool), kept, claims
        )
        for pool in plan.all_pools
    ]


def _counts_of_pool(
    pool: PoolPlan,
    states: Counter[str],
    node_pools: Sequence[str],
    kept: Mapping[str, int],
    claims: Mapping[str, _Claims],
) -> PoolNodes:
    own = [claims[claim] for claim in node_pools if claim in claims]
    return PoolNodes(
        pool=pool.name,
        fewest=pool.min_nodes,
        most=pool.max_nodes,
        kept=next((kept[claim] for claim in node_pools if claim in kept), None),
        nodes=states.total(),
        ready=states[_FIT],
        drifted=sum(claim.drifted[True] for claim in own),
        unfit={why: count for why, count in states.most_common() if why != _FIT},
        coming=dict(sum((claim.coming for claim in own), Counter[str]()).most_common()),
    )


def _pool_labels(pool: PoolPlan) -> tuple[str, str]:
    return pool.labels.get(names.POOL_LABEL, ""), pool.labels.get(names.SHARD_LABEL, "")


def _node_pools(nodes: NodesPlan, pool: PoolPlan) -> Sequence[str]:
    return [
        node_pool.name
        for node_pool in nodes.node_pools
        if (node_pool.pool, node_pool.shard) == (pool.pool, pool.shard)
    ]


def _static_counts(cluster: Cluster, nodes: NodesPlan) -> Mapping[str, int]:
    counts = {
        name(manifest): look_up(manifest, "spec", "replicas")
        for manifest in _all_node_pools(cluster, nodes)
    }
    return {key: count for key, count in counts.items() if isinstance(count, int)}


def _all_node_pools(cluster: Cluster, nodes: NodesPlan) -> Iterable[Object]:
    return cluster.items(NODE_POOL.path()) if nodes.node_pools else ()


def _claims(cluster: Cluster, nodes: NodesPlan) -> Mapping[str, _Claims]:
    claims: dict[str, _Claims] = defaultdict(_Claims)
    for claim in cluster.items(NODE_CLAIM.path()) if nodes.node_pools else ():
        own = claims[label(claim, OF_NODE_POOL)]
        own.drifted[bool(condition(claim, "Drifted"))] += 1
        if not text(claim, "status", "nodeName"):
            own.coming[trouble(claim) or "being launched"] += 1
    return claims
