"""Provisioners: the five ways to launch the nodes of a pool, and the groups that work alike.

A class with a provisioner derives from `Provisioned`, whose properties answer for it: no other
module compares names of provisioners.

Source: https://docs.aws.amazon.com/eks/latest/userguide/eks-compute.html
"""

from typing import TYPE_CHECKING, Literal, get_args

Provisioner = Literal["managed-node-group", "self-managed", "karpenter", "auto-mode", "hyperpod"]

PROVISIONERS: tuple[Provisioner, ...] = get_args(Provisioner)
MANAGED_NODE_GROUP: Provisioner = "managed-node-group"
SELF_MANAGED: Provisioner = "self-managed"
KARPENTER: Provisioner = "karpenter"
AUTO_MODE: Provisioner = "auto-mode"
HYPERPOD: Provisioner = "hyperpod"

NODE_GROUPS: tuple[Provisioner, ...] = (MANAGED_NODE_GROUP, SELF_MANAGED)
"""Provisioners whose pools are EC2 Auto Scaling groups with launch templates."""

NODE_POOLS: tuple[Provisioner, ...] = (KARPENTER, AUTO_MODE)
"""Provisioners whose pools are NodePools of the API `karpenter.sh`, with nodes made for pods."""

NAMES = {
    MANAGED_NODE_GROUP: "EKS",
    SELF_MANAGED: "EC2 Auto Scaling",
    KARPENTER: "Karpenter",
    AUTO_MODE: "EKS Auto Mode",
    HYPERPOD: "SageMaker HyperPod",
}
"""Names of the controllers that launch nodes, in their makers' spelling."""


class Provisioned:
    """A pool, or a proposed pool, with the provisioner that launches its nodes."""

    __slots__ = ()

    if TYPE_CHECKING:
        provisioner: Provisioner

    @property
    def is_managed(self) -> bool:
        """Whether its nodes are in an EKS managed node group."""
        return self.provisioner == MANAGED_NODE_GROUP

    @property
    def is_self_managed(self) -> bool:
        """Whether its nodes are in an Auto Scaling group of ours."""
        return self.provisioner == SELF_MANAGED

    @property
    def is_node_group(self) -> bool:
        """Whether its nodes are in an Auto Scaling group, whoever manages it."""
        return self.provisioner in NODE_GROUPS

    @property
    def is_karpenter(self) -> bool:
        """Whether the cluster's own Karpenter launches its nodes."""
        return self.provisioner == KARPENTER

    @property
    def is_auto_mode(self) -> bool:
        """Whether EKS Auto Mode launches its nodes."""
        return self.provisioner == AUTO_MODE

    @property
    def is_node_pool(self) -> bool:
        """Whether its nodes are launched from a NodePool."""
        return self.provisioner in NODE_POOLS

    @property
    def runs_pinned_image(self) -> bool:
        """Whether its nodes run our pinned image, with our settings of the kubelet.

        EKS Auto Mode and HyperPod have their own images, with the device plugins, EFA's among them,
        inside or beside them.

        Sources:
            https://docs.aws.amazon.com/eks/latest/userguide/auto-accelerated.html
            https://github.com/aws/eks-charts/pull/1359
            https://github.com/aws/sagemaker-hyperpod-cli/tree/main/helm_chart
        """
        return not (self.is_auto_mode or self.is_hyperpod)

    @property
    def is_hyperpod(self) -> bool:
        """Whether SageMaker HyperPod launches its nodes."""
        return self.provisioner == HYPERPOD
