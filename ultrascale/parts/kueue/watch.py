"""Kueue's queues and networks in metrics."""

from collections.abc import Sequence

from ultrascale import config
from ultrascale.parts.kueue import facts
from ultrascale.parts.kueue.plan import queued_pools, queues_of
from ultrascale.plan.metrics import metric
from ultrascale.plan.model import AlarmPlan, PlacedNodes, PoolPlan, Watch

# A node that Karpenter launches takes some minutes, and a reserved one that is rebooted 20.
_HELD_MINUTES = 30


def watch_kueue(cluster: config.Cluster, pools: Sequence[PoolPlan], seconds: int) -> Watch:
    """Return the metrics, graphs and alarms of Kueue and JobSet.

    Args:
        cluster: The cluster file.
        pools: All pools.
        seconds: Time between two measurements of the fleet, in seconds.
    """
    if cluster.scheduling.engine != "kueue":
        return Watch()
    queues = queues_of(cluster.scheduling, queued_pools(pools))
    placing = {name for queue in queues if queue.topology for name in queue.prefer}
    stated = tuple(queue.name for queue in cluster.scheduling.queues)
    return Watch(
        alarms=(_held(cluster.name, seconds),),
        queued=facts.QUEUE_KINDS.entries_in(stated or (facts.DEFAULT_LOCAL_QUEUE,)),
        placed=PlacedNodes(
            pools=tuple(sorted({pool.pool for pool in pools if pool.pool in placing})),
            effect="without which Kueue admits no job of a queue with a topology to them",
        ),
    )


def _held(cluster: str, seconds: int) -> AlarmPlan:
    return AlarmPlan(
        name="jobs-wait-for-lost-nodes",
        description=(
            "Jobs that Kueue has admitted wait for pods that they have lost, and keep their other "
            "nodes: where a pod takes a node, each hour costs as many node-hours as the metric "
            "counts. Kueue ends that wait by no limit. `ultrascale queue FILE` and `ultrascale "
            "status FILE JOB` say which jobs. Bring a node back (`ultrascale scale`, `ultrascale "
            "repair`), or cancel the job: it goes on from its checkpoint when it is sent again."
        ),
        metrics={"m": metric(cluster, "pods_held")},
        threshold=1,
        period_seconds=seconds,
        periods=_HELD_MINUTES * 60 // seconds,
    )
