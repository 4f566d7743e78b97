"""Values of the chart of Envoy Gateway.

Sources:
    https://github.com/envoyproxy/gateway/blob/v1.9.0/charts/gateway-helm/values.tmpl.yaml
    https://github.com/envoyproxy/gateway/blob/v1.9.0/api/v1alpha1/envoygateway_types.go
"""

from collections.abc import Mapping

from ultrascale.parts.front.model import Plan
from ultrascale.plan import names
from ultrascale_constructs.chart_values import (
    PRIORITY,
    SYSTEM_NODES,
    SYSTEM_TOLERATIONS,
    spread_over,
)


def gateway_values(plan: Plan) -> dict[str, object]:
    """Return the values of the chart `gateway-helm`."""
    placed = {"nodeSelector": SYSTEM_NODES, "tolerations": SYSTEM_TOLERATIONS}
    return {
        # By this value the chart also sets the image of the container that drains a proxy.
        "global": {"images": {"envoyGateway": {"image": plan.image}}},
        "deployment": {
            "replicas": plan.controllers,
            # Otherwise no new proxy could start while the controller's pods are preempted.
            "priorityClassName": PRIORITY,
            "envoyGateway": {
                # Large clusters may have no room for another pod, and Helm would wait in vain.
                "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
                },
            },
            "pod": {
                **placed,
                "topologySpreadConstraints": [
                    spread_over(names.HOSTNAME_LABEL, "DoNotSchedule", plan.controller_labels)
                ],
            },
        },
        "podDisruptionBudget": {"minAvailable": 1},
        "certgen": {"job": placed},
        # Off: the webhook would watch the binding of each pod, only to tell proxies their zones.
        "topologyInjector": {"enabled": False},
        "config": {"envoyGateway": controller_configuration(plan)},
    }


def controller_configuration(plan: Plan) -> Mapping[str, object]:
    """Return the controller's configuration; the chart adds its images.

    The chart makes Roles in the watched namespaces instead of a ClusterRole, so that the controller
    reads Secrets of no other namespace.
    """
    return {
        "gateway": {"controllerName": plan.controller_name},
        "provider": {
            "type": "Kubernetes",
            "kubernetes": {
                "watch": {"type": "Namespaces", "namespaces": [*plan.namespaces]},
                # The chart writes this value to a place that the controller does not read.
                "proxyTopologyInjector": {"disabled": True},
            },
        },
        "logging": {"level": {"default": "info"}},
        # A script in the proxies reads the model's name from the body of a request.
        "extensionApis": {"enableLua": True},
    }
