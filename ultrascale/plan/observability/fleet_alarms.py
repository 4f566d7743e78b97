"""Alarms on nodes: idle, missing, broken."""

from collections.abc import Iterator, Mapping, Sequence

from ultrascale import config
from ultrascale.catalog import eks
from ultrascale.plan.model import AlarmPlan, FleetMetricsPlan, MetricPlan, PoolPlan
from ultrascale.plan.observability import fleet_metrics

_IDLE_MINUTES = 15
# Longer than node repair waits: what is still broken then, nobody repairs.
_BROKEN_MINUTES = eks.NODE_REPAIR_MINUTES + 10
# HyperNodes follow new nodes within seconds; so long the function has tried to have them made.
_HYPER_NODES_MINUTES = 10
# Long enough for a function that failed once, and for a rollout of it.
_SILENT_MINUTES = 15
# A plan's nodes take half an hour to come, and so does one that takes another's place.
_MISSING_MINUTES = 60
# Of a large fleet some nodes are always down: somebody is told of one in so many; our choice.
_DOWN_OF = 1_000


def fleet_alarms(
    cluster: config.Cluster, pools: Sequence[PoolPlan], function: FleetMetricsPlan
) -> Iterator[AlarmPlan]:
    """Yield the alarms of what the function measures, and that of a function that does not."""
    seconds = function.interval_minutes * 60
    yield from _idle(cluster.name, pools, seconds)
    yield _broken(cluster.name, seconds)
    if fleet_metrics.placed_pools(cluster, pools):
        yield _unplaced(cluster, seconds)
    if cluster.scheduling.topology_aware and fleet_metrics.placed_pools(cluster, pools):
        yield _without_hyper_nodes(cluster.name, seconds)
    yield from _missing(cluster.name, pools, seconds)
    if any(pool.is_hyperpod for pool in pools):
        yield _alarm(
            "hyperpod-recovery",
            "HyperPod reboots or replaces a node: a replacement takes 20 to 30 minutes, and "
            "longer where AWS has none. Without automatic recovery it waits for you.",
            {"m": fleet_metrics.metric(cluster.name, "nodes_in_recovery")},
            period=seconds,
            periods=1,
        )
    yield AlarmPlan(
        name="fleet-metrics",
        description=(
            "The function that measures the fleet has written nothing for a while: the dashboard "
            "and the alarms about nodes are blind. Its log says why."
        ),
        metrics={"m": _count_of_runs(cluster.name)},
        comparison="LessThanThreshold",
        threshold=1,
        period_seconds=seconds,
        periods=_SILENT_MINUTES * 60 // seconds,
        missing_is_wrong=True,
    )


def _idle(cluster: str, pools: Sequence[PoolPlan], seconds: int) -> Iterator[AlarmPlan]:
    reserved = [pool.accelerators_per_node for pool in pools if fleet_metrics.is_reserved(pool)]
    if reserved and any(pool.role == "burst" for pool in pools):
        yield _alarm(
            "reserved-idle",
            "Reserved accelerators of at least a node idle while burst nodes run: they are "
            "paid for twice. See which jobs run on burst nodes although they would fit, and "
            "whether a team's quota keeps them off.",
            {"m": fleet_metrics.metric(cluster, "reserved_idle_beside_burst")},
            threshold=min(reserved),
            period=seconds,
            periods=_IDLE_MINUTES * 60 // seconds,
        )


def _broken(cluster: str, seconds: int) -> AlarmPlan:
    return _alarm(
        "broken-nodes",
        "Nodes are not ready, or the node monitoring agent finds them broken, for longer than "
        "EKS takes to repair any. Nobody repairs those of pools whose repair is none, or repair "
        "is blocked, and they are paid for: `kubectl describe node NAME` says what is wrong. "
        "Drain it, then delete its NodeClaim or end its instance: another one is launched in "
        "its place.",
        _of_nodes(cluster, "broken_nodes"),
        f"{_DOWN_OF} * found / nodes",
        period=seconds,
        periods=_BROKEN_MINUTES * 60 // seconds,
    )


def _unplaced(cluster: config.Cluster, seconds: int) -> AlarmPlan:
    effect = (
        "by which Volcano keeps the nodes of a job close: jobs on them are slower, and those with "
        "mode hard never run there"
    )
    if cluster.scheduling.engine == "kueue":
        effect = "without which Kueue admits no job of a queue with a topology to them"
    return _alarm(
        "topology-unknown",
        f"Nodes lack the labels of AWS's network topology, {effect}. "
        "`kubectl get nodes -L topology.k8s.aws/network-node-layer-1` shows which. "
        "EKS writes them as a node joins, and asks EC2 by the cluster role: see whether "
        "`aws ec2 describe-instance-topology` answers for one of the instances, and "
        "replace the nodes that joined without.",
        _of_nodes(cluster.name, "nodes_without_topology"),
        f"{_DOWN_OF} * found / nodes",
        period=seconds,
        periods=_BROKEN_MINUTES * 60 // seconds,
    )


def _without_hyper_nodes(cluster: str, seconds: int) -> AlarmPlan:
    return _alarm(
        "hyper-nodes-missing",
        "Volcano lacks HyperNodes of groups of AWS's network, or nodes in them, although it was "
        "made to look again: gangs spread over groups that it does not know. See the log of "
        "deployment/volcano-controllers in volcano-system for what the API server refuses "
        "(Failed to create HyperNode), and `kubectl get hypernodes -L "
        "topology.k8s.aws/network-node-layer-1` for what is there.",
        {"m": fleet_metrics.metric(cluster, "hyper_nodes_missing")},
        period=seconds,
        periods=max(2, _HYPER_NODES_MINUTES * 60 // seconds),
    )


def _missing(cluster: str, pools: Sequence[PoolPlan], seconds: int) -> Iterator[AlarmPlan]:
    if owed := fleet_metrics.owed_pools(pools):
        yield _alarm(
            "reserved-missing",
            "Nodes of a training plan or an On-Demand Capacity Reservation are paid for and "
            "not in the cluster. See whether the stack of their pool is deployed, whether zone "
            "and plan or reservation are those you have (`ultrascale preflight`), and why none "
            "starts: the events of the HyperPod cluster (aws sagemaker list-cluster-events), "
            "of the NodePool's NodeClaims, or the activities of the Auto Scaling group.",
            {"m": fleet_metrics.metric(cluster, "nodes_missing")},
            threshold=max(1, round(sum(pool.initial_nodes for pool in owed) / _DOWN_OF)),
            period=seconds,
            periods=_MISSING_MINUTES * 60 // seconds,
        )


def _alarm(
    name: str,
    description: str,
    metrics: Mapping[str, MetricPlan],
    expression: str | None = None,
    *,
    threshold: int = 1,
    period: int,
    periods: int,
) -> AlarmPlan:
    return AlarmPlan(
        name=name,
        description=description,
        metrics=metrics,
        expression=expression,
        comparison="GreaterThanOrEqualToThreshold",
        threshold=threshold,
        period_seconds=period,
        periods=periods,
        # Another alarm tells of a function that does not measure.
        missing_is_wrong=False,
    )


def _of_nodes(cluster: str, measure: str) -> Mapping[str, MetricPlan]:
    """Return a count of nodes, and all nodes that run: a file's most may be far from them."""
    return {
        "found": fleet_metrics.metric(cluster, measure),
        "nodes": fleet_metrics.metric(cluster, "nodes"),
    }


def _count_of_runs(cluster: str) -> MetricPlan:
    nodes = fleet_metrics.metric(cluster, "nodes")
    return MetricPlan(
        namespace=nodes.namespace,
        name=nodes.name,
        dimensions=nodes.dimensions,
        statistic="SampleCount",
    )
