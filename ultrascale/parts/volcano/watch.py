"""Volcano's queues and networks in metrics."""

from collections.abc import Sequence

from ultrascale import config
from ultrascale.parts.volcano import facts
from ultrascale.plan import names
from ultrascale.plan.metrics import metric
from ultrascale.plan.model import AlarmPlan, PlacedNodes, PoolPlan, Watch
from ultrascale.plan.network.layers import pools_with_layers, topology_layers

_HYPER_NODES = ("topology.volcano.sh", "v1alpha1", "hypernodes")
# HyperNodes follow new nodes within seconds; the function has tried this long to have them made.
_HYPER_NODES_MINUTES = 10


def watch_volcano(cluster: config.Cluster, pools: Sequence[PoolPlan], seconds: int) -> Watch:
    """Return Volcano's metrics, graphs and alarms.

    Args:
        cluster: The cluster file.
        pools: All pools.
        seconds: Time between two measurements of the fleet, in seconds.
    """
    if cluster.scheduling.engine != "volcano":
        return Watch()
    queued = facts.QUEUE_KINDS.entries_in([queue.name for queue in cluster.scheduling.queues])
    if not cluster.scheduling.topology_aware:
        return Watch(queued=queued)
    own = pools_with_layers(pools)
    return Watch(
        queued=queued,
        placed=PlacedNodes(
            pools=tuple(sorted({pool.pool for pool in own})),
            effect="by which Volcano keeps the nodes of a job close: jobs on them are slower, and "
            "those with mode hard never run there",
            layers=tuple(map(names.network_layer_label, range(topology_layers(pools), 0, -1))),
            objects=_HYPER_NODES,
        ),
        alarms=(_without_hyper_nodes(cluster.name, seconds),) if own else (),
    )


def _without_hyper_nodes(cluster: str, seconds: int) -> AlarmPlan:
    return AlarmPlan(
        name="hyper-nodes-missing",
        description=(
            "Volcano lacks HyperNodes of groups of AWS's network, or nodes in them, although it "
            "was made to look again: gangs spread over groups that it does not know. See the log "
            "of deployment/volcano-controllers in volcano-system for what the API server refuses "
            "(Failed to create HyperNode), and `kubectl get hypernodes -L "
            "topology.k8s.aws/network-node-layer-1` for what is there."
        ),
        metrics={"m": metric(cluster, "hyper_nodes_missing")},
        period_seconds=seconds,
        periods=max(2, _HYPER_NODES_MINUTES * 60 // seconds),
    )
