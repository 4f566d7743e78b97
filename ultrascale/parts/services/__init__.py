"""Controllers of services: KEDA, by which replicas follow the load, and LeaderWorkerSet."""

from collections.abc import Mapping, Sequence

from ultrascale import config
from ultrascale.catalog import leaderworkerset
from ultrascale.core.part import HelmChart, Part
from ultrascale.parts.services import keda
from ultrascale.parts.services.model import Plan
from ultrascale.parts.services.plan import plan_controllers, programs_of
from ultrascale.parts.services.section import (
    FileKeys,
    ServingController,
    controllers_for,
    controllers_of,
)
from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan, ControllerPlan, NamespacePlan, PodsPlan
from ultrascale.plan.namespaces import LEADER_WORKER_SET_KIND, SCALED_OBJECT_KIND, Resource
from ultrascale.plan.stacks import Layer, LayerId

_NAMESPACES: Mapping[ServingController, str] = {
    "keda": keda.NAMESPACE,
    "leader-worker-set": names.LWS_NAMESPACE,
}
_KINDS: Mapping[ServingController, Resource] = {
    "leader-worker-set": LEADER_WORKER_SET_KIND,
    "keda": SCALED_OBJECT_KIND,
}


class _Part(Part[FileKeys, Plan]):
    name = "services"
    has_acceptance = True
    section = FileKeys
    place = "serving"
    controller_namespaces = tuple(_NAMESPACES.values())
    reader = PodsPlan(namespace=keda.NAMESPACE, labels={keda.APP_LABEL: keda.OPERATOR})
    charts = (
        HelmChart(
            location=leaderworkerset.CHART,
            version=leaderworkerset.VERSION,
            images=(f"{leaderworkerset.IMAGE}:v",),
            defines_once=True,
        ),
        HelmChart(
            location=keda.CHART,
            version=keda.VERSION,
            images=tuple(f"{image}:" for image in keda.IMAGES),
            sha256=keda.SHA256,
        ),
    )

    def namespaces(self, cluster: config.Cluster) -> Sequence[NamespacePlan]:
        return [
            NamespacePlan(name=_NAMESPACES[controller], pod_security="restricted")
            for controller in controllers_of(cluster)
        ]

    def plan_on(self, cluster: config.Cluster, core: ClusterPlan) -> Plan | None:
        return plan_controllers(cluster, core)

    def kinds_of_services(self, cluster: config.Cluster) -> Sequence[Resource]:
        there = controllers_of(cluster)
        return [kind for controller, kind in _KINDS.items() if controller in there]

    def controllers(self, file: config.Parts, nodes: int) -> Mapping[str, Sequence[ControllerPlan]]:
        items = [placed.item for placed in file.placed]
        services = [item for item in items if isinstance(item, config.ServiceJob)]
        keys = next((item for item in items if isinstance(item, FileKeys)), None)
        return programs_of(controllers_for(keys, services), nodes)

    @property
    def layers(self) -> Mapping[LayerId, Layer]:
        # They run on system nodes, in namespaces and behind policies of the platform.
        layer = Layer(
            exists=lambda plan: plan.part(Plan) is not None,
            after=("network", "cluster", "platform"),
            follows="platform",
            # Kueue looks for the kinds of jobs as it starts.
            before=("scheduling",),
        )
        return {"serving-controllers": layer}


PART = _Part()

__all__ = ["PART", "Plan"]
