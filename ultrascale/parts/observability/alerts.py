"""Messages to the alarm topic: alarms, events, and reservations that end soon."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from ultrascale import config
from ultrascale.catalog import cloudwatch
from ultrascale.parts.observability.control_plane import control_plane_alarms
from ultrascale.parts.observability.fleet_alarms import fleet_alarms
from ultrascale.parts.observability.model import AlertsPlan, ReminderPlan
from ultrascale.parts.observability.section import Alarms
from ultrascale.plan import names
from ultrascale.plan.model import AlarmPlan, LustrePlan, MetricPlan, PoolPlan, Watch

_FREE_SHARE = 0.1
_GIB = 1024**3
_BEFORE_END = {"a-day": timedelta(hours=24), "two-hours": timedelta(hours=2)}
_WORDS = {"a-day": "24 hours", "two-hours": "2 hours"}


def plan_alerts(
    cluster: config.Cluster,
    alarms: Alarms,
    pools: Sequence[PoolPlan],
    *,
    lustre: Sequence[LustrePlan],
    watches: Sequence[Watch],
) -> AlertsPlan:
    """Return the alerts to ``alarms.email``."""
    return AlertsPlan(
        email=alarms.email,
        topic=names.alarm_topic(cluster.name),
        alarms=(
            *fleet_alarms(cluster.name, pools, watches),
            *control_plane_alarms(cluster.name, cluster.kubernetes),
            *(_free_capacity(system) for system in lustre),
        ),
        events=tuple(event for watch in watches for event in watch.events),
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
        # The sum over all storage targets, each of which reports once a minute.
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
