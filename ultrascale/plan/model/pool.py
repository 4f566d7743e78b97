"""Pools of nodes."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ultrascale.catalog.provisioners import Provisioned, Provisioner

CapacityType = Literal["on-demand", "spot", "reserved"]
SizedBy = Literal["file", "provisioner", "cluster-autoscaler", "calendar"]


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
class ReservationPlan:
    """Capacity that is paid for already, named in exactly one of three ways.

    Attributes:
        id: Its id; None where it is found by tags or resource group.
        tags: Tags that it carries; empty where it is not found by them.
        resource_group: ARN of the resource group that holds it, or None.
        spill: Whether On-Demand instances are launched once it is full.
    """

    id: str | None
    tags: Mapping[str, str]
    resource_group: str | None
    spill: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPlan:
    """Times between which the capacity of a Capacity Block or a training plan is there, in UTC.

    Attributes:
        starts: Start of the block or plan.
        usable_until: When its nodes are drained, so that jobs end before EC2 ends them.
        reclaimed_from: When EC2 or SageMaker begins to terminate its instances.
        ends: End of the block or plan.
    """

    starts: datetime
    usable_until: datetime
    reclaimed_from: datetime
    ends: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPlan(Provisioned):
    """A pool, or one shard of it, joined with what the catalog says of its instance types.

    Attributes:
        name: Name of the pool, with the shard's number where it has several.
        pool: Name in the cluster file.
        shard: Number of the shard, from 1; None where the pool has no shards.
        role: `system`, `reserved` or `burst`.
        provisioner: What launches the nodes.
        purchase: Purchase option.
        capacity_type: The same in the words of `karpenter.sh/capacity-type`.
        reservation: What its capacity is reserved by; None for On-Demand and Spot.
        window: When a Capacity Block or a training plan is there; None for every other option.
        fallback_nodes: How many of `max_nodes` may be On-Demand instances, launched where Spot is
            short; 0 where there is no such fallback.
        instance_types: In order of preference.
        node_types: The same as the nodes' label `node.kubernetes.io/instance-type` has them.
        ami_type: EKS AMI type.
        ami_release: Release of the EKS-optimized AMI.
        ami_alias: The same release as Karpenter names it.
        ami_parameter: Public Systems Manager parameter that holds the id of that very image.
        kubernetes_version: Minor version of the kubelets in that release.
        zones: Zones it may launch in.
        min_nodes: Fewest nodes.
        max_nodes: Most nodes.
        static: Whether `max_nodes` are kept whether pods run or not.
        initial_nodes: Nodes that the pool is made with.
        sized_by: What changes the number of nodes later: the cluster file alone, what launches
            them as pods need them, the Cluster Autoscaler, or the calendar of a Capacity Block.
        deep_health_checks: Whether HyperPod stresses a node before it takes work.
        accelerator: Extended resource of its accelerators; None for CPU pools.
        accelerators_per_node: Accelerators of a node, the fewest among its types; 0 for CPU pools.
        network_interfaces: Every interface of a node; empty where EC2's single default one is
            enough.
        without_efa: Why there is no EFA interface among them; None where there is.
        max_pods: Pods for which a node has addresses.
        labels: Node labels.
        taints: Node taints.
        root_disk: Root volume.
        volume_key: ARN of the KMS key of the nodes' volumes; None: the account's default key of
            EBS, or SageMaker's own.
        raid0: Whether the node's NVMe disks are joined into one volume for images and pods.
        parallel_image_pull: Whether images are pulled and unpacked in parallel.
        name_servers: Whom its pods ask for names, in this order; empty: as EKS has it.
        placement_group: Whether the nodes share a cluster placement group.
        max_unavailable: Nodes that an update takes away at the same time.
        replace_before_launch: Whether an update takes a node away before it starts its successor:
            scarce capacity has no room for both.
        tags: EC2 tags of its instances and volumes, from the cluster file.
    """

    name: str
    pool: str
    shard: int | None
    role: Literal["system", "reserved", "burst"]
    provisioner: Provisioner
    purchase: str
    capacity_type: CapacityType
    reservation: ReservationPlan | None
    window: WindowPlan | None
    fallback_nodes: int
    instance_types: tuple[str, ...]
    node_types: tuple[str, ...]
    ami_type: str
    ami_release: str
    ami_alias: str
    ami_parameter: str
    kubernetes_version: str
    zones: tuple[str, ...]
    min_nodes: int
    max_nodes: int
    static: bool
    initial_nodes: int
    sized_by: SizedBy
    deep_health_checks: bool
    accelerator: str | None
    accelerators_per_node: int
    network_interfaces: tuple[NetworkInterface, ...]
    without_efa: str | None
    max_pods: int
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    root_disk: RootDisk
    volume_key: str | None
    raid0: bool
    parallel_image_pull: bool
    name_servers: tuple[str, ...]
    placement_group: bool
    max_unavailable: int
    replace_before_launch: bool
    tags: Mapping[str, str]

    @property
    def efa_interfaces(self) -> int:
        """EFA interfaces of one node."""
        return sum(1 for nic in self.network_interfaces if nic.kind == "efa-only")
