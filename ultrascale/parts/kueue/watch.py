"""Kueue's queues and networks in metrics."""

from collections.abc import Sequence

from ultrascale import config
from ultrascale.parts.kueue import facts
from ultrascale.parts.kueue.plan import queued_pools, queues_of
from ultrascale.plan.model import PlacedNodes, PoolPlan, Watch


def watch_kueue(cluster: config.Cluster, pools: Sequence[PoolPlan]) -> Watch:
    """Return the metrics, graphs and alarms of Kueue and JobSet."""
    if cluster.scheduling.engine != "kueue":
        return Watch()
    queues = queues_of(cluster.scheduling, queued_pools(pools))
    placing = {name for queue in queues if queue.topology for name in queue.prefer}
    stated = tuple(queue.name for queue in cluster.scheduling.queues)
    return Watch(
        queued=facts.QUEUE_KINDS.entries_in(stated or (facts.DEFAULT_LOCAL_QUEUE,)),
        placed=PlacedNodes(
            pools=tuple(sorted({pool.pool for pool in pools if pool.pool in placing})),
            effect="without which Kueue admits no job of a queue with a topology to them",
        ),
    )
