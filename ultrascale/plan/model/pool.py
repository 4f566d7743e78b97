"""Pools of nodes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkInterface:
    """One network interface of a node, at the place EC2 gives it.

    Attributes:
        card: NetworkCardIndex.
        device: DeviceIndex on that card.
        kind: InterfaceType.
    """

    card: int
    device: int
    kind: Literal["interface", "efa-only"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """A node taint, in Kubernetes' spelling."""

    key: str
    value: str
    effect: Literal["NoSchedule", "NoExecute", "PreferNoSchedule"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RootDisk:
    """A node's encrypted gp3 root volume.

    Attributes:
        size_gib: Size, in GiB.
        iops: Provisioned IOPS.
        throughput_mibps: Provisioned throughput, in MiB/s.
    """

    size_gib: int
    iops: int
    throughput_mibps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPlan:
    """A pool, joined with what the catalog says of its instance types.

    Attributes:
        name: Name in the cluster file.
        role: `system`, `reserved` or `burst`.
        purchase: Purchase option.
        instance_types: In order of preference.
        ami_type: EKS AMI type.
        ami_release: Release of the EKS-optimized AMI.
        kubernetes_version: Minor version of the kubelets in that release.
        zones: Zones it may launch in.
        min_nodes: Fewest nodes.
        max_nodes: Most nodes.
        accelerator: Extended resource of its accelerators; None for CPU pools.
        accelerators_per_node: Accelerators of a node, the fewest among its types; 0 for CPU pools.
        network_interfaces: Every interface of a node; empty where EC2's single default one is
            enough.
        without_efa: Why there is no EFA interface among them; None where there is.
        max_pods: Pods for which a node has addresses.
        labels: Node labels.
        taints: Node taints.
        root_disk: Root volume.
        raid0: Whether the node's NVMe disks are joined into one volume for images and pods.
        parallel_image_pull: Whether images are pulled and unpacked in parallel.
        placement_group: Whether the nodes share a cluster placement group.
        max_unavailable: Nodes that an update takes away at the same time.
        replace_before_launch: Whether an update takes a node away before it starts its successor:
            scarce capacity has no room for both.
    """

    name: str
    role: Literal["system", "reserved", "burst"]
    purchase: str
    instance_types: tuple[str, ...]
    ami_type: str
    ami_release: str
    kubernetes_version: str
    zones: tuple[str, ...]
    min_nodes: int
    max_nodes: int
    accelerator: str | None
    accelerators_per_node: int
    network_interfaces: tuple[NetworkInterface, ...]
    without_efa: str | None
    max_pods: int
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    root_disk: RootDisk
    raid0: bool
    parallel_image_pull: bool
    placement_group: bool
    max_unavailable: int
    replace_before_launch: bool

    @property
    def efa_interfaces(self) -> int:
        """EFA interfaces of one node."""
        return sum(1 for nic in self.network_interfaces if nic.kind == "efa-only")
