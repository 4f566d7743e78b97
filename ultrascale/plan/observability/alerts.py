"""Messages to the alarm topic: alarms, HyperPod's events, and reservations that end soon."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from ultrascale import config
from ultrascale.catalog import cloudwatch
from ultrascale.plan import names
from ultrascale.plan.model import (
    AlarmPlan,
    AlertsPlan,
    EventPlan,
    FleetMetricsPlan,
    LustrePlan,
    MetricPlan,
    PoolPlan,
    ReminderPlan,
    ServiceDemandPlan,
)
from ultrascale.plan.observability.control_plane import control_plane_alarms
from ultrascale.plan.observability.fleet_alarms import fleet_alarms
from ultrascale.plan.observability.services import service_alarms

_FREE_SHARE = 0.1
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
    services: Sequence[ServiceDemandPlan],
) -> AlertsPlan | None:
    """Return who is told of what, None where the file names nobody."""
    observability = cluster.observability
    if observability is None or observability.alarms is None:
        return None
    hyperpod = any(pool.is_hyperpod for pool in pools)
    return AlertsPlan(
        email=observability.alarms.email,
        topic=names.alarm_topic(cluster.name),
        alarms=(
            *fleet_alarms(cluster, pools, function),
            *service_alarms(cluster, function, services),
            *control_plane_alarms(cluster),
            *(_free_capacity(each) for each in lustre),
        ),
        events=(*_hyperpod_events(cluster.name),) if hyperpod else (),
        reminders=(*_reminders(cluster.name, pools),),
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
