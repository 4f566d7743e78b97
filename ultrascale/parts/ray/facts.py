"""KubeRay: its chart, the labels of its pods, and the limits of its objects.

Sources:
    https://github.com/ray-project/kuberay/tree/v1.7.0/helm-chart/kuberay-operator
    https://github.com/ray-project/kuberay/tree/v1.7.0/ray-operator/controllers/ray
"""

VERSION = "1.7.0"
"""Version of the chart, without a `v`."""
# Its publisher has the chart in no registry, and built it with Kubernetes' libraries of 1.36.
CHART = "https://ray-project.github.io/kuberay-helm/kuberay-operator"
IMAGE = "quay.io/kuberay/operator"
LATEST_KUBERNETES_VERSION = "1.36"

NAMESPACE, OPERATOR = "kuberay-system", "kuberay-operator"
"""Namespace of the operator, and value of the label `app.kubernetes.io/name` of its pods."""

API_VERSION = "ray.io/v1"
HEAD, HEAD_GROUP = "head", "headgroup"
"""Role of the pod with Ray's control store and the entry point, and its value of `GROUP_LABEL`."""

SUBMITTER, SUBMITTER_MILLICPU, SUBMITTER_MIB = "ray-job-submitter", 500, 1024
"""Container that the operator adds to the head: it sends the entry point, and prints its output."""

POD_LABEL, GROUP_LABEL = "ray.io/is-ray-node", "ray.io/group"
INDEX_LABEL, NAME_LABEL = "ray.io/worker-group-replica-index", "ray.io/originated-from-cr-name"
"""Labels of pods: workers have their number in the group, other objects the name of the job. Of us,
the head has a number too, and all pods have the name.
"""

DASHBOARD_PORT = 8265
"""Port of the head that runs code for whoever has the job's token.

Source: https://docs.ray.io/en/latest/ray-security/index.html
"""
LEAST_RAY = (2, 52, 0)
"""First release with a token."""
OF_BUILDS = {"posttrain": "2.60.0"}
"""Releases in images that the product builds, by Dockerfile."""

NO_STATISTICS = ("RAY_USAGE_STATS_ENABLED", "0")
"""Variable by which Ray sends no statistics out of the network.

Source: https://docs.ray.io/en/latest/cluster/usage-stats.html
"""

FRAMEWORK = "ray.io/rayjob"
"""The kind in the words of Kueue's configuration.

Source: https://github.com/kubernetes-sigs/kueue/tree/v0.19.2/pkg/controller/jobs/rayjob
"""

GANG_QUEUE, GANG_PRIORITY = "volcano.sh/queue-name", "ray.io/priority-class-name"
GANG_TOPOLOGY = "volcano.sh/network-topology-mode"
GANG_TIER = "volcano.sh/network-topology-highest-tier-allowed"
"""Labels of a RayJob by which the operator fills the PodGroup of a gang scheduler."""
