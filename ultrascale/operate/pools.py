"""How many nodes of each pool of a cluster take work, and why the others do not."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ultrascale.jobs.cluster import Cluster
from ultrascale.jobs.fields import Object, condition, field, label, name, text
from ultrascale.jobs.kinds import NODE
from ultrascale.operate.nodes import NODE_CLAIM, NODE_POOL, OF_NODE_POOL, trouble, unfit
from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan, PoolPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolNodes:
    """The nodes of a pool, or of one of its shards.

    Attributes:
        pool: Its name.
        fewest: Fewest nodes that it may have.
        most: Most nodes that it may have.
        kept: Nodes that its static NodePool is set to; None where it has none.
        nodes: Nodes that there are.
        ready: Those that take work: ready, with their accelerators and EFA interfaces.
        drifted: NodeClaims on an older template; those of groups nobody counts in Kubernetes.
        unfit: Why the others take none, and how many for each reason.
        coming: Why NodeClaims are no nodes yet, and how many for each reason.
    """

    pool: str
    fewest: int
    most: int
    kept: int | None
    nodes: int
    ready: int
    drifted: int
    unfit: Mapping[str, int]
    coming: Mapping[str, int]


def pool_nodes(cluster: Cluster, plan: ClusterPlan) -> Sequence[PoolNodes]:
    """Return how far the nodes of each pool of ``plan`` are.

    Raises:
        ClusterError: Nodes may not be listed, or nobody answers.
    """
    by_pool: dict[tuple[str, str], list[Object]] = defaultdict(list)
    for node in cluster.items(NODE.path(), {"labelSelector": names.POOL_LABEL}):
        by_pool[label(node, names.POOL_LABEL), label(node, names.SHARD_LABEL)].append(node)
    kept, claims = _kept(cluster, plan), _claims(cluster, plan)
    return [
        _pool(pool, by_pool[_key(pool)], _node_pools(plan, pool), kept, claims)
        for pool in plan.all_pools
    ]


def _pool(
    pool: PoolPlan,
    nodes: Sequence[Object],
    node_pools: Sequence[str],
    kept: Mapping[str, int],
    claims: Mapping[str, Sequence[Object]],
) -> PoolNodes:
    reasons = Counter(why for each in nodes if (why := unfit(each, pool)))
    own = [claim for each in node_pools for claim in claims.get(each, ())]
    coming = [each for each in own if not text(each, "status", "nodeName")]
    return PoolNodes(
        pool=pool.name,
        fewest=pool.min_nodes,
        most=pool.max_nodes,
        kept=next((kept[each] for each in node_pools if each in kept), None),
        nodes=len(nodes),
        ready=len(nodes) - reasons.total(),
        drifted=sum(1 for each in own if condition(each, "Drifted")),
        unfit=dict(reasons.most_common()),
        coming=dict(Counter(trouble(each) or "being launched" for each in coming).most_common()),
    )


def _key(pool: PoolPlan) -> tuple[str, str]:
    return pool.labels.get(names.POOL_LABEL, ""), pool.labels.get(names.SHARD_LABEL, "")


def _node_pools(plan: ClusterPlan, pool: PoolPlan) -> Sequence[str]:
    return [
        each.name for each in plan.node_pools if (each.pool, each.shard) == (pool.pool, pool.shard)
    ]


def _kept(cluster: Cluster, plan: ClusterPlan) -> Mapping[str, int]:
    counts = {name(each): field(each, "spec", "replicas") for each in _all(cluster, plan)}
    return {key: count for key, count in counts.items() if isinstance(count, int)}


def _all(cluster: Cluster, plan: ClusterPlan) -> Iterable[Object]:
    return cluster.items(NODE_POOL.path()) if plan.node_pools else ()


def _claims(cluster: Cluster, plan: ClusterPlan) -> Mapping[str, Sequence[Object]]:
    """Return the NodeClaims of each NodePool."""
    found: dict[str, list[Object]] = defaultdict(list)
    for each in cluster.items(NODE_CLAIM.path()) if plan.node_pools else ():
        found[label(each, OF_NODE_POOL)].append(each)
    return found
