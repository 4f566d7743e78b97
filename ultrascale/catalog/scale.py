"""Largest loads of a control plane that somebody published, and limits of programs by nodes.

A load that nobody has published is none that a plan may promise.
"""

from ultrascale.frozen import Frozen

# Groups of up to 1,000 nodes with 30 pods each; nothing larger is stated.
# Source: https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md
AUTOSCALED_NODES = 1_000
AUTOSCALED_SOURCE = "https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md"

# EKS's network policy controller lists a policy's pods, and the pods that it names as peers, in
# PolicyEndpoints of so many. Nodes watch all of them, and one pod that comes or goes rewrites
# them; with several for one policy, pods lost connections at 6,000 pods already.
# Sources:
#     https://github.com/NVIDIA/NVSentinel/issues/1705
#     https://github.com/aws/amazon-network-policy-controller-k8s/issues/201
PODS_OF_A_POLICY = 1_000
POLICY_SOURCES = (
    "https://github.com/NVIDIA/NVSentinel/issues/1705",
    "https://github.com/aws/amazon-network-policy-controller-k8s/issues/201",
)

# More than ten million objects were there in AWS's test.
# Source: https://aws.amazon.com/blogs/containers/under-the-hood-amazon-eks-ultra-scale-clusters/
ULTRA_OBJECTS = 10_000_000

# Of each network interface, to the VPC's resolver; the limit is fixed.
RESOLVER_SOURCE = "https://docs.aws.amazon.com/vpc/latest/userguide/AmazonDNS-concepts.html"
RESOLVER_PACKETS_PER_SECOND = 1_024

# Each node's CNI lists interfaces of its cluster once an hour.
# Source: https://github.com/aws/amazon-vpc-cni-k8s/blob/master/pkg/awsutils/awsutils.go
CLEANUP_SECONDS = 3_600
# Calls of EC2's Describe actions in a second, after the first hundred.
# Source: https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html
EC2_DESCRIBE_PER_SECOND = 20
CLEANUP_SOURCES = (
    "https://github.com/aws/amazon-vpc-cni-k8s/blob/master/pkg/awsutils/awsutils.go",
    "https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html",
)


class PublishedLoad(Frozen):
    """A control plane that held a load."""

    nodes: int  # Its nodes
    pods: int  # Its pods
    database_gb: float  # Largest size of its database, in GB, of all parts together
    source: str  # Who says so


_NVIDIA = "https://github.com/NVIDIA/NVSentinel/issues/1705"
# On provisioned tiers that anybody can order, with simulated nodes. On the first a pod had 50 KB:
# with 203,411 of them the database refused every write, and the deletions that would have helped.
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
