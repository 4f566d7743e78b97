"""Every name that CloudFormation and Kubernetes, or two manifests, must agree on."""

from ultrascale.catalog import eks, kubernetes_names
from ultrascale.config.pools import NODE_TYPE

VOLCANO_NAMESPACE = "volcano-system"
SYSTEM_NAMESPACE = "kube-system"
TRAINING_NAMESPACE = "training"

POOL_LABEL = "ultrascale.dev/pool"
ROLE_LABEL = "ultrascale.dev/role"
CAPACITY_LABEL = "ultrascale.dev/capacity"
NODE_TYPE_LABEL = NODE_TYPE
# Set only on nodes that have EFA interfaces, so that the EFA device plugin never starts on a node
# without one, where it crash-loops (aws/eks-charts#1239).
EFA_LABEL = "ultrascale.dev/efa"
# Marks the namespaces whose pods may reach the rendezvous server.
TRAINING_LABEL = "ultrascale.dev/training"

SYSTEM_ROLE = "system"

ETCD_SERVER_SERVICE = "etcd-server"
ETCD_CLIENT_SERVICE = "etcd-client"
ETCD_CLIENT_PORT = 2379
ETCD_PEER_PORT = 2380


def stack(cluster: str, layer: str) -> str:
    """Return the name of the stack that holds ``layer``: a lifecycle, or a pool's name."""
    return f"{cluster}-{layer}"


def repository(cluster: str, name: str) -> str:
    """Return the ECR repository behind ``images.repositories``; clusters must not share one."""
    return f"{cluster}/{name}"


def control_plane_logs(cluster: str) -> str:
    """Return the log group that EKS writes the control-plane logs to. EKS chose the name."""
    return f"/aws/eks/{cluster}/cluster"


INSTANCE_TYPE_LABEL = eks.INSTANCE_TYPE_LABEL
ZONE_LABEL = eks.ZONE_LABEL
HOSTNAME_LABEL = kubernetes_names.HOSTNAME_LABEL
NEURON_DEVICE = kubernetes_names.NEURON_DEVICE
NEURON_CORE = kubernetes_names.NEURON_CORE
# The device plugin's resource, and the key of the taint that reserves nodes for it.
EFA_INTERFACE = kubernetes_names.EFA_INTERFACE
# On a claim: where its job's containers mount it, for whoever writes the job's pods.
MOUNT_PATH_ANNOTATION = "ultrascale.dev/mount-path"
