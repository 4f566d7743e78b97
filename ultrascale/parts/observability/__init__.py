"""Metrics, dashboards, logs and alarms."""

from collections.abc import Iterator, Mapping, Sequence

from ultrascale import config
from ultrascale.catalog import addons, cloudwatch
from ultrascale.core.part import Part
from ultrascale.parts.observability.model import LAYER, Plan
from ultrascale.parts.observability.section import FileKeys, Observability
from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan, NamespacePlan
from ultrascale.plan.stacks import Layer, LayerId

WRITE_CANARY = NamespacePlan(name=names.WRITE_CANARY_NAMESPACE, pod_security="restricted")


class _Part(Part[FileKeys, Plan]):
    name = "observability"
    has_acceptance = True
    section = FileKeys

    def addons(self, cluster: config.Cluster) -> Iterator[str]:
        section = cluster.section(Observability)
        if section is not None:
            yield addons.CLOUDWATCH_OBSERVABILITY
            if section.hyperpod_addon:
                yield addons.HYPERPOD_OBSERVABILITY

    def namespaces(self, cluster: config.Cluster) -> Sequence[NamespacePlan]:
        section = cluster.section(Observability)
        measures_writes = section is not None and section.write_latency_slo is not None
        return (WRITE_CANARY,) if measures_writes else ()

    def exports_devices(self, cluster: config.Cluster) -> bool:
        """Return whether CloudWatch's add-on is installed, which brings a monitor of its own."""
        return cluster.section(Observability) is not None

    def labels_owners(self, cluster: config.Cluster) -> bool:
        """Return whether there is a ledger, which counts accelerators alone."""
        section = cluster.section(Observability)
        if section is None or section.ledger is None:
            return False
        return any(spec.accelerator is not None for pool in cluster.pools for spec in pool.specs)

    def collects_logs(self, cluster: config.Cluster) -> bool:
        """Return whether Fluent Bit runs on each node."""
        section = cluster.section(Observability)
        return section is not None and section.container_logs

    def logs_of_pods(self, cluster: config.Cluster) -> str | None:
        if not self.collects_logs(cluster):
            return None
        return cloudwatch.log_group(cluster.name, cloudwatch.APPLICATION_LOGS)

    def plan_on(self, cluster: config.Cluster, core: ClusterPlan) -> Plan | None:
        section = cluster.section(Observability)
        if section is None:
            return None
        # A program that only reads and plans jobs needs none of it.
        from ultrascale.parts.observability.plan import plan_observability

        return plan_observability(cluster, section, core)

    @property
    def layers(self) -> Mapping[LayerId, Layer]:
        return {
            LAYER: Layer(
                exists=lambda plan: plan.part(Plan) is not None,
                after=("network", "cluster", "platform"),
                follows="node-pools",
            ),
        }


PART = _Part()

__all__ = ["PART", "WRITE_CANARY", "Observability", "Plan"]
