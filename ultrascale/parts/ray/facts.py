"""KubeRay: its chart, the labels of its pods, and the limits of its objects.

Sources:
    https://github.com/ray-project/kuberay/tree/v1.7.0/helm-chart/kuberay-operator
    https://github.com/ray-project/kuberay/tree/v1.7.0/ray-operator/controllers/ray
    https://github.com/kubernetes-sigs/kueue/tree/v0.19.2/pkg/controller/jobs/rayjob
    https://docs.ray.io/en/latest/ray-security/index.html
    https://docs.ray.io/en/latest/cluster/usage-stats.html
"""

# Its publisher has the chart in no registry, and built it with Kubernetes' libraries of 1.36.
CHART, VERSION = "https://ray-project.github.io/kuberay-helm/kuberay-operator", "1.7.0"
IMAGE, LATEST_KUBERNETES_VERSION = "quay.io/kuberay/operator:v", "1.36"
# Namespace of the operator, and value of the label `app.kubernetes.io/name` of its pods.
NAMESPACE, OPERATOR = "kuberay-system", "kuberay-operator"

# The group of its kinds, and the kind in the words of Kueue's configuration.
API_VERSION, FRAMEWORK = "ray.io/v1", "ray.io/rayjob"
# Role of the pod with Ray's control store and the entry point, and its value of `GROUP_LABEL`.
HEAD, HEAD_GROUP = "head", "headgroup"
# Container that the operator adds to the head: it sends the entry point, and prints its output.
SUBMITTER, SUBMITTER_MILLICPU, SUBMITTER_MIB = "ray-job-submitter", 500, 1024

# Labels of pods: workers have their number in the group, other objects the name of the job. Of us,
# the head has a number too, and all pods have the name.
POD_LABEL, GROUP_LABEL = "ray.io/is-ray-node", "ray.io/group"
INDEX_LABEL, NAME_LABEL = "ray.io/worker-group-replica-index", "ray.io/originated-from-cr-name"

# Port of the head that runs code for whoever has the job's token, and the first release with one.
DASHBOARD_PORT, LEAST_RAY = 8265, (2, 52, 0)
# Releases in images that the product builds, by Dockerfile.
OF_BUILDS = {"posttrain": "2.60.0"}
