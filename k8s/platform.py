"""Every chart of a cluster, in the order they are applied."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import cdk8s

from k8s.efa import EfaDevicePluginChart
from k8s.etcd import EtcdChart
from k8s.lustre import LustreVolumesChart
from k8s.namespaces import NamespacesChart
from k8s.neuron import NeuronDevicePluginChart
from k8s.priority_classes import PriorityClassesChart
from k8s.queues import QueuesChart
from k8s.volcano.chart import VolcanoChart
from k8s.volcano.crds import VolcanoCrdsChart
from k8s.volcano.webhooks import VolcanoWebhooksChart
from ultrascale.plan import ClusterPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformChart:
    """A chart and what becomes of its objects.

    Attributes:
        chart: The chart.
        retained: Its objects outlive it: deleting them would delete a user's jobs or claims.
    """

    chart: cdk8s.Chart
    retained: bool

    @property
    def name(self) -> str:
        """Name of the chart, which is part of its file's name."""
        return self.chart.node.id

    def manifests(self) -> Sequence[Mapping[str, object]]:
        """Return the objects."""
        return self.chart.to_json()


def define_charts(app: cdk8s.App, plan: ClusterPlan) -> tuple[PlatformChart, ...]:
    """Define every chart of ``plan``; each depends on the one before it."""
    charts = (*_charts(app, plan),)
    for earlier, later in pairwise(charts):
        later.chart.add_dependency(earlier.chart)
    return charts


def _charts(app: cdk8s.App, plan: ClusterPlan) -> Iterator[PlatformChart]:
    version = plan.control_plane.version
    namespaces = NamespacesChart(
        app, "namespaces", plans=plan.namespaces, kubernetes_version=version
    )
    yield PlatformChart(chart=namespaces, retained=True)
    yield PlatformChart(
        chart=PriorityClassesChart(app, "priority-classes", plans=plan.priority_classes),
        retained=False,
    )
    if plan.neuron is not None:
        neuron = NeuronDevicePluginChart(
            app,
            "neuron-device-plugin",
            plan=plan.neuron,
            scheduler_extension=plan.neuron_scheduler,
        )
        yield PlatformChart(chart=neuron, retained=False)
    if plan.efa is not None:
        efa = EfaDevicePluginChart(app, "efa-device-plugin", plan=plan.efa)
        yield PlatformChart(chart=efa, retained=False)
    if plan.etcd is not None:
        yield PlatformChart(chart=EtcdChart(app, "etcd", plan=plan.etcd), retained=False)
    if any(lustre.claim for lustre in plan.lustre):
        volumes = LustreVolumesChart(app, "lustre-volumes", plans=plan.lustre)
        yield PlatformChart(chart=volumes, retained=True)
    yield from _volcano(app, plan)


def _volcano(app: cdk8s.App, plan: ClusterPlan) -> Iterator[PlatformChart]:
    """Yield queues before the scheduler and webhooks last: none is called before it is up."""
    if plan.volcano is None:
        return
    crds = VolcanoCrdsChart(app, "volcano-crds")
    yield PlatformChart(chart=crds, retained=True)
    if plan.volcano.queues:
        queues = QueuesChart(app, "queues", plan=plan.volcano)
        yield PlatformChart(chart=queues, retained=False)
    yield PlatformChart(chart=VolcanoChart(app, "volcano", plan=plan.volcano), retained=False)
    webhooks = VolcanoWebhooksChart(app, "volcano-webhooks")
    yield PlatformChart(chart=webhooks, retained=False)
