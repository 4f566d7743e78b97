"""HyperPod's nodes and teams in metrics."""

from collections.abc import Iterator, Mapping, Sequence

from ultrascale import config
from ultrascale.catalog import hyperpod
from ultrascale.parts.hyperpod.section import settings_of
from ultrascale.parts.observability.section import Observability
from ultrascale.plan import names
from ultrascale.plan.jobs.controllers import queue_kinds_of
from ultrascale.plan.metrics import Lines, graph, metric
from ultrascale.plan.model import (
    AlarmPlan,
    EventPlan,
    GraphPlan,
    ManagedNodes,
    NodeHealth,
    PoolPlan,
    Watch,
)

_SOURCE = ("aws.sagemaker",)
_HEALTH_METRIC = "hyperpod_node_health_status_"
_STATUSES = (
    "schedulable",
    "unschedulable",
    "unschedulable_pending_reboot",
    "unschedulable_pending_replacement",
)


def watch_hyperpod(cluster: config.Cluster, pools: Sequence[PoolPlan], seconds: int) -> Watch:
    """Return HyperPod's metrics, graphs and alarms.

    Args:
        cluster: The cluster file.
        pools: All pools.
        seconds: Time between two measurements of the fleet, in seconds.
    """
    own = [pool for pool in pools if pool.is_hyperpod]
    governance = settings_of(cluster).task_governance
    teams = () if governance is None else governance.teams
    queues = [names.team_queue(team.name) for team in teams]
    kinds = next(queue_kinds_of(cluster), None) if teams else None
    return Watch(
        queued=None if kinds is None else kinds.entries_in(queues),
        teams={names.team_namespace(team.name): team.name for team in teams},
        nodes=_nodes(cluster, own),
        alarms=(_recovery(cluster.name, seconds),) if own else (),
        events=(*_events(cluster.name),) if own else (),
        health=(_health(cluster.name),) if own else (),
    )


def _nodes(cluster: config.Cluster, pools: Sequence[PoolPlan]) -> ManagedNodes:
    """Return the nodes in the terms of CloudWatch's agents.

    Its exporter of GPUs starts a DCGM of its own. A node must run one: beside a second one the EKS
    node monitoring agent was seen to report the GPUs as broken, and node repair takes the node
    away. So it runs on HyperPod's nodes alone, which that agent stays off; everywhere else runs our
    exporter, which asks the agent's DCGM. HyperPod's own add-on has an exporter and a monitor as
    well.

    Sources:
        https://github.com/aws/containers-roadmap/issues/2763
        https://github.com/aws-observability/helm-charts/blob/main/charts/amazon-cloudwatch-observability/templates/linux/dcgm-exporter-daemonset.yaml
    """
    section = cluster.section(Observability)
    by_addon = section is not None and section.hyperpod_addon
    note = (
        "What the accelerators of HyperPod's nodes do is in the Prometheus workspace "
        f"{cluster.name}, where HyperPod's own add-on writes it."
    )
    return ManagedNodes(
        side="hyperpod",
        type_prefix=hyperpod.TYPE_PREFIX,
        compute_type=(hyperpod.COMPUTE_TYPE, hyperpod.COMPUTE_TYPE_HYPERPOD),
        gpus=not by_addon and any(pool.accelerator == names.NVIDIA_GPU for pool in pools),
        neuron=not by_addon,
        note=note if pools else "",
        health=NodeHealth(
            label=hyperpod.HEALTH_STATUS,
            healthy=hyperpod.HEALTHY,
            checking=hyperpod.UNDER_CHECKS,
        ),
    )


def _recovery(cluster: str, seconds: int) -> AlarmPlan:
    return AlarmPlan(
        name="hyperpod-recovery",
        description=(
            "HyperPod reboots or replaces a node: a replacement takes 20 to 30 minutes, and "
            "longer where AWS has none. Without automatic recovery it waits for you."
        ),
        metrics={"m": metric(cluster, "nodes_in_recovery")},
        period_seconds=seconds,
        periods=1,
    )


def _health(cluster: str) -> GraphPlan:
    lines = Lines(cluster=cluster)
    return graph(
        "HyperPod node health",
        [
            lines.insight_of_all_nodes(f"{_HEALTH_METRIC}{status}", status.replace("_", " "))
            for status in _STATUSES
        ],
        "nodes",
    )


def _events(cluster: str) -> Iterator[EventPlan]:
    """Yield the events of a HyperPod cluster that need a person.

    Source:
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-cluster-events-reference.html
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
