"""Namespaces whose pods may read their Nodes, to have ranks in the order of the network."""

from collections.abc import Sequence

from ultrascale import config
from ultrascale.core.engine import engine_of
from ultrascale.plan.model import NamespacePlan, PoolPlan, QueueingPlan
from ultrascale.plan.network.layers import pools_with_layers

FEWEST_ORDERED = 3
"""Fewest nodes whose order matters: the first pod of two is rank 0 in any."""


def plan_node_readers(
    cluster: config.Cluster,
    pools: Sequence[PoolPlan],
    queueing: QueueingPlan | None,
    namespaces: Sequence[NamespacePlan],
) -> tuple[str, ...]:
    """Return the namespaces whose pods may read nodes; none where no job of theirs does.

    Args:
        cluster: The cluster file.
        pools: Plans of its pools.
        queueing: Queues with quotas; None where the engine has none.
        namespaces: Namespaces that the platform makes.
    """
    scheduling = cluster.scheduling
    by_scheduler = queueing is not None and all(queue.topology for queue in queueing.queues)
    if (
        scheduling.rendezvous.ranks != "topology"
        or not engine_of(scheduling).queues_jobs
        or by_scheduler
    ):
        return ()
    # A job may run on several pools.
    if sum(pool.max_nodes for pool in pools_with_layers(pools)) < FEWEST_ORDERED:
        return ()
    return tuple(namespace.name for namespace in namespaces if namespace.training)
