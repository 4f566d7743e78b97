"""The front: proxies that send each request to the service of its model."""

from collections.abc import Mapping, Sequence

from ultrascale import config
from ultrascale.core.part import HelmChart, Part
from ultrascale.parts.front import envoy_gateway
from ultrascale.parts.front import load_balancer_controller as lbc
from ultrascale.parts.front.model import Plan
from ultrascale.parts.front.plan import plan_front, plan_route
from ultrascale.parts.front.section import FileKeys, Front, front_of
from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan, NamespacePlan, RoutePlan
from ultrascale.plan.namespaces import HTTP_ROUTE_KIND, Resource
from ultrascale.plan.stacks import Layer, LayerId


class _Part(Part[FileKeys, Plan]):
    name = "front"
    section = FileKeys
    place = "serving"
    has_checks = True
    has_reports = True
    has_acceptance = True
    controller_namespaces = (names.FRONT_NAMESPACE,)
    charts = (
        HelmChart(
            location=envoy_gateway.CHART,
            version=envoy_gateway.VERSION,
            # Proxies are pods that its controller makes, of the image that our EnvoyProxy names.
            images=(f"{envoy_gateway.IMAGE}:", envoy_gateway.PROXY_IMAGE),
            defines_once=True,
        ),
        HelmChart(
            location=lbc.CHART,
            version=lbc.VERSION,
            images=(f"{lbc.IMAGE}:v",),
            defines_once=True,
        ),
    )

    def namespaces(self, cluster: config.Cluster) -> Sequence[NamespacePlan]:
        if front_of(cluster) is None:
            return ()
        return (NamespacePlan(name=names.FRONT_NAMESPACE, pod_security="restricted"),)

    def plan_on(self, cluster: config.Cluster, core: ClusterPlan) -> Plan | None:
        return plan_front(cluster, core)

    def kinds_of_services(self, cluster: config.Cluster) -> Sequence[Resource]:
        return () if front_of(cluster) is None else (HTTP_ROUTE_KIND,)

    def route(
        self, cluster: config.Cluster, service: config.ServiceJob, *, closed: bool
    ) -> RoutePlan | None:
        return plan_route(cluster, service, closed=closed)

    @property
    def layers(self) -> Mapping[LayerId, Layer]:
        # Its proxies run on system nodes, in a namespace and behind policies of the platform.
        layer = Layer(
            exists=lambda plan: plan.part(Plan) is not None,
            after=("network", "cluster", "platform"),
            follows="scheduling",
        )
        return {"serving-front": layer}


PART = _Part()

__all__ = ["PART", "Front", "Plan"]
