"""Largest published loads of a control plane, and limits of programs by the number of nodes.

A plan may promise no larger load than a published one.
"""

from collections.abc import Mapping
from types import MappingProxyType

from ultrascale.frozen import Frozen

# Tested with groups of up to 1,000 nodes with 30 pods each; no larger test is published.
# Source: https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md
AUTOSCALED_NODES = 1_000
AUTOSCALED_SOURCE = "https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md"

# Pods in a PolicyEndpoint, in which EKS's network policy controller lists a policy's pods and its
# peers. Nodes watch all of these objects, and each pod that comes or goes rewrites them; with
# several for one policy, pods lost connections at 6,000 pods already.
# Sources: https://github.com/NVIDIA/NVSentinel/issues/1705
# https://github.com/aws/amazon-network-policy-controller-k8s/issues/201
PODS_OF_A_POLICY = 1_000
POLICY_SOURCES = (
    "https://github.com/NVIDIA/NVSentinel/issues/1705",
    "https://github.com/aws/amazon-network-policy-controller-k8s/issues/201",
)

# AWS's test had more than ten million objects.
# Source: https://aws.amazon.com/blogs/containers/under-the-hood-amazon-eks-ultra-scale-clusters/
ULTRA_OBJECTS = 10_000_000

# Packets a second of each network interface to the VPC's resolver; the limit is fixed.
RESOLVER_SOURCE = "https://docs.aws.amazon.com/vpc/latest/userguide/AmazonDNS-concepts.html"
RESOLVER_PACKETS_PER_SECOND = 1_024

# Each node's CNI lists its cluster's interfaces once an hour.
# Source: https://github.com/aws/amazon-vpc-cni-k8s/blob/master/pkg/awsutils/awsutils.go
CLEANUP_SECONDS = 3_600
# Calls of EC2's Describe actions in a second, after a first burst of a hundred.
# Source: https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html
EC2_DESCRIBE_PER_SECOND = 20
CLEANUP_SOURCES = (
    "https://github.com/aws/amazon-vpc-cni-k8s/blob/master/pkg/awsutils/awsutils.go",
    "https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html",
)


class PublishedLoad(Frozen):
    """A load that a control plane has sustained."""

    nodes: int  # Its nodes
    pods: int  # Its pods
    database_gb: float  # Largest size of its database, in GB, all parts together
    source: str  # Page that publishes it


_NVIDIA = "https://github.com/NVIDIA/NVSentinel/issues/1705"
# On provisioned tiers that anybody can order, with simulated nodes. In the first a pod had 50 KB:
# with 203,411 pods the database refused every write, even deletions that would have helped.
ORDERED_LOADS = (
    PublishedLoad(nodes=100_005, pods=101_533, database_gb=16, source=_NVIDIA),
    PublishedLoad(nodes=50_021, pods=642_243, database_gb=16, source=_NVIDIA),
)
# AWS's own test of a cluster that it enables by hand.
ULTRA_LOAD = PublishedLoad(
    nodes=100_000,
    pods=900_000,
    database_gb=32,
    source="https://aws.amazon.com/blogs/containers/under-the-hood-amazon-eks-ultra-scale-clusters/",
)


# --- Sizes of Kubernetes objects in etcd, and the rates at which they are written -----------------
# The sizes are medians of nodes and pods of accelerated clusters in production, as NVIDIA measured
# and rounded them. They are bytes of JSON: the database holds most objects in a shorter form, and
# has free pages. Their sum only suggests a control plane tier with which to begin a load test. For
# comparison: AWS needed 32 GB for 100,000 nodes with 900,000 pods.
#
# Sources:
#     https://github.com/NVIDIA/NVSentinel/issues/1705
#     https://aws.amazon.com/blogs/containers/under-the-hood-amazon-eks-ultra-scale-clusters/


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
