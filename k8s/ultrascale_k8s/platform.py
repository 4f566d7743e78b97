"""All charts of a cluster in the order of their application.

Charts are plain objects. Only the charts of etcd, the Neuron device plugin and Volcano are
constructs of cdk8s-plus-27, which takes as long to import as the CDK: it is imported only for a
cluster that has one of these charts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from importlib import import_module
from pathlib import Path
from typing import TypeVar

import cdk8s
from msgspec.structs import replace

from ultrascale import yaml_writer
from ultrascale.documents import JsonObject
from ultrascale.plan.model import (
    ClusterPlan,
    DevicesPlan,
    NodeClassPlan,
    NodePoolPlan,
    NodesPlan,
    PlannedPart,
    PoolPlan,
    PriorityClassPlan,
    StoragePlan,
)
from ultrascale_k8s._platform_chart import Charts, PlatformChart, built_chart, plain_chart
from ultrascale_k8s.access import access_objects, node_reader_objects
from ultrascale_k8s.block_calendar import block_calendar_objects
from ultrascale_k8s.devices import (
    dcgm_exporter_objects,
    efa_device_plugin_objects,
    neuron_monitor_objects,
    nvidia_device_plugin_objects,
)
from ultrascale_k8s.job_namespaces import job_namespace_objects, scaler_objects
from ultrascale_k8s.namespaces import controller_objects, namespace_objects
from ultrascale_k8s.neuron_scheduler import neuron_scheduler_objects
from ultrascale_k8s.node_group_controllers import (
    cluster_autoscaler_objects,
    termination_handler_objects,
)
from ultrascale_k8s.node_isolation import node_isolation_objects
from ultrascale_k8s.node_local_dns import node_local_dns_objects
from ultrascale_k8s.node_pools import NodePoolsChart
from ultrascale_k8s.objects import manifest
from ultrascale_k8s.queue_access import queue_access_objects
from ultrascale_k8s.volumes import lustre_access_objects, output_access_objects, volume_objects

# --- PriorityClasses of jobs ----------------------------------------------------------------------


def priority_class_objects(plans: Sequence[PriorityClassPlan]) -> list[JsonObject]:
    """Return a PriorityClass for each plan, never as the global default.

    The value and the preemption policy of an existing class cannot change: Kubernetes refuses the
    change. A class with another value needs another name.
    Source: https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/
    """
    return [
        manifest(
            "PriorityClass",
            plan.name,
            own_labels={},
            value=plan.value,
            # A pod that names no class keeps priority 0, below every class of ours.
            globalDefault=False,
            preemptionPolicy="PreemptLowerPriority" if plan.preempts else "Never",
        )
        for plan in plans
    ]


# --- All charts of a cluster in the order of their application ------------------------------------


_PlanT = TypeVar("_PlanT")
# Layers of the core; charts of parts come after the core's charts of a layer.
_AMONG_OTHERS = ("platform", "teams")


def define_charts(plan: ClusterPlan) -> Charts:
    """Return all charts of ``plan``."""
    copies = plan.copies or plan.images.cache

    def copied(charts: Iterable[PlatformChart]) -> tuple[PlatformChart, ...]:
        return tuple(replace(chart, copies=copies) for chart in charts)

    early = _charts_of_parts(part for part in plan.parts if part.is_applied_early)
    of_parts = _charts_of_parts(part for part in plan.parts if not part.is_applied_early)
    return Charts(
        system_node_pools=copied(_node_pool_charts(plan.nodes, plan.system_pools)),
        platform=copied(_platform(plan, early.get("platform", ()), of_parts.get("platform", ()))),
        teams=copied((*_teams(plan, early.get("teams", ())), *of_parts.get("teams", ()))),
        node_pools=copied(_node_pool_charts(plan.nodes, plan.pools)),
        of_layers={
            layer: copied(charts)
            for layer, charts in of_parts.items()
            if layer not in _AMONG_OTHERS
        },
    )


def node_pool_objects(
    node_class: NodeClassPlan, node_pools: Sequence[NodePoolPlan]
) -> Sequence[JsonObject]:
    """Return a node class, and the NodePools on it."""
    chart = NodePoolsChart(cdk8s.App(), "node-pools", node_class=node_class, node_pools=node_pools)
    return chart.to_json()


def write_manifests(charts: Charts, folder: Path) -> None:
    """Write one file for each chart, numbered in the order of application.

    Files of the previous synthesis are deleted: it may have been of another cluster.

    cdk8s would number files by dependencies between charts, which it expands to all their objects:
    that alone would take a tenth of a synthesis.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.glob("[0-9][0-9][0-9][0-9]-*.k8s.yaml"):
        file.unlink()
    for index, chart in enumerate(charts.all):
        documents = yaml_writer.dump_all(chart.manifests)
        file = folder / f"{index:04}-{chart.name}.k8s.yaml"
        file.write_text(documents, encoding="utf-8")


def _chart_of(
    name: str,
    objects: Callable[[_PlanT], Iterable[JsonObject]],
    plan: _PlanT | None,
    *,
    retained: bool = False,
) -> Iterator[PlatformChart]:
    """Yield the chart of a part of the plan; nothing if the cluster lacks the part."""
    if plan is not None:
        yield plain_chart(name, objects(plan), retained=retained)


def _charts_of_parts(parts: Iterable[PlannedPart]) -> Mapping[str, Sequence[PlatformChart]]:
    """Return the charts of parts, by the layer whose stacks apply them."""
    charts: dict[str, list[PlatformChart]] = {}
    for part in parts:
        if part.renderer is not None:
            module = import_module(f"{__package__}.{part.renderer}")
            own: Mapping[str, Iterable[PlatformChart]] = module.charts(part)
            for layer, each in own.items():
                charts.setdefault(layer, []).extend(each)
    return charts


def _platform(
    plan: ClusterPlan, early: Iterable[PlatformChart], of_parts: Iterable[PlatformChart]
) -> Iterator[PlatformChart]:
    policies = plan.network.policies
    yield from _chart_of("node-isolation", node_isolation_objects, plan.isolation)
    # In other clusters the VPC CNI add-on enforces policies, and owns the settings of it.
    if not any(addon.name == "vpc-cni" for addon in plan.control_plane.node_addons):
        yield plain_chart(
            "network-policy-controller", controller_objects(enforced=policies.enforced)
        )
    namespaces = namespace_objects(
        plan.namespaces, plan.control_plane.version, policies_of_jobs=policies.of_jobs
    )
    yield plain_chart("namespaces", namespaces, retained=True)
    yield plain_chart("priority-classes", priority_class_objects(plan.priority_classes))
    yield from _chart_of("cluster-autoscaler", cluster_autoscaler_objects, plan.nodes.autoscaler)
    yield from _chart_of(
        "node-termination-handler", termination_handler_objects, plan.nodes.termination_handler
    )
    # Nodes that were told to use the cache use it as long as they live, whatever new nodes are
    # told.
    yield from _chart_of(
        "node-local-dns", node_local_dns_objects, plan.network.node_local_dns, retained=True
    )
    yield from _device_plugins(plan.devices)
    yield from early
    yield from _access(plan)
    yield from _storage_charts(plan.storage, {namespace.name for namespace in plan.namespaces})
    yield from of_parts


def _access(plan: ClusterPlan) -> Iterator[PlatformChart]:
    access, classes = plan.access, plan.priority_classes
    if access.node_readers:
        yield plain_chart("node-readers", node_reader_objects(access.node_readers))
    if access.roles:
        teams = {namespace.name for namespace in plan.team_namespaces}
        bindings = [binding for binding in access.bindings if binding.namespace not in teams]
        yield plain_chart("access", access_objects(access.roles, bindings))
    yield from _chart_of("queue-access", queue_access_objects, access.queues)
    if any(entry.groups for entry in access.entries):
        policies = [*job_namespace_objects(plan.namespaces, classes)]
        if any(right.group == "keda.sh" for role in access.roles for right in role.rights):
            policies += scaler_objects(plan.namespaces)
        yield plain_chart("job-namespaces", policies)


def _teams(plan: ClusterPlan, of_parts: Iterable[PlatformChart]) -> Iterator[PlatformChart]:
    if not plan.team_namespaces:
        return
    namespaces = namespace_objects(
        plan.team_namespaces,
        plan.control_plane.version,
        policies_of_jobs=plan.network.policies.of_jobs,
    )
    yield plain_chart("team-namespaces", namespaces, retained=True)
    names = {namespace.name for namespace in plan.team_namespaces}
    if bindings := [binding for binding in plan.access.bindings if binding.namespace in names]:
        yield plain_chart("team-access", access_objects((), bindings))
    yield from of_parts
    yield from _storage_charts(plan.storage, names, prefix="team-")


def _storage_charts(
    storage: StoragePlan, namespaces: Set[str], *, prefix: str = ""
) -> Iterator[PlatformChart]:
    """Yield the volumes of claims in ``namespaces``, and the Jobs that open their file systems."""
    here = [volume for volume in storage.volumes if volume.claim.namespace in namespaces]
    for source in ("lustre", "bucket"):
        if plans := [volume for volume in here if volume.claim.source == source]:
            yield plain_chart(f"{prefix}{source}-volumes", volume_objects(plans), retained=True)
    output = storage.output_access
    jobs = [each for each in output.namespaces if each in namespaces] if output else []
    if output is not None and jobs:
        yield plain_chart(f"{prefix}output-access", output_access_objects(output, jobs))
    access = storage.lustre_access
    claims = [claim for claim in access.claims if claim.namespace in namespaces] if access else []
    if access is not None and claims:
        yield plain_chart(f"{prefix}lustre-access", lustre_access_objects(access.image, claims))


def _device_plugins(plan: DevicesPlan) -> Iterator[PlatformChart]:
    if plan.neuron is not None:
        from ultrascale_k8s.neuron import NeuronDevicePluginChart

        yield built_chart(
            NeuronDevicePluginChart(cdk8s.App(), "neuron-device-plugin", plan=plan.neuron)
        )
    yield from _chart_of("neuron-monitor", neuron_monitor_objects, plan.neuron_monitor)
    yield from _chart_of("neuron-scheduler", neuron_scheduler_objects, plan.neuron_scheduler)
    yield from _chart_of("nvidia-device-plugin", nvidia_device_plugin_objects, plan.nvidia)
    yield from _chart_of("dcgm-exporter", dcgm_exporter_objects, plan.dcgm)
    yield from _chart_of("efa-device-plugin", efa_device_plugin_objects, plan.efa)


def _node_pool_charts(nodes: NodesPlan, pools: Sequence[PoolPlan]) -> Iterator[PlatformChart]:
    """Yield the rights of each calendar, then each node class with the NodePools that use it."""
    names = {pool.name for pool in pools}
    classes = [made for made in nodes.classes if made.name in names]
    for node_pool in nodes.node_pools:
        if node_pool.calendar is not None and node_pool.node_class in names:
            yield plain_chart(f"block-calendar-{node_pool.name}", block_calendar_objects(node_pool))
    for node_class in classes:
        own = [each for each in nodes.node_pools if each.node_class == node_class.name]
        yield plain_chart(f"node-pool-{node_class.name}", node_pool_objects(node_class, own))
