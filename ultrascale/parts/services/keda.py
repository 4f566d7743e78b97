"""KEDA: its chart, its images and ports, and the limits of its decisions.

Sources:
    https://github.com/kedacore/keda/tree/v2.20.2
    https://github.com/kedacore/charts/blob/1444d00/docs/index.yaml
"""

from ultrascale.catalog.versions import chart

VERSION = chart("keda").version
"""Version of the chart, and of KEDA."""

# Its publisher has no registry for it: https://github.com/kedacore/charts/tree/1444d00
INDEX = "https://kedacore.github.io/charts"
CHART = f"{INDEX}/keda"
"""Location of the chart: the URL of its Helm repository, and its name."""

NAMESPACE = "keda"
"""Namespace that its chart is installed in."""

SHA256 = "db60b1fa60f0565fefa4ce2f87e855b6a8854363ee82962fbe28a12a70d64c4c"
"""Hash of the chart's archive in the index of the repository."""

# Source: https://github.com/kedacore/charts/blob/1444d00/keda/values.yaml
OPERATOR_IMAGE = "ghcr.io/kedacore/keda"
METRICS_IMAGE = "ghcr.io/kedacore/keda-metrics-apiserver"
WEBHOOKS_IMAGE = "ghcr.io/kedacore/keda-admission-webhooks"
IMAGES = (OPERATOR_IMAGE, METRICS_IMAGE, WEBHOOKS_IMAGE)
"""Images of its three programs; their tag is the version."""

# Source: https://github.com/kedacore/charts/blob/1444d00/.github/workflows/ci-core.yml
LATEST_KUBERNETES_VERSION = "1.35"
"""Latest Kubernetes minor that its chart is tested with."""

# Source: https://github.com/kedacore/charts/tree/1444d00/keda/templates
OPERATOR, METRICS_SERVER = "keda-operator", "keda-operator-metrics-apiserver"
WEBHOOKS = "keda-admission-webhooks"
"""Values of the label `app` of its pods."""

APP_LABEL = "app"
OPERATOR_PORT, METRICS_PORT, WEBHOOK_PORT = 9666, 6443, 9443
"""Ports: metrics for its own server, the API of metrics, and its webhooks."""
