"""Every chart of a cluster, in the order they are applied."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import cdk8s
import yaml

from k8s.efa import EfaDevicePluginChart
from k8s.etcd import EtcdChart
from k8s.lustre import LustreVolumesChart
from k8s.namespaces import NamespacesChart
from k8s.neuron import NeuronDevicePluginChart
from k8s.neuron_scheduler import NeuronSchedulerChart
from k8s.priority_classes import PriorityClassesChart
from k8s.queues import QueueChart
from k8s.volcano.chart import VolcanoChart
from k8s.volcano.crds import VolcanoCrdsChart
from k8s.volcano.webhooks import VolcanoWebhooksChart
from ultrascale.plan import ClusterPlan


class _Dumper(yaml.CSafeDumper):
    """Writes scripts and configurations as the lines they are."""


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


@dataclass(frozen=True, kw_only=True)
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

    @cached_property
    def manifests(self) -> Sequence[Mapping[str, object]]:
        """The objects."""
        return self.chart.to_json()


def define_charts(plan: ClusterPlan) -> tuple[PlatformChart, ...]:
    """Define every chart of ``plan``, in the order they are applied."""
    return (*_charts(cdk8s.App(), plan),)


def write_manifests(charts: Sequence[PlatformChart], folder: Path) -> None:
    """Write one file for each chart, numbered in the order they are applied.

    cdk8s numbers files by dependencies between charts, which it takes for dependencies between
    all their objects: that alone would be a tenth of a synthesis.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for index, chart in enumerate(charts):
        documents = yaml.dump_all(chart.manifests, Dumper=_Dumper, sort_keys=False)
        file = folder / f"{index:04}-{chart.name}.k8s.yaml"
        file.write_text(documents, encoding="utf-8")


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
        neuron = NeuronDevicePluginChart(app, "neuron-device-plugin", plan=plan.neuron)
        yield PlatformChart(chart=neuron, retained=False)
    if plan.neuron_scheduler is not None:
        scheduler = NeuronSchedulerChart(app, "neuron-scheduler", plan=plan.neuron_scheduler)
        yield PlatformChart(chart=scheduler, retained=False)
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
