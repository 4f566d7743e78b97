"""All charts of a cluster, in the order in which they are applied."""

from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import Protocol, TypeVar

import cdk8s
from constructs import Construct
from msgspec.structs import replace

from ultrascale import yaml_writer
from ultrascale.documents import JsonObject
from ultrascale.plan.model import (
    BackendPlan,
    ClusterPlan,
    NodeClassPlan,
    NodePoolPlan,
    PoolPlan,
)
from ultrascale_k8s._platform_chart import Charts, PlatformChart
from ultrascale_k8s.access import AccessChart
from ultrascale_k8s.backend import BackendChart, BackendRightsChart
from ultrascale_k8s.cluster_autoscaler import ClusterAutoscalerChart
from ultrascale_k8s.dcgm import DcgmExporterChart
from ultrascale_k8s.efa import EfaDevicePluginChart
from ultrascale_k8s.etcd import EtcdChart
from ultrascale_k8s.front import FrontChart, FrontIngressChart, FrontRoutesChart
from ultrascale_k8s.function_rights import (
    BlockCalendarChart,
    FleetMetricsChart,
    ServiceMetricsChart,
    WriteCanaryChart,
)
from ultrascale_k8s.kueue.admission import QueueGateChart
from ultrascale_k8s.kueue.certificate import JobSetCertificateChart
from ultrascale_k8s.kueue.network_policy import QueueingIngressChart
from ultrascale_k8s.kueue.queues import (
    KueueObjectsChart,
    cluster_queue,
    cohort,
    local_queues,
    resource_flavor,
    topology,
    workload_priority,
)
from ultrascale_k8s.lustre_access import LustreAccessChart
from ultrascale_k8s.namespaces import NamespacesChart
from ultrascale_k8s.network_policy import NetworkPolicyControllerChart
from ultrascale_k8s.neuron import NeuronDevicePluginChart
from ultrascale_k8s.neuron_monitor import NeuronMonitorChart
from ultrascale_k8s.neuron_scheduler import NeuronSchedulerChart
from ultrascale_k8s.node_isolation import NodeIsolationChart
from ultrascale_k8s.node_local_dns import NodeLocalDnsChart
from ultrascale_k8s.node_pools import NodePoolsChart
from ultrascale_k8s.node_readers import NodeReadersChart
from ultrascale_k8s.node_termination_handler import TerminationHandlerChart
from ultrascale_k8s.nvidia import NvidiaDevicePluginChart
from ultrascale_k8s.output_access import OutputAccessChart
from ultrascale_k8s.queue_access import QueueAccessChart
from ultrascale_k8s.scheduling import PriorityClassesChart, QueueChart
from ultrascale_k8s.serving import ServingControllersChart
from ultrascale_k8s.volcano.chart import VolcanoChart
from ultrascale_k8s.volcano.crds import VolcanoCrdsChart
from ultrascale_k8s.volcano.webhooks import VolcanoWebhooksChart
from ultrascale_k8s.volumes import VolumesChart

_PlanT = TypeVar("_PlanT", contravariant=True)


def define_charts(plan: ClusterPlan) -> Charts:
    """Define every chart of ``plan``."""
    app = cdk8s.App()

    copies = plan.mirror or plan.image_cache

    def copied(charts: Iterator[PlatformChart]) -> tuple[PlatformChart, ...]:
        return tuple(replace(chart, copies=copies) for chart in charts)

    return Charts(
        system_node_pools=copied(_node_pools(app, plan, plan.system_pools)),
        platform=copied(_platform(app, plan)),
        scheduling=copied(_queues(app, plan)),
        front=copied(_front(app, plan)),
        teams=copied(_teams(app, plan)),
        node_pools=copied(_node_pools(app, plan, plan.pools)),
    )


def write_canary_objects(plan: ClusterPlan) -> Sequence[JsonObject]:
    """Return the objects of the write canary of ``plan``, its namespace first.

    Raises:
        ValueError: The plan has no canary.
    """
    if plan.observability is None or plan.observability.write_latency is None:
        raise ValueError("a cluster without an objective for writes has no canary")
    app, canary = cdk8s.App(), plan.observability.write_latency
    namespaces = NamespacesChart(
        app,
        "namespaces",
        plans=[each for each in plan.namespaces if each.name == canary.namespace],
        kubernetes_version=plan.control_plane.version,
    )
    rights = WriteCanaryChart(app, "write-canary", plan=canary)
    charts = (PlatformChart(chart=chart, retained=False) for chart in (namespaces, rights))
    return [manifest for chart in charts for manifest in chart.manifests]


def node_pool_objects(
    node_class: NodeClassPlan, node_pools: Sequence[NodePoolPlan]
) -> Sequence[JsonObject]:
    """Return a node class, and the NodePools on it."""
    chart = NodePoolsChart(cdk8s.App(), "node-pools", node_class=node_class, node_pools=node_pools)
    return PlatformChart(chart=chart, retained=False).manifests


def write_manifests(charts: Charts, folder: Path) -> None:
    """Write one file for each chart, numbered in the order they are applied.

    Those of the synthesis before go: it may have been another cluster's.

    cdk8s numbers files by dependencies between charts, which it takes for dependencies between
    all their objects: that alone would be a tenth of a synthesis.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.glob("[0-9][0-9][0-9][0-9]-*.k8s.yaml"):
        file.unlink()
    for index, chart in enumerate(charts.all):
        documents = yaml_writer.dump_all(chart.manifests)
        file = folder / f"{index:04}-{chart.name}.k8s.yaml"
        file.write_text(documents, encoding="utf-8")


class _Maker(Protocol[_PlanT]):
    """A chart that is made from one part of the plan."""

    def __call__(self, scope: Construct, id: str, *, plan: _PlanT) -> cdk8s.Chart: ...


def _of_plan(
    app: cdk8s.App, make: _Maker[_PlanT], id: str, plan: _PlanT | None, *, retained: bool = False
) -> Iterator[PlatformChart]:
    """Yield the chart of a part of the plan; nothing where the cluster has no such part."""
    if plan is not None:
        yield PlatformChart(chart=make(app, id, plan=plan), retained=retained)


def _platform(app: cdk8s.App, plan: ClusterPlan) -> Iterator[PlatformChart]:
    version = plan.control_plane.version
    yield from _of_plan(app, NodeIsolationChart, "node-isolation", plan.isolation)
    # Elsewhere the VPC CNI add-on does it, and owns what it is done with.
    if not any(addon.name == "vpc-cni" for addon in plan.control_plane.node_addons):
        policies = NetworkPolicyControllerChart(
            app, "network-policy-controller", enforced=plan.network_policies.enforced
        )
        yield PlatformChart(chart=policies, retained=False)
    namespaces = NamespacesChart(
        app,
        "namespaces",
        plans=plan.namespaces,
        kubernetes_version=version,
        policies_of_jobs=plan.network_policies.of_jobs,
    )
    yield PlatformChart(chart=namespaces, retained=True)
    yield PlatformChart(
        chart=PriorityClassesChart(app, "priority-classes", plans=plan.priority_classes),
        retained=False,
    )
    yield from _scalers(app, plan)
    # Nodes that were told to ask it do so as long as they live, whatever new ones are told.
    yield from _of_plan(
        app, NodeLocalDnsChart, "node-local-dns", plan.node_local_dns, retained=True
    )
    yield from _device_plugins(app, plan)
    if plan.observability is not None:
        rights = FleetMetricsChart(app, "fleet-metrics", plan=plan.observability.fleet_metrics)
        yield PlatformChart(chart=rights, retained=False)
        yield from _service_metrics(app, plan, {each.name for each in plan.namespaces})
        yield from _of_plan(app, WriteCanaryChart, "write-canary", plan.observability.write_latency)
    if plan.etcd is not None:
        etcd = EtcdChart(app, "etcd", plan=plan.etcd, job_ranges=plan.network_policies.ranges)
        yield PlatformChart(chart=etcd, retained=False)
    if plan.node_readers:
        readers = NodeReadersChart(app, "node-readers", namespaces=plan.node_readers)
        yield PlatformChart(chart=readers, retained=False)
    yield from _access(app, plan)
    yield from _storage(app, plan, {namespace.name for namespace in plan.namespaces})
    yield from _volcano(app, plan)
    yield from _controllers(app, plan)
    if plan.backend is not None:
        chart = BackendChart(
            app, "backend", plan=plan.backend, job_ranges=plan.network_policies.ranges
        )
        yield PlatformChart(chart=chart, retained=False)
        yield from _backend_rights(app, plan.backend, plan.backend.job_namespaces)


def _controllers(app: cdk8s.App, plan: ClusterPlan) -> Iterator[PlatformChart]:
    """Yield what controllers need that later stacks install by Helm."""
    if plan.kueue is not None:
        # Where Kueue is left running, its webhooks must be reached, or no job could be made.
        ingress = QueueingIngressChart(app, "queueing-ingress")
        yield PlatformChart(chart=ingress, retained=True)
        # JobSet's chart stays as well, and its webhooks with it.
        certificate = JobSetCertificateChart(app, "jobset-certificate")
        yield PlatformChart(chart=certificate, retained=True)
        gate = QueueGateChart(app, "queue-gate", plan=plan.kueue)
        yield PlatformChart(chart=gate, retained=False)
    # The charts stay, and their webhooks must be reached.
    yield from _of_plan(
        app, ServingControllersChart, "serving-controllers", plan.serving, retained=True
    )
    yield from _of_plan(app, FrontIngressChart, "front-ingress", plan.front)


def _access(app: cdk8s.App, plan: ClusterPlan) -> Iterator[PlatformChart]:
    if plan.access.roles:
        rights = AccessChart(app, "access", roles=plan.access.roles, bindings=plan.access.bindings)
        yield PlatformChart(chart=rights, retained=False)
    yield from _of_plan(app, QueueAccessChart, "queue-access", plan.access.queues)


def _teams(app: cdk8s.App, plan: ClusterPlan) -> Iterator[PlatformChart]:
    if not plan.team_namespaces:
        return
    version = plan.control_plane.version
    namespaces = NamespacesChart(
        app,
        "team-namespaces",
        plans=plan.team_namespaces,
        kubernetes_version=version,
        policies_of_jobs=plan.network_policies.of_jobs,
    )
    yield PlatformChart(chart=namespaces, retained=True)
    if plan.access.team_bindings:
        rights = AccessChart(app, "team-access", roles=(), bindings=plan.access.team_bindings)
        yield PlatformChart(chart=rights, retained=False)
    names = {namespace.name for namespace in plan.team_namespaces}
    yield from _service_metrics(app, plan, names, prefix="team-")
    yield from _storage(app, plan, names, prefix="team-")
    if plan.backend is not None:
        yield from _backend_rights(app, plan.backend, plan.backend.team_namespaces, prefix="team-")


def _service_metrics(
    app: cdk8s.App, plan: ClusterPlan, namespaces: Set[str], *, prefix: str = ""
) -> Iterator[PlatformChart]:
    if plan.observability is None:
        return
    function = plan.observability.fleet_metrics
    if own := [each for each in function.service_namespaces if each in namespaces]:
        rights = ServiceMetricsChart(app, f"{prefix}service-metrics", plan=function, namespaces=own)
        yield PlatformChart(chart=rights, retained=False)


def _backend_rights(
    app: cdk8s.App, plan: BackendPlan, namespaces: Sequence[str], *, prefix: str = ""
) -> Iterator[PlatformChart]:
    if namespaces:
        rights = BackendRightsChart(
            app, f"{prefix}backend-rights", plan=plan, namespaces=namespaces
        )
        yield PlatformChart(chart=rights, retained=False)


def _storage(
    app: cdk8s.App, plan: ClusterPlan, namespaces: Set[str], *, prefix: str = ""
) -> Iterator[PlatformChart]:
    """Yield the volumes of claims in ``namespaces``, and what opens their file systems to jobs."""
    here = [volume for volume in plan.volumes if volume.claim.namespace in namespaces]
    for source in ("lustre", "bucket"):
        plans = [volume for volume in here if volume.claim.source == source]
        if plans:
            volumes = VolumesChart(app, f"{prefix}{source}-volumes", plans=plans)
            yield PlatformChart(chart=volumes, retained=True)
    output = plan.output_access
    jobs = [each for each in output.namespaces if each in namespaces] if output else []
    if output is not None and jobs:
        accounts = OutputAccessChart(app, f"{prefix}output-access", plan=output, namespaces=jobs)
        yield PlatformChart(chart=accounts, retained=False)
    access = plan.lustre_access
    claims = [claim for claim in access.claims if claim.namespace in namespaces] if access else []
    if access is not None and claims:
        chart = LustreAccessChart(app, f"{prefix}lustre-access", image=access.image, claims=claims)
        yield PlatformChart(chart=chart, retained=False)


def _scalers(app: cdk8s.App, plan: ClusterPlan) -> Iterator[PlatformChart]:
    yield from _of_plan(app, ClusterAutoscalerChart, "cluster-autoscaler", plan.cluster_autoscaler)
    yield from _of_plan(
        app, TerminationHandlerChart, "node-termination-handler", plan.termination_handler
    )


def _device_plugins(app: cdk8s.App, plan: ClusterPlan) -> Iterator[PlatformChart]:
    yield from _of_plan(app, NeuronDevicePluginChart, "neuron-device-plugin", plan.neuron)
    yield from _of_plan(app, NeuronMonitorChart, "neuron-monitor", plan.neuron_monitor)
    yield from _of_plan(app, NeuronSchedulerChart, "neuron-scheduler", plan.neuron_scheduler)
    yield from _of_plan(app, NvidiaDevicePluginChart, "nvidia-device-plugin", plan.nvidia)
    yield from _of_plan(app, DcgmExporterChart, "dcgm-exporter", plan.dcgm)
    yield from _of_plan(app, EfaDevicePluginChart, "efa-device-plugin", plan.efa)


def _node_pools(
    app: cdk8s.App, plan: ClusterPlan, pools: Sequence[PoolPlan]
) -> Iterator[PlatformChart]:
    """Yield the rights of each calendar, then each node class with the NodePools on it."""
    names = {pool.name for pool in pools}
    classes = [each for each in plan.node_classes if each.name in names]
    for node_pool in plan.node_pools:
        if node_pool.follows_reservation and node_pool.node_class in names:
            calendar = BlockCalendarChart(app, f"block-calendar-{node_pool.name}", plan=node_pool)
            yield PlatformChart(chart=calendar, retained=False)
    for node_class in classes:
        own = [each for each in plan.node_pools if each.node_class == node_class.name]
        chart = NodePoolsChart(
            app, f"node-pool-{node_class.name}", node_class=node_class, node_pools=own
        )
        yield PlatformChart(chart=chart, retained=False)


def _volcano(app: cdk8s.App, plan: ClusterPlan) -> Iterator[PlatformChart]:
    """Yield webhooks last: a queue or job must not meet one whose server is not up yet."""
    if plan.volcano is None:
        return
    crds = VolcanoCrdsChart(app, "volcano-crds")
    yield PlatformChart(chart=crds, retained=True)
    yield PlatformChart(chart=VolcanoChart(app, "volcano", plan=plan.volcano), retained=False)
    for queue in plan.volcano.queues:
        chart = QueueChart(app, f"queue-{queue.name}", plan=queue)
        yield PlatformChart(chart=chart, retained=False)
    webhooks = VolcanoWebhooksChart(app, "volcano-webhooks")
    yield PlatformChart(chart=webhooks, retained=False)


def _front(app: cdk8s.App, plan: ClusterPlan) -> Iterator[PlatformChart]:
    # Nobody makes a route before it is judged.
    yield from _of_plan(app, FrontRoutesChart, "front-routes", plan.front)
    yield from _of_plan(app, FrontChart, "front", plan.front)


def _queues(app: cdk8s.App, plan: ClusterPlan) -> Iterator[PlatformChart]:
    """Yield Kueue's objects, each after those that it names.

    They are deleted the other way round: Kueue keeps a flavor as long as a queue names it, and a
    queue as long as a job has its quota.
    """
    if plan.kueue is None:
        return
    objects = [
        *((f"topology-{each.name}", [topology(each)]) for each in plan.kueue.topologies),
        *((f"flavor-{each.name}", [resource_flavor(each)]) for each in plan.kueue.flavors),
        ("cohort", [cohort(plan.kueue.cohort)]),
        ("workload-priorities", [workload_priority(each) for each in plan.kueue.priorities]),
        *(
            (
                f"cluster-queue-{each.name}",
                [cluster_queue(each, cohort=plan.kueue.cohort.name), *local_queues(each)],
            )
            for each in plan.kueue.queues
        ),
    ]
    for id, manifests in objects:
        chart = KueueObjectsChart(app, id, objects=manifests)
        yield PlatformChart(chart=chart, retained=False)
