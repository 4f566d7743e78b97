"""Configuration of CloudWatch's add-on: one exporter of each kind on a node."""

from collections.abc import Iterator, Mapping, Sequence

from ultrascale import catalog, config
from ultrascale.catalog import addons, cloudwatch, hyperpod
from ultrascale.plan import names
from ultrascale.plan.addons import ON_SYSTEM_NODES, installed_addon
from ultrascale.plan.model import AddonPlan, PoolPlan, ScalePlan

_EVERY_TAINT = [{"operator": "Exists"}]
ON_SAMPLED_NODES: Mapping[str, object] = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
                for key, value in (
                    (names.ROLE_LABEL, names.SYSTEM_ROLE),
                    (names.SAMPLED_LABEL, "true"),
                )
            ]
        }
    }
}
"""Affinity of agents that need not run on every node."""


def plan_container_insights(
    cluster: config.Cluster, pools: Sequence[PoolPlan], scale: ScalePlan
) -> AddonPlan:
    """Return CloudWatch's add-on.

    On a large fleet its DaemonSets run on system nodes and on those that somebody labels, and
    Container Insights, whose agent on each node asks the API server, is off.

    Raises:
        CatalogError: No source states a version for the cluster's.
    """
    observability = cluster.observability
    assert observability is not None
    insights = scale.measured_nodes == "all"
    gpus = gpu_exporter_types(cluster, pools) if insights else ()
    neuron = _neuron_monitor_types(cluster, pools) if insights else ()
    placed: Mapping[str, object] = {} if insights else {"affinity": ON_SAMPLED_NODES}
    fluent_bit: Mapping[str, object] = {"fluentBit": placed} if placed else {}
    settings: Mapping[str, object] = {
        # One agent, on each node: the other one of the default only serves what is off below.
        "agents": [{"name": "cloudwatch-agent", **placed}],
        # All of its DaemonSets have to run beside the accelerators.
        "tolerations": _EVERY_TAINT,
        "manager": {"affinity": ON_SYSTEM_NODES},
        # Accelerators, EFA and HyperPod are part of it.
        "containerInsights": {"enabled": insights},
        "otelContainerInsights": {"enabled": False},
        # It would change every pod at its creation, and is billed by itself.
        "applicationSignals": {"enabled": False},
        "containerLogs": {"enabled": observability.container_logs, **fluent_bit},
        "dcgmExporter": _exporter(gpus, compute_types=(hyperpod.COMPUTE_TYPE_HYPERPOD,)),
        "neuronMonitor": _exporter(neuron),
    }
    return installed_addon(cluster, addons.CLOUDWATCH_OBSERVABILITY, settings)


def gpu_exporter_types(cluster: config.Cluster, pools: Sequence[PoolPlan]) -> tuple[str, ...]:
    """Return the instance types whose GPUs the exporter of CloudWatch's add-on reads.

    It starts a DCGM of its own. A node must run one: beside a second one the EKS node monitoring
    agent was seen to find the GPUs broken, and node repair takes the node away. So it runs on
    HyperPod's nodes alone, which that agent stays off; everywhere else runs our exporter, which
    asks the agent's DCGM. HyperPod's own add-on has an exporter as well.

    Sources:
        https://github.com/aws/containers-roadmap/issues/2763
        https://github.com/aws-observability/helm-charts/blob/main/charts/amazon-cloudwatch-observability/templates/linux/dcgm-exporter-daemonset.yaml
    """
    own = any(pool.is_hyperpod and pool.accelerator == names.NVIDIA_GPU for pool in pools)
    if not own or _has_hyperpod_addon(cluster):
        return ()
    return tuple(f"{hyperpod.TYPE_PREFIX}{name}" for name in _types("nvidia"))


def _neuron_monitor_types(cluster: config.Cluster, pools: Sequence[PoolPlan]) -> tuple[str, ...]:
    """Return the instance types whose Neuron devices the monitor of the add-on reads.

    It takes the place of ours, wherever that runs, and the list of types that it comes with lacks
    some. HyperPod's own add-on has a monitor as well.
    """
    if not any(pool.accelerator == names.NEURON_DEVICE for pool in pools):
        return ()
    plain = (*_types("neuron"),)
    prefixed = tuple(f"{hyperpod.TYPE_PREFIX}{name}" for name in plain)
    return plain if _has_hyperpod_addon(cluster) else (*plain, *prefixed)


def _types(kind: str) -> Iterator[str]:
    for name, spec in sorted(catalog.INSTANCE_TYPES.items()):
        if spec.announced and spec.accelerator and spec.accelerator.kind == kind:
            yield name


def _has_hyperpod_addon(cluster: config.Cluster) -> bool:
    return cluster.observability is not None and cluster.observability.hyperpod_addon


def _exporter(
    instance_types: Sequence[str], *, compute_types: Sequence[str] = ()
) -> Mapping[str, object]:
    if not instance_types:
        return {"enabled": False}
    terms = {names.INSTANCE_TYPE_LABEL: instance_types}
    if compute_types:
        terms[hyperpod.COMPUTE_TYPE] = compute_types
    expressions = [
        {"key": key, "operator": "In", "values": list(values)} for key, values in terms.items()
    ]
    required = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    return {
        "enabled": True,
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
    }


def log_groups(cluster: config.Cluster) -> tuple[str, ...]:
    """Return the log groups that the add-on writes to."""
    observability = cluster.observability
    assert observability is not None
    kinds = cloudwatch.CONTAINER_LOGS if observability.container_logs else ()
    return tuple(
        cloudwatch.log_group(cluster.name, kind) for kind in (cloudwatch.PERFORMANCE_LOGS, *kinds)
    )
