"""Sizes of Kubernetes objects in etcd, and the rates at which they are written.

The sizes are medians of nodes and pods of accelerated clusters in production, as NVIDIA measured
and rounded them. They are bytes of JSON: the database holds most objects in a shorter form, and
pages that are free beside them. A sum over them says which tier of the control plane to begin a
load test with; it is no promise. One figure to hold it against: AWS needed 32 GB for 100,000
nodes with 900,000 pods.

Sources:
    https://github.com/NVIDIA/NVSentinel/issues/1705
    https://aws.amazon.com/blogs/containers/under-the-hood-amazon-eks-ultra-scale-clusters/
"""

from collections.abc import Mapping
from types import MappingProxyType

SIZES_SOURCE = "https://github.com/NVIDIA/NVSentinel/issues/1705"
NODE_BYTES = 50_000
JOB_POD_BYTES = 50_000
"""A pod of a job: most of it is its containers, variables and volumes."""
DAEMON_POD_BYTES = 14_000
"""A pod of a DaemonSet, or of the platform."""

# No source states these: they are a few hundred bytes of names, labels and owners.
LEASE_BYTES = 500
CSI_NODE_BYTES = 1_000
NODE_CLAIM_BYTES = 5_000
EVENT_BYTES = 1_000
ENDPOINT_BYTES = 300
"""One address of an EndpointSlice."""

# The API server lets old revisions be dropped after this time.
# Source: https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/
# (`--etcd-compaction-interval`); EKS does not say whether its own database does the same.
COMPACTION_SECONDS = 300

# Scheduled, Pulling, Pulled, Created, Started.
# Source: https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/
EVENTS_PER_POD = 5
# Of its creation, its binding, and what its kubelet reports until it is ready.
WRITES_PER_POD = 5
# Source: `nodeStatusReportFrequency` of
# https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/
NODE_STATUS_SECONDS = 300
NODE_STATUS_SOURCE = "https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/"
# A write holds its seat for as long as it takes: on the largest clusters, nine of ten this long.
# Source: https://aws.amazon.com/blogs/containers/amazon-eks-enables-ultra-scale-ai-ml-workloads-with-support-for-100k-nodes-per-cluster/
WRITE_SECONDS = 0.015

# Kubernetes itself is built for so much; beyond it, a control plane has to be provisioned.
# Source: https://kubernetes.io/docs/setup/best-practices/cluster-large/
MOST_NODES = 5_000
MOST_PODS = 150_000
LIMITS_SOURCE = "https://kubernetes.io/docs/setup/best-practices/cluster-large/"

# Layers of an image of a training framework: an assumption, as no source states a number.
LAYERS_OF_AN_IMAGE = 40

ENDPOINTS_OF_A_SLICE = 100
"""Addresses of an EndpointSlice, `--max-endpoints-per-slice` of kube-controller-manager."""

# A kubelet asks for a new token after 80 % of the hour that one is good for.
# Source: https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/
TOKEN_RENEWAL_SECONDS = 2_880
TOKEN_SOURCE = "https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/"
# DaemonSets whose pods call the API server; device plugins and the Pod Identity agent have none.
DAEMONS_WITH_TOKENS = (
    "aws-node",
    "kube-proxy",
    "ebs-csi-node",
    "fsx-csi-node",
    "s3-csi-node",
    "eks-node-monitoring-agent",
    "cloudwatch-agent",
    "fluent-bit",
)
KUBELET = "kubelet"
# Kinds that each program follows, read from its code or its rights; upstream states no number.
WATCHES_OF_A_DAEMON: Mapping[str, int] = MappingProxyType(
    {
        KUBELET: 6,  # its Node, its pods, Services, CSIDrivers, RuntimeClasses, its Lease's reads
        "aws-node": 3,  # its Node, CNINode, PolicyEndpoints
        "kube-proxy": 3,  # Services, EndpointSlices, its Node
        "ebs-csi-node": 1,
        "fsx-csi-node": 1,
        "s3-csi-node": 2,
        "eks-node-monitoring-agent": 2,  # its Node, NodeDiagnostics
        "cloudwatch-agent": 5,  # pods, Nodes, Services, Deployments, its ConfigMap's lock
    }
)
MOUNTED_OBJECTS_OF_A_WORKER = 1
"""ConfigMaps and Secrets of a job's pod that may change, each a watch of its kubelet."""
