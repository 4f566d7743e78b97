"""EKS Auto Mode: what it brings along, and what it asks of the nodes beside its own.

Source: https://docs.aws.amazon.com/eks/latest/userguide/automode.html
"""

from collections.abc import Mapping
from types import MappingProxyType

from ultrascale.catalog.addons import Release

# Part of its nodes: the add-ons of these names are for the other nodes of the cluster.
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

# The first release of each that keeps its DaemonSet off Auto Mode nodes. kube-proxy has one for
# each minor up to 1.31, where the table ends.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/auto-enable-existing.html
ADDON_FLOORS: Mapping[str, Release] = MappingProxyType(
    {
        "vpc-cni": (1, 19, 0),
        "eks-pod-identity-agent": (1, 3, 4),
        "aws-ebs-csi-driver": (1, 37, 0),
    }
)

# NodePools of its own. EKS deletes an object of that name when it is told to switch its own off.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/set-builtin-node-pools.html
BUILT_IN_NODE_POOLS = frozenset({"system", "general-purpose"})

# Source: https://docs.aws.amazon.com/eks/latest/userguide/automode-learn-instances.html
NODE_DAYS = 21
"""Age at which it replaces a node, whatever runs there."""

# Its own driver of EBS volumes, which takes the place of the add-on's on its nodes.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/create-storage-class.html
VOLUME_PROVISIONER = "ebs.csi.eks.amazonaws.com"
