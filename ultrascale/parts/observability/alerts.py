"""Messages to the alarm topic: alarms, events, and reservations that end soon."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from ultrascale import config
from ultrascale.catalog import cloudwatch, eks
from ultrascale.parts.observability import fleet_metrics
from ultrascale.parts.observability.control_plane import control_plane_alarms
from ultrascale.parts.observability.model import AlertsPlan, LedgerPlan, ReminderPlan
from ultrascale.parts.observability.section import Alarms
from ultrascale.plan import names
from ultrascale.plan.metrics import metric
from ultrascale.plan.model import AlarmPlan, LustrePlan, MetricPlan, PoolPlan, Watch

# --- Alarms on nodes: idle, missing, broken -------------------------------------------------------


_IDLE_MINUTES = 15
# Longer than node repair waits: a node that is still broken then is nobody's to repair.
_BROKEN_MINUTES = eks.NODE_REPAIR_MINUTES + 10
# A plugin that restarts takes its devices away for a moment.
_UNINITIALIZED_MINUTES = 2
# Long enough for a function that failed once, and for a rollout of it.
_SILENT_MINUTES = 15
# A plan's nodes take half an hour to come, and so does a replacement.
_MISSING_MINUTES = 60
# On a large fleet some nodes are always down: one in this many raises an alarm; our choice.
_DOWN_OF = 1_000
# Our choice: the forecast is made once a day.
_UNUSED_PERCENT = 20
_DAY_SECONDS = 86_400


def fleet_alarms(
    cluster: str, pools: Sequence[PoolPlan], watches: Sequence[Watch]
) -> Iterator[AlarmPlan]:
    """Yield the alarms on the function's measurements, and the alarm on a function without any."""
    seconds = fleet_metrics.seconds_between(pools)
    yield from _idle(cluster, pools, seconds)
    yield _broken(cluster, seconds)
    yield _uninitialized(cluster, seconds)
    placed = fleet_metrics.placed_nodes(watches)
    if placed is not None and placed.pools:
        yield _unplaced(cluster, placed.effect, seconds)
    yield from _missing(cluster, pools, seconds)
    for watch in watches:
        yield from watch.alarms
    words = (
        "The function that measures the fleet has written nothing for a while: the dashboard and "
        "the alarms about nodes are blind. Its log says why."
    )
    yield _silence("fleet-metrics", words, metric(cluster, "nodes"), seconds)


def _silence(name: str, description: str, written: MetricPlan, seconds: int) -> AlarmPlan:
    """Return the alarm on a metric that nobody writes."""
    return AlarmPlan(
        name=name,
        description=description,
        metrics={"m": replace(written, statistic="SampleCount")},
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
            f"wrong. Where the reason is {eks.LOST_DCGM}, restart the agent first, by `ultrascale "
            "repair FILE NAME --restart-agent`: it keeps this verdict after a single lost "
            "connection, of healthy GPUs too. If the node is broken still, drain it, then delete "
            "its NodeClaim or end its instance: another one is launched in its place."
        ),
        metrics=_node_metrics(cluster, "broken_nodes"),
        expression=f"{_DOWN_OF} * found / nodes",
        period_seconds=seconds,
        periods=_BROKEN_MINUTES * 60 // seconds,
    )


def _uninitialized(cluster: str, seconds: int) -> AlarmPlan:
    return AlarmPlan(
        name="nodes-not-initialized",
        description=(
            f"Nodes take no work {fleet_metrics.START_MINUTES} minutes after they joined, and are "
            "paid for: a start-up taint stays, a plugin offers no accelerators or EFA interfaces, "
            "or Karpenter has not initialized them. The log of the function of the fleet metrics "
            "names them, and `ultrascale status FILE --pools` says why. Delete the pod of the "
            "driver or plugin on the node, which starts it anew, before you end the node."
        ),
        metrics={"m": metric(cluster, "nodes_not_initialized")},
        threshold=1,
        period_seconds=seconds,
        periods=max(_UNINITIALIZED_MINUTES * 60 // seconds, 1),
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


def _ledger_alarms(cluster: str, ledger: LedgerPlan) -> Iterator[AlarmPlan]:
    seconds = ledger.settings.every
    words = (
        "Nothing was written to the ledger of accelerators for a while: this time will be shown as "
        "not measured, and no team is charged for it. The log of the function of the fleet metrics "
        "says why."
    )
    yield _silence("ledger", words, metric(cluster, "ledger_rows"), seconds)
    for name in (reservation.pool for reservation in ledger.settings.reserved):
        yield AlarmPlan(
            name=f"unused-ahead-{name}",
            description=(
                f"At least {_UNUSED_PERCENT} % of the hours left of the reservations of pool "
                f"{name}, of a week where these have no end, will go unused, by the use of the "
                "last weeks and the queue: this is the lower end of an interval of 80 %. "
                "`ultrascale ledger FILE --ahead 7` shows hours, money and the ways out."
            ),
            metrics={"m": replace(metric(cluster, "unused_ahead", Pool=name), statistic="Maximum")},
            threshold=_UNUSED_PERCENT,
            period_seconds=_DAY_SECONDS,
            periods=1,
        )
    if ledger.settings.idle is not None:
        yield AlarmPlan(
            name="idle-jobs",
            description=(
                "Jobs hold GPUs that they have not used for as long as observability.idle_jobs "
                "says; with `then: end` they are ended 15 minutes after this. `ultrascale status "
                "FILE JOB` says since when, at what cost, and the way back; `ultrascale ledger "
                "FILE --by job` names them."
            ),
            metrics={"m": metric(cluster, "idle_jobs")},
            threshold=1,
            period_seconds=seconds,
            periods=1,
        )


# --- Messages to the alarm topic: alarms, events, and reservations that end soon ------------------


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
    ledger: LedgerPlan | None,
) -> AlertsPlan:
    """Return the alerts to ``alarms.email``."""
    return AlertsPlan(
        email=alarms.email,
        topic=names.alarm_topic(cluster.name),
        alarms=(
            *fleet_alarms(cluster.name, pools, watches),
            *(() if ledger is None else _ledger_alarms(cluster.name, ledger)),
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
