"""Largest published loads of a control plane, and limits of programs by the number of nodes.

A plan may promise no larger load than a published one.
"""

from ultrascale.frozen import Frozen

# Tested with groups of up to 1,000 nodes with 30 pods each; no larger test is published.
# Source: https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md
AUTOSCALED_NODES = 1_000
AUTOSCALED_SOURCE = "https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md"

# Pods in a PolicyEndpoint, in which EKS's network policy controller lists a policy's pods and its
# peers. Nodes watch all of these objects, and each pod that comes or goes rewrites them; with
# several for one policy, pods lost connections at 6,000 pods already.
# Sources:
#     https://github.com/NVIDIA/NVSentinel/issues/1705
#     https://github.com/aws/amazon-network-policy-controller-k8s/issues/201
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
