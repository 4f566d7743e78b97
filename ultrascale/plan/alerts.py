"""Of what somebody is told: alarms, events of HyperPod, and ends that are near."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from ultrascale import config
from ultrascale.catalog import cloudwatch, eks
from ultrascale.plan import capacity, fleet_metrics, names
from ultrascale.plan.control_plane import control_plane_alarms
from ultrascale.plan.model import (
    AlarmPlan,
    AlertsPlan,
    EventPlan,
    FleetMetricsPlan,
    LustrePlan,
    MetricPlan,
    PoolPlan,
    ReminderPlan,
)

_IDLE_MINUTES = 15
# Longer than node repair waits: what is still broken then, nobody repairs.
_BROKEN_MINUTES = eks.NODE_REPAIR_MINUTES + 10
# Long enough for a function that failed once, and for a rollout of it.
_SILENT_MINUTES = 15
# A plan's nodes take half an hour to come, and so does one that takes another's place.
_MISSING_MINUTES = 60
_FREE_SHARE = 0.1
# Of a large fleet some nodes are always down; our choice.
_DOWN_SHARE = 0.001
_GIB = 1024**3
_BEFORE_END = {"a-day": timedelta(hours=24), "two-hours": timedelta(hours=2)}
_WORDS = {"a-day": "24 hours", "two-hours": "2 hours"}
_SOURCE = ("aws.sagemaker",)


def plan_alerts(
    cluster: config.Cluster,
    pools: Sequence[PoolPlan],
    *,
    lustre: Sequence[LustrePlan],
    function: FleetMetricsPlan,
) -> AlertsPlan | None:
    """Return who is told of what, None where the file names nobody."""
    observability = cluster.observability
    if observability is None or observability.alarms is None:
        return None
    hyperpod = any(pool.provisioner == capacity.HYPERPOD for pool in pools)
    return AlertsPlan(
        email=observability.alarms.email,
        topic=names.alarm_topic(cluster.name),
        alarms=(
            *_fleet_alarms(cluster, pools, function, hyperpod=hyperpod),
            *control_plane_alarms(cluster),
            *(_free_capacity(each) for each in lustre),
        ),
        events=(*_hyperpod_events(cluster.name),) if hyperpod else (),
        reminders=(*_reminders(cluster.name, pools),),
    )


def _fleet_alarms(
    cluster: config.Cluster,
    pools: Sequence[PoolPlan],
    function: FleetMetricsPlan,
    *,
    hyperpod: bool,
) -> Iterator[AlarmPlan]:
    seconds = function.interval_minutes * 60
    reserved = [pool.accelerators_per_node for pool in pools if fleet_metrics.is_reserved(pool)]
    if reserved and any(pool.role == "burst" for pool in pools):
        yield AlarmPlan(
            name="reserved-idle",
            description=(
                "Reserved accelerators of at least a node idle while burst nodes run: they are "
                "paid for twice. See which jobs run on burst nodes although they would fit, and "
                "whether a team's quota keeps them off."
            ),
            metrics={"m": fleet_metrics.metric(cluster.name, "reserved_idle_beside_burst")},
            comparison="GreaterThanOrEqualToThreshold",
            threshold=min(reserved),
            period_seconds=seconds,
            periods=_IDLE_MINUTES * 60 // seconds,
            # Another alarm tells of a function that does not measure.
            missing_is_wrong=False,
        )
    yield _broken_nodes(cluster, pools, seconds)
    if placed := fleet_metrics.placed_pools(cluster, pools):
        yield AlarmPlan(
            name="topology-unknown",
            description=(
                "Nodes lack the labels of AWS's network topology, by which Volcano keeps the nodes "
                "of a job close: jobs on them are slower, and those with mode hard never run "
                "there. `kubectl get nodes -L topology.k8s.aws/network-node-layer-1` shows which. "
                "EKS writes them as a node joins, and asks EC2 by the cluster role: see whether "
                "`aws ec2 describe-instance-topology` answers for one of the instances, and "
                "replace the nodes that joined without."
            ),
            metrics={"m": fleet_metrics.metric(cluster.name, "nodes_without_topology")},
            comparison="GreaterThanOrEqualToThreshold",
            threshold=_some(sum(pool.max_nodes for pool in placed)),
            period_seconds=seconds,
            periods=_BROKEN_MINUTES * 60 // seconds,
            missing_is_wrong=False,
        )
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
            metrics={"m": fleet_metrics.metric(cluster.name, "nodes_missing")},
            comparison="GreaterThanOrEqualToThreshold",
            threshold=_some(sum(pool.initial_nodes for pool in owed)),
            period_seconds=seconds,
            periods=_MISSING_MINUTES * 60 // seconds,
            missing_is_wrong=False,
        )
    if hyperpod:
        yield AlarmPlan(
            name="hyperpod-recovery",
            description=(
                "HyperPod reboots or replaces a node: a replacement takes 20 to 30 minutes, and "
                "longer where AWS has none. Without automatic recovery it waits for you."
            ),
            metrics={"m": fleet_metrics.metric(cluster.name, "nodes_in_recovery")},
            comparison="GreaterThanOrEqualToThreshold",
            threshold=1,
            period_seconds=seconds,
            periods=1,
            missing_is_wrong=False,
        )
    yield AlarmPlan(
        name="fleet-metrics",
        description=(
            "The function that measures the fleet has written nothing for a while: the dashboard "
            "and the alarm about idle reserved accelerators are blind. Its log says why."
        ),
        metrics={"m": _count_of_runs(cluster.name)},
        comparison="LessThanThreshold",
        threshold=1,
        period_seconds=seconds,
        periods=_SILENT_MINUTES * 60 // seconds,
        missing_is_wrong=True,
    )


def _broken_nodes(cluster: config.Cluster, pools: Sequence[PoolPlan], seconds: int) -> AlarmPlan:
    nodes = sum(pool.max_nodes for pool in pools)
    return AlarmPlan(
        name="broken-nodes",
        description=(
            "Nodes are not ready, or the node monitoring agent finds them broken, for longer than "
            "EKS takes to repair any. Nobody repairs those of Karpenter, of self-managed groups "
            "and of reserved pools, and they are paid for: `kubectl describe node NAME` says what "
            "is wrong. Drain it, then delete its NodeClaim or end its instance: another one is "
            "launched in its place."
        ),
        metrics={"m": fleet_metrics.metric(cluster.name, "broken_nodes")},
        comparison="GreaterThanOrEqualToThreshold",
        threshold=_some(nodes),
        period_seconds=seconds,
        periods=_BROKEN_MINUTES * 60 // seconds,
        missing_is_wrong=False,
    )


def _some(nodes: int) -> int:
    """Return how many of ``nodes`` somebody is told of."""
    return max(1, round(nodes * _DOWN_SHARE))


def _count_of_runs(cluster: str) -> MetricPlan:
    nodes = fleet_metrics.metric(cluster, "nodes")
    return MetricPlan(
        namespace=nodes.namespace,
        name=nodes.name,
        dimensions=nodes.dimensions,
        statistic="SampleCount",
    )


def _free_capacity(lustre: LustrePlan) -> AlarmPlan:
    """Return the alarm of a file system that fills up.

    A full storage target fails writes although others have room.

    Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/fs-metrics.html
    """
    return AlarmPlan(
        name=f"free-capacity-{lustre.name}",
        description=(
            f"Less than {_FREE_SHARE:.0%} of the {lustre.capacity_gib} GiB of the file system "
            f"{lustre.name} are free: checkpoints will fail. Delete old ones, or raise "
            "capacity_gib."
        ),
        # The sum over all storage targets, of which each reports once a minute.
        metrics={
            "m": MetricPlan(
                namespace=cloudwatch.FSX,
                name="FreeDataStorageCapacity",
                dimensions={"FileSystemId": lustre.file_system_id},
                statistic="Sum",
            )
        },
        comparison="LessThanThreshold",
        threshold=round(lustre.capacity_gib * _GIB * _FREE_SHARE),
        period_seconds=60,
        periods=15,
        missing_is_wrong=False,
    )


def _hyperpod_events(cluster: str) -> Iterator[EventPlan]:
    """Yield the events of a HyperPod cluster that need somebody.

    Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-cluster-events-reference.html
    """
    name = {"ClusterName": [cluster]}
    yield EventPlan(
        name="hyperpod-node",
        pattern=_pattern(
            "Node Health Event", {**name, "HealthSummary": {"HealthStatus": ["Unhealthy"]}}
        ),
        message=(
            f"A HyperPod node of {cluster} is unhealthy: <instance>. <reason> Repair: <repair>. "
            "<advice>"
        ),
        paths={
            "instance": "$.detail.InstanceId",
            "reason": "$.detail.HealthSummary.HealthStatusReason",
            "repair": "$.detail.HealthSummary.RepairAction",
            "advice": "$.detail.HealthSummary.Recommendation",
        },
    )
    yield EventPlan(
        name="hyperpod-cluster",
        pattern=_pattern("State Change", {**name, "ClusterStatus": ["Failed", "RollingBack"]}),
        message=f"The HyperPod cluster {cluster} is <status>. <reason>",
        paths={"status": "$.detail.ClusterStatus", "reason": "$.detail.FailureMessage"},
    )
    yield EventPlan(
        name="hyperpod-error",
        pattern=_pattern("Event", {"EventDetails": {**name, "EventLevel": ["Error"]}}),
        message=f"HyperPod cluster {cluster}, group <group>, instance <instance>: <description>",
        paths={
            "group": "$.detail.EventDetails.InstanceGroupName",
            "instance": "$.detail.EventDetails.InstanceId",
            "description": "$.detail.EventDetails.Description",
        },
    )


def _pattern(kind: str, detail: Mapping[str, object]) -> Mapping[str, object]:
    return {
        "source": list(_SOURCE),
        "detail-type": [f"SageMaker HyperPod Cluster {kind}"],
        "detail": detail,
    }


def _reminders(cluster: str, pools: Sequence[PoolPlan]) -> Iterator[ReminderPlan]:
    """Yield a reminder some time before each window ends; the shards of a pool share one."""
    for name, pool in {pool.pool: pool for pool in pools}.items():
        if pool.window is None:
            continue
        what = pool.purchase.replace("-", " ")
        ends, usable = pool.window.ends, pool.window.usable_until
        for key, before in _BEFORE_END.items():
            yield ReminderPlan(
                name=f"{name}-{key}",
                at=ends - before,
                # SNS refuses a subject of 100 characters: there is no room for the pool as well.
                # https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
                subject=f"{cluster}: {what} ends in {_WORDS[key]}",
                message=(
                    f"The {what} of pool {name} of {cluster} ends at {_text(ends)}. Its nodes can "
                    f"be used until {_text(usable)}: let jobs write their checkpoints before. "
                    "Buy an extension now, or take the pool out of the cluster file afterwards. "
                    "(This message comes back each year while the pool stays in the file.)"
                ),
            )


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
