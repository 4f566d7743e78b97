"""The application that submits jobs: its callers, its database, its rights, its Deployment."""

from collections.abc import Iterator, Mapping

from ultrascale import config
from ultrascale.core.part import Part
from ultrascale.parts.backend.model import LAYER, Plan
from ultrascale.parts.backend.plan import plan_backend
from ultrascale.parts.backend.section import Backend, FileKeys
from ultrascale.plan.model import ClusterPlan, NamespacePlan, PartNeeds
from ultrascale.plan.stacks import Layer, LayerId


class _Part(Part[FileKeys, Plan]):
    name = "backend"
    section = FileKeys
    judges_changes = True

    def namespaces(self, cluster: config.Cluster) -> Iterator[NamespacePlan]:
        section = cluster.section(Backend)
        if section is not None:
            yield NamespacePlan(name=section.namespace, pod_security="restricted")

    def plan_on(self, cluster: config.Cluster, core: ClusterPlan) -> Plan | None:
        return plan_backend(cluster, core)

    @property
    def layers(self) -> Mapping[LayerId, Layer]:
        return {
            LAYER: Layer(
                exists=lambda plan: (
                    (own := plan.part(Plan)) is not None and own.database is not None
                ),
                after=("network", "cluster"),
                follows="image-cache",
                before=("platform",),
            )
        }

    def needs(self, plan: ClusterPlan) -> PartNeeds:
        from ultrascale.parts.backend.callers_needs import needs_of

        return needs_of(plan.part(Plan))


PART = _Part()

__all__ = ["PART", "Backend", "Plan"]
