"""Amazon EKS: versions, control plane, access, pod density, node configuration, autoscaling.

Sources:
    https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html
    https://docs.aws.amazon.com/eks/latest/userguide/eks-provisioned-control-plane.html
"""

from collections.abc import Mapping
from datetime import date
from ipaddress import IPv4Network
from types import MappingProxyType
from typing import Annotated, Literal

from msgspec import Meta

from ultrascale.catalog import vpc
from ultrascale.frozen import Frozen

ControlPlaneTier = Literal["standard", "xl", "2xl", "4xl", "8xl"]
LogType = Literal["api", "audit", "authenticator", "controllerManager", "scheduler"]

# Minors in standard support for which each add-on has a pin, oldest first. 1.34 is not among them:
# no public source states its builds of two add-ons, and its standard support ends in December 2026.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html
SUPPORTED_VERSIONS = ("1.35", "1.36")
DEFAULT_VERSION = "1.35"
# Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-prerequisites.html
LATEST_HYPERPOD_VERSION = "1.35"
# Copies of that page, read on this day, name 1.32, 1.33, 1.33 and 1.34 as the newest version.
PAGED_HYPERPOD_VERSION = "1.34"
PAGED_HYPERPOD_DAY = date(2026, 11, 28)

# EKS's own name of each tier; ``standard`` scales by itself, the others are provisioned.
# Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_ControlPlaneScalingConfig.html
CONTROL_PLANE_TIERS: Mapping[ControlPlaneTier, str] = MappingProxyType(
    {
        "standard": "standard",
        "xl": "tier-xl",
        "2xl": "tier-2xl",
        "4xl": "tier-4xl",
        "8xl": "tier-8xl",
    }
)


class TierLimits(Frozen):
    """Limits of a provisioned control plane, from Kubernetes 1.34 on."""

    # Requests that the API server handles at a time; a long list counts as several
    api_seats: Annotated[int, Meta(ge=1)]
    pods_per_second: Annotated[int, Meta(ge=1)]  # Pods scheduled in a second
    database_gb: Annotated[int, Meta(ge=1)]  # Size of etcd's database, in GB


# By EKS's own name; without ``standard``, which has no fixed limits.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/eks-provisioned-control-plane.html
TIER_LIMITS: Mapping[str, TierLimits] = MappingProxyType(
    {
        "tier-xl": TierLimits(api_seats=2_000, pods_per_second=167, database_gb=16),
        "tier-2xl": TierLimits(api_seats=4_000, pods_per_second=283, database_gb=16),
        "tier-4xl": TierLimits(api_seats=8_000, pods_per_second=400, database_gb=16),
        "tier-8xl": TierLimits(api_seats=16_000, pods_per_second=400, database_gb=16),
    }
)
STANDARD_DATABASE_GB = 8
"""Most GB of etcd's database in tier ``standard``, the only fixed limit of this tier."""
TIER_LIMITS_SOURCE = (
    "https://docs.aws.amazon.com/eks/latest/userguide/eks-provisioned-control-plane.html"
)

# Conditions that the node monitoring agent sets to `False` on a broken node, and the longest time
# before EKS repairs a node for any of them or for not being `Ready`.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/node-repair.html
ACCELERATOR_CONDITION = "AcceleratedHardwareReady"
NODE_CONDITIONS = (
    ACCELERATOR_CONDITION,
    "ContainerRuntimeReady",
    "KernelReady",
    "NetworkingReady",
    "StorageReady",
)
NODE_REPAIR_MINUTES = 30

# Reason of `AcceleratedHardwareReady` where the agent has lost DCGM. It keeps this verdict after it
# is connected again, until its own pod restarts.
# Source: https://github.com/aws/eks-node-monitoring-agent/issues/266
LOST_DCGM = "DCGMError"

# EKS would take 10.100.0.0/16 instead where the VPC overlaps this range.
# Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_KubernetesNetworkConfigRequest.html
DEFAULT_SERVICE_CIDR = IPv4Network("172.20.0.0/16")
SERVICE_CIDR_LONGEST_PREFIX = 24
SERVICE_CIDR_SHORTEST_PREFIX = 12
SERVICE_CIDR_RANGES = vpc.PRIVATE

# Ranges that may reach the public endpoint of one cluster; the quota cannot be raised.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/service-quotas.html
MOST_PUBLIC_CIDRS = 40

# Source: the `KubeApiServerConfig.EventTtl` property of
# https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-eks-cluster.html
DEFAULT_EVENT_TTL = "60m"
EVENT_TTL_MINUTES = (10, 60)

# Source: https://docs.aws.amazon.com/eks/latest/userguide/control-plane-logs.html
CONTROL_PLANE_LOG_TYPES: tuple[LogType, ...] = (
    "api",
    "audit",
    "authenticator",
    "controllerManager",
    "scheduler",
)

# Access policies for people, the weakest first. They name only API groups of Kubernetes itself.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/access-policy-permissions.html
ACCESS_POLICIES: Mapping[str, str] = MappingProxyType(
    {
        "view": "AmazonEKSViewPolicy",
        "edit": "AmazonEKSEditPolicy",
        "admin": "AmazonEKSAdminPolicy",
        "cluster-admin": "AmazonEKSClusterAdminPolicy",
    }
)
CLUSTER_ADMIN_POLICY = ACCESS_POLICIES["cluster-admin"]

# Source: https://docs.aws.amazon.com/eks/latest/userguide/coredns-autoscaling.html
NODES_PER_COREDNS_REPLICA = 16
VCPUS_PER_COREDNS_REPLICA = 256

CLUSTER_DOMAIN = "cluster.local"
# Source: https://kubernetes.io/docs/tasks/administer-cluster/nodelocaldns/
NODE_LOCAL_DNS_ADDRESS = "169.254.20.10"

# Strategies by which the scheduler may score nodes.
# Source: the `KubeSchedulerConfig` property of
# https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-eks-cluster.html
SCORED_RESOURCES = (
    "cpu",
    "memory",
    "nvidia.com/gpu",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
)

# Free addresses that a subnet of the control plane needs.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html
LEAST_CONTROL_PLANE_ADDRESSES = 6
ADVISED_CONTROL_PLANE_ADDRESSES = 16

# A /28 prefix takes the place of one address on an interface.
# Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-prefix-eni.html
ADDRESSES_PER_PREFIX = 16
# aws-node and kube-proxy use the host's network and take no address.
# Source: https://github.com/aws/amazon-vpc-cni-k8s/blob/b521883/misc/eni-max-pods.txt
HOST_NETWORK_PODS = 2
# Pods of EKS's add-ons on the host's network of every node but EKS Auto Mode's: the VPC CNI,
# kube-proxy, the Pod Identity agent and the node monitoring agent.
# Sources:
# https://github.com/aws/eks-pod-identity-agent/blob/main/charts/eks-pod-identity-agent/templates/daemonset.yaml
# https://github.com/aws/eks-node-monitoring-agent/blob/main/charts/eks-node-monitoring-agent/templates/daemonset.yaml
ADDON_HOST_NETWORK_PODS = 4

# Node label of the EC2 instance type, on every node.
# Source: https://kubernetes.io/docs/reference/labels-annotations-taints/
INSTANCE_TYPE_LABEL = "node.kubernetes.io/instance-type"
ZONE_LABEL = "topology.kubernetes.io/zone"
# Source: https://docs.aws.amazon.com/eks/latest/userguide/al2023.html
NODE_CONFIG_API_VERSION = "node.eks.aws/v1alpha1"


def cluster_dns_address(service_cidr: IPv4Network) -> str:
    """Return the address of CoreDNS's Service.

    Source: https://github.com/awslabs/amazon-eks-ami/tree/main/nodeadm/internal/api
    """
    return str(service_cidr[10])


def advised_max_pods(vcpus: int) -> int:
    """Return the most pods that EKS advises for a node with ``vcpus`` vCPUs.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/choosing-instance-type.html
    """
    return 250 if vcpus > 30 else 110


# Source: https://docs.aws.amazon.com/eks/latest/userguide/node-efa.html
HUGE_PAGES_MIB = 5128 * 2
"""Memory, in MiB, that the accelerated Amazon Linux 2023 AMIs set aside as huge pages of 2 MiB.

AWS's own manifests of EFA jobs ask for some of it.
"""


# --- The Cluster Autoscaler on AWS: the tags of an Auto Scaling group that it reads ---------------
# Sources:
#     https://github.com/kubernetes/autoscaler/blob/cluster-autoscaler-1.36.1/cluster-autoscaler/cloudprovider/aws/README.md
#     https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-tagging.html
#     https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_Tag.html


_NODE_TEMPLATE = "k8s.io/cluster-autoscaler/node-template"
# Prefixes of tag keys, before a label, a taint's key, a resource or an option. The first three
# count only while the group has no node to look at.
LABEL_TAG = f"{_NODE_TEMPLATE}/label/"
TAINT_TAG = f"{_NODE_TEMPLATE}/taint/"
RESOURCE_TAG = f"{_NODE_TEMPLATE}/resources/"
OPTION_TAG = f"{_NODE_TEMPLATE}/autoscaling-options/"

# Share of a node's CPU, memory or GPUs that its pods request. A node below the threshold may go;
# with a threshold of 0 none may, not even an empty node.
# Source: https://github.com/kubernetes/autoscaler/blob/cluster-autoscaler-1.36.1/cluster-autoscaler/core/scaledown/eligibility/eligibility.go
UTILIZATION_THRESHOLDS = ("scaledownutilizationthreshold", "scaledowngpuutilizationthreshold")
UNNEEDED_TIME = "scaledownunneededtime"

TAGS_PER_GROUP = 50
TAG_KEY_CHARACTERS = 128
# Room for the tags that EKS and the group itself need.
TAGS_OF_OTHERS = 10
