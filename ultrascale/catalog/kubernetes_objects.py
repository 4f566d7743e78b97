"""Sizes of Kubernetes objects in etcd, and the rates at which they are written.

The sizes are medians of nodes and pods of accelerated clusters in production, as NVIDIA measured
and rounded them. They are bytes of JSON: the database holds most objects in a shorter form, and has
free pages. Their sum only suggests a control plane tier with which to begin a load test. For
comparison: AWS needed 32 GB for 100,000 nodes with 900,000 pods.

Sources:
    https://github.com/NVIDIA/NVSentinel/issues/1705
    https://aws.amazon.com/blogs/containers/under-the-hood-amazon-eks-ultra-scale-clusters/
"""

from collections.abc import Mapping
from types import MappingProxyType

SIZES_SOURCE = "https://github.com/NVIDIA/NVSentinel/issues/1705"
NODE_BYTES = 50_000
JOB_POD_BYTES = 50_000
"""Bytes of a job's pod: most of them are its containers, variables and volumes."""
DAEMON_POD_BYTES = 14_000
"""Bytes of a pod of a DaemonSet, or of the platform."""

# No source states these sizes: a few hundred bytes of names, labels and owners.
LEASE_BYTES = 500
CSI_NODE_BYTES = 1_000
NODE_CLAIM_BYTES = 5_000
EVENT_BYTES = 1_000
ENDPOINT_BYTES = 300
"""Bytes of an address in an EndpointSlice."""

# Time after which the API server lets old revisions be dropped.
# Source: https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/
# (`--etcd-compaction-interval`); EKS does not say whether its own database does the same.
COMPACTION_SECONDS = 300

# Events of a pod's start: Scheduled, Pulling, Pulled, Created, Started.
# Source: https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/
EVENTS_PER_POD = 5
# Writes of a pod: its creation, its binding, and the kubelet's reports until the pod is ready.
WRITES_PER_POD = 5
# Source: `nodeStatusReportFrequency` of
# https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/
NODE_STATUS_SECONDS = 300
NODE_STATUS_SOURCE = "https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/"
# Seconds that a write holds its seat: nine of ten writes take no longer on the largest clusters.
# Source: https://aws.amazon.com/blogs/containers/amazon-eks-enables-ultra-scale-ai-ml-workloads-with-support-for-100k-nodes-per-cluster/
WRITE_SECONDS = 0.015

# Size for which Kubernetes itself is built; a larger cluster needs a provisioned control plane.
# Source: https://kubernetes.io/docs/setup/best-practices/cluster-large/
MOST_NODES = 5_000
MOST_PODS = 150_000
LIMITS_SOURCE = "https://kubernetes.io/docs/setup/best-practices/cluster-large/"

# Layers of an image of a training framework: an assumption, as no source states a number.
LAYERS_OF_AN_IMAGE = 40

ENDPOINTS_OF_A_SLICE = 100
"""Most addresses of an EndpointSlice, `--max-endpoints-per-slice` of kube-controller-manager."""

# A kubelet requests a new token after 80 % of a token's hour.
# Source: https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/
TOKEN_RENEWAL_SECONDS = 2_880
TOKEN_SOURCE = "https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/"
# DaemonSets whose pods call the API server; device plugins and the Pod Identity agent do not.
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
# Number of kinds that each program watches, from its code or its rights; upstream states none.
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
"""ConfigMaps and Secrets of a job's pod that may change; the node's kubelet watches each."""
