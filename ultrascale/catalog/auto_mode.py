"""EKS Auto Mode: its built-in add-ons and NodePools, and its demands on other nodes.

Source: https://docs.aws.amazon.com/eks/latest/userguide/automode.html
"""

from collections.abc import Mapping
from types import MappingProxyType

from ultrascale.catalog.addons import Release

# Built into Auto Mode's nodes: the add-ons of these names are for the cluster's other nodes.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/automode.html
BUILT_IN = frozenset(
    {
        "vpc-cni",
        "kube-proxy",
        "coredns",
        "eks-pod-identity-agent",
        "aws-ebs-csi-driver",
        "eks-node-monitoring-agent",
    }
)

# First release of each add-on that keeps its DaemonSet off Auto Mode nodes. kube-proxy has one for
# each minor up to 1.31, where the table ends.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/auto-enable-existing.html
ADDON_FLOORS: Mapping[str, Release] = MappingProxyType(
    {
        "vpc-cni": (1, 19, 0),
        "eks-pod-identity-agent": (1, 3, 4),
        "aws-ebs-csi-driver": (1, 37, 0),
    }
)

# Names of Auto Mode's built-in NodePools. EKS deletes objects of these names when the built-in
# NodePools are switched off.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/set-builtin-node-pools.html
BUILT_IN_NODE_POOLS = frozenset({"system", "general-purpose"})

# Source: https://docs.aws.amazon.com/eks/latest/userguide/automode-learn-instances.html
NODE_DAYS = 21
"""Age at which Auto Mode replaces a node, whatever runs on the node."""

# Auto Mode's own driver of EBS volumes, which replaces the add-on's driver on its nodes.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/create-storage-class.html
VOLUME_PROVISIONER = "ebs.csi.eks.amazonaws.com"
