"""Alarms on nodes: idle, missing, broken."""

from collections.abc import Iterator, Mapping, Sequence

from ultrascale.catalog import eks
from ultrascale.parts.observability import fleet_metrics
from ultrascale.plan.metrics import metric
from ultrascale.plan.model import AlarmPlan, MetricPlan, PoolPlan, Watch

_IDLE_MINUTES = 15
# Longer than node repair waits: a node that is still broken then is nobody's to repair.
_BROKEN_MINUTES = eks.NODE_REPAIR_MINUTES + 10
# Long enough for a function that failed once, and for a rollout of it.
_SILENT_MINUTES = 15
# A plan's nodes take half an hour to come, and so does a replacement.
_MISSING_MINUTES = 60
# On a large fleet some nodes are always down: one in this many raises an alarm; our choice.
_DOWN_OF = 1_000


def fleet_alarms(
    cluster: str, pools: Sequence[PoolPlan], watches: Sequence[Watch]
) -> Iterator[AlarmPlan]:
    """Yield the alarms on the function's measurements, and the alarm on a function without any."""
    seconds = fleet_metrics.seconds_between(pools)
    yield from _idle(cluster, pools, seconds)
    yield _broken(cluster, seconds)
    placed = fleet_metrics.placed_nodes(watches)
    if placed is not None and placed.pools:
        yield _unplaced(cluster, placed.effect, seconds)
    yield from _missing(cluster, pools, seconds)
    for watch in watches:
        yield from watch.alarms
    yield AlarmPlan(
        name="fleet-metrics",
        description=(
            "The function that measures the fleet has written nothing for a while: the dashboard "
            "and the alarms about nodes are blind. Its log says why."
        ),
        metrics={"m": _count_of_runs(cluster)},
        comparison="LessThanThreshold",
        threshold=1,
        period_seconds=seconds,
        periods=_SILENT_MINUTES * 60 // seconds,
        missing_is_wrong=True,
    )


def _idle(cluster: str, pools: Sequence[PoolPlan], seconds: int) -> Iterator[AlarmPlan]:
    reserved = [pool.accelerators_per_node for pool in pools if fleet_metrics.is_reserved(pool)]
    if reserved and any(pool.role == "burst" for pool in pools):
        yield AlarmPlan(
            name="reserved-idle",
            description=(
                "Reserved accelerators of at least a node idle while burst nodes run: they are "
                "paid for twice. See which jobs run on burst nodes although they would fit, and "
                "whether a team's quota keeps them off."
            ),
            metrics={"m": metric(cluster, "reserved_idle_beside_burst")},
            threshold=min(reserved),
            period_seconds=seconds,
            periods=_IDLE_MINUTES * 60 // seconds,
        )


def _broken(cluster: str, seconds: int) -> AlarmPlan:
    return AlarmPlan(
        name="broken-nodes",
        description=(
            "Nodes are not ready, or the node monitoring agent finds them broken, for longer than "
            "EKS takes to repair any. Nobody repairs those of pools whose repair is none, or "
            "repair is blocked, and they are paid for: `kubectl describe node NAME` says what is "
            "wrong. Drain it, then delete its NodeClaim or end its instance: another one is "
            "launched in its place."
        ),
        metrics=_node_metrics(cluster, "broken_nodes"),
        expression=f"{_DOWN_OF} * found / nodes",
        period_seconds=seconds,
        periods=_BROKEN_MINUTES * 60 // seconds,
    )


def _unplaced(cluster: str, effect: str, seconds: int) -> AlarmPlan:
    return AlarmPlan(
        name="topology-unknown",
        description=(
            f"Nodes lack the labels of AWS's network topology, {effect}. "
            "`kubectl get nodes -L topology.k8s.aws/network-node-layer-1` shows which. "
            "EKS writes them as a node joins, and asks EC2 by the cluster role: see whether "
            "`aws ec2 describe-instance-topology` answers for one of the instances, and "
            "replace the nodes that joined without."
        ),
        metrics=_node_metrics(cluster, "nodes_without_topology"),
        expression=f"{_DOWN_OF} * found / nodes",
        period_seconds=seconds,
        periods=_BROKEN_MINUTES * 60 // seconds,
    )


def _missing(cluster: str, pools: Sequence[PoolPlan], seconds: int) -> Iterator[AlarmPlan]:
    if owed := fleet_metrics.owed_pools(pools):
        yield AlarmPlan(
            name="reserved-missing",
            description=(
                "Nodes of a training plan or an On-Demand Capacity Reservation are paid for and "
                "not in the cluster. See whether the stack of their pool is deployed, whether zone "
                "and plan or reservation are those you have (`ultrascale preflight`), and why none "
                "starts: the events of the HyperPod cluster (aws sagemaker list-cluster-events), "
                "of the NodePool's NodeClaims, or the activities of the Auto Scaling group."
            ),
            metrics={"m": metric(cluster, "nodes_missing")},
            threshold=max(1, round(sum(pool.initial_nodes for pool in owed) / _DOWN_OF)),
            period_seconds=seconds,
            periods=_MISSING_MINUTES * 60 // seconds,
        )


def _node_metrics(cluster: str, measure: str) -> Mapping[str, MetricPlan]:
    """Return a count of nodes, and all running nodes: a file's most may be far from them."""
    return {
        "found": metric(cluster, measure),
        "nodes": metric(cluster, "nodes"),
    }


def _count_of_runs(cluster: str) -> MetricPlan:
    nodes = metric(cluster, "nodes")
    return MetricPlan(
        namespace=nodes.namespace,
        name=nodes.name,
        dimensions=nodes.dimensions,
        statistic="SampleCount",
    )
