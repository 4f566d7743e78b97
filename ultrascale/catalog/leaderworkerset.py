"""LeaderWorkerSet: its chart, and the labels and variables of its pods.

Sources:
    https://github.com/kubernetes-sigs/lws/blob/v0.10.0/api/leaderworkerset/v1/leaderworkerset_types.go
    https://github.com/kubernetes-sigs/lws/blob/v0.10.0/site/content/en/docs/installation/_index.md
"""

from ultrascale.catalog.versions import chart

VERSION = chart("lws").version
"""Version of the chart, without a `v`."""

CHART = "oci://registry.k8s.io/lws/charts/lws"
# Its releases use the image's published name; the chart in the sources names a staging image.
# Source: https://github.com/kubernetes-sigs/lws/blob/v0.10.0/hack/push-chart.sh
IMAGE = "registry.k8s.io/lws/lws"
"""Image of the controller; its tag is the chart's version behind a `v`."""

# Source: https://github.com/kubernetes-sigs/lws/blob/v0.10.0/Makefile
LATEST_KUBERNETES_VERSION = "1.36"
"""Latest Kubernetes minor in LeaderWorkerSet's end-to-end tests."""

# Labels of every pod; the second and the third count from 0, and the leader is worker 0.
NAME_LABEL = "leaderworkerset.sigs.k8s.io/name"
GROUP_LABEL = "leaderworkerset.sigs.k8s.io/group-index"
WORKER_LABEL = "leaderworkerset.sigs.k8s.io/worker-index"

# Variables of every container.
LEADER_ADDRESS = "LWS_LEADER_ADDRESS"
GROUP_SIZE = "LWS_GROUP_SIZE"
WORKER_INDEX = "LWS_WORKER_INDEX"

CLIENT_QPS, CLIENT_BURST = 500, 500
"""The controller's limits of API requests, a second and at once; the chart cannot change them.

Source: https://github.com/kubernetes-sigs/lws/blob/v0.10.0/api/config/v1alpha1/defaults.go
"""
