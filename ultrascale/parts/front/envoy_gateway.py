"""Envoy Gateway: its chart, its images, and the names of its objects.

Sources:
    https://github.com/envoyproxy/gateway/tree/v1.9.0/charts/gateway-helm
    https://github.com/envoyproxy/gateway/blob/v1.9.0/internal/infrastructure/kubernetes/proxy/resource_provider.go
    https://gateway.envoyproxy.io/news/releases/matrix/
"""

from collections.abc import Mapping
from types import MappingProxyType

from ultrascale.catalog.versions import chart

# The chart and the CRDs of 1.9.0 were read.
VERSION = chart("gateway").version
"""Version of the chart, with its `v`."""

CHART = "oci://docker.io/envoyproxy/gateway-helm"
IMAGE = "docker.io/envoyproxy/gateway"
"""Image of the controller, and of the container that drains a proxy; its tag is the version."""

PROXY_IMAGE = "docker.io/envoyproxy/envoy:distroless-v1.39.1"
"""Image of the proxies: Envoy's release in the release notes above, beside 1.9.2."""

# Source: https://gateway.envoyproxy.io/news/releases/matrix/
LATEST_KUBERNETES_VERSION = "1.36"
"""Latest Kubernetes minor that 1.9 is tested with."""

CONTROLLER_NAME = "gateway.envoyproxy.io/gatewayclass-controller"
"""Name of the controller in a GatewayClass."""

XDS_PORT = 18000
"""Port of the controller at which proxies ask for their configuration."""

PRIVILEGED_PORT_OFFSET = 10_000
"""Offset that a proxy adds to a listener's port below 1024, as it may not open such a port.

Source: https://github.com/envoyproxy/gateway/blob/v1.9.0/internal/gatewayapi/listener.go
"""

PROXY_LABELS: Mapping[str, str] = MappingProxyType({"app.kubernetes.io/name": "envoy"})
"""Labels of the pods of every proxy."""

CONTROLLER_LABELS: Mapping[str, str] = MappingProxyType({"control-plane": "envoy-gateway"})
"""Labels of the pods of the controller."""


# Limits of the Gateway API, whose routes Envoy Gateway serves.
# Source: https://github.com/kubernetes-sigs/gateway-api/blob/v1.6.1/apis/v1/httproute_types.go
MATCHES_OF_A_ROUTE = 128
"""Most matches of an HTTPRoute, over all of its rules."""
