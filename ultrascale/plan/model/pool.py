"""Pools of nodes."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from msgspec import field

from ultrascale.catalog.instance_types import InstanceType
from ultrascale.catalog.provisioners import Provisioned, Provisioner
from ultrascale.catalog.recorded import RecordedNodes
from ultrascale.frozen import Frozen

CapacityType = Literal["on-demand", "spot", "reserved"]
SizedBy = Literal["file", "provisioner", "cluster-autoscaler", "calendar"]


class NetworkInterface(Frozen):
    """One network interface of a node, at the place EC2 gives it."""

    card: int  # NetworkCardIndex
    device: int  # DeviceIndex on that card
    kind: Literal["interface", "efa-only"]  # InterfaceType


class Taint(Frozen):
    """A node taint, in Kubernetes' spelling."""

    key: str
    value: str
    effect: Literal["NoSchedule", "NoExecute", "PreferNoSchedule"]


class RootDisk(Frozen):
    """A node's encrypted gp3 root volume."""

    size_gib: int  # Size, in GiB
    iops: int  # Provisioned IOPS
    throughput_mibps: int  # Provisioned throughput, in MiB/s


class ReservationPlan(Frozen):
    """Capacity that is paid for already, named in exactly one of three ways."""

    id: str | None  # Its id; None where tags or a resource group name it
    tags: Mapping[str, str]  # Tags that it carries; empty where they do not name it
    resource_group: str | None  # ARN of the resource group that holds it, or None
    spill: bool  # Whether On-Demand instances are launched once it is full


class WindowPlan(Frozen):
    """The window of a Capacity Block or a training plan, in UTC."""

    starts: datetime  # Start of the block or plan
    usable_until: datetime  # Start of the nodes' drain, so that jobs end before EC2 ends them
    reclaimed_from: datetime  # Time at which EC2 or SageMaker begins to terminate its instances
    ends: datetime  # End of the block or plan


class PoolPlan(Frozen, Provisioned):
    """A pool, or one shard of it, joined with the catalog's facts of its instance types."""

    name: str  # Name of the pool, with the shard's number where it has several
    pool: str  # Name in the cluster file
    shard: int | None  # Number of the shard, from 1; None where the pool has no shards
    role: Literal["system", "reserved", "burst"]  # `system`, `reserved` or `burst`
    provisioner: Provisioner  # Provisioner of the nodes
    purchase: str  # Purchase option
    capacity_type: CapacityType  # Purchase option in the words of `karpenter.sh/capacity-type`
    # Its reservation; None for On-Demand and Spot.
    reservation: ReservationPlan | None
    # Window of a Capacity Block or a training plan; None for every other option.
    window: WindowPlan | None
    fee_per_node_hour: float | None  # Fee paid in advance, in US dollars; None: not stated
    # Most of `max_nodes` that may be On-Demand instances, launched where Spot is short; 0 without
    # such a fallback.
    fallback_nodes: int
    instance_types: tuple[str, ...]  # Instance types in order of preference
    # Instance types by the nodes' label `node.kubernetes.io/instance-type`.
    node_types: tuple[str, ...]
    ami_type: str  # EKS AMI type
    ami_release: str  # Release of the EKS-optimized AMI
    ami_alias: str  # Karpenter's name of that release
    ami_parameter: str  # Public Systems Manager parameter with the id of that image
    kubernetes_version: str  # Minor version of the kubelets in that release
    zones: tuple[str, ...]  # Zones of its launches
    min_nodes: int  # Fewest nodes
    max_nodes: int  # Most nodes
    static: bool  # Whether `max_nodes` are kept whether pods run or not
    initial_nodes: int  # Nodes with which the pool is made
    # What changes the number of nodes later: the cluster file alone, a provisioner that launches
    # them for pods, the Cluster Autoscaler, or the calendar of a Capacity Block.
    sized_by: SizedBy
    deep_health_checks: bool  # Whether HyperPod stresses a node before it takes work
    accelerator: str | None  # Extended resource of its accelerators; None for CPU pools
    # Accelerators of a node, the fewest among its types; 0 for CPU pools.
    accelerators_per_node: int
    # Every interface of a node; empty where EC2's single default one is enough.
    network_interfaces: tuple[NetworkInterface, ...]
    without_efa: str | None  # Reason of missing EFA; None where it has EFA
    max_pods: int  # Pods for which a node has addresses
    labels: Mapping[str, str]  # Node labels
    taints: tuple[Taint, ...]  # Node taints
    root_disk: RootDisk  # Root volume
    # ARN of the KMS key of the nodes' volumes; None: the account's default key of EBS, or
    # SageMaker's own.
    volume_key: str | None
    raid0: bool  # Whether the node's NVMe disks are joined into one volume for images and pods
    parallel_image_pull: bool  # Whether images are pulled and unpacked in parallel
    # DNS servers of its pods in order; empty for EKS's default.
    name_servers: tuple[str, ...]
    placement_group: bool  # Whether the nodes share a cluster placement group
    max_unavailable: int  # Nodes that an update takes away at the same time
    # Whether an update takes a node away before it starts its successor: scarce capacity has no
    # room for both.
    replace_before_launch: bool
    tags: Mapping[str, str]  # EC2 tags of its instances and volumes, from the cluster file
    # Facts that the file records of its nodes
    recorded: RecordedNodes = field(default_factory=RecordedNodes)

    @property
    def specs(self) -> tuple[InstanceType, ...]:
        """Facts of its instance types, the recorded ones before the catalog's.

        Raises:
            CatalogError: The catalog has no such type.
        """
        return tuple(map(self.recorded.spec, self.instance_types))

    @property
    def efa_interfaces(self) -> int:
        """EFA interfaces of one node."""
        return sum(1 for nic in self.network_interfaces if nic.kind == "efa-only")


class IsolationPlan(Frozen):
    """Rules that keep pods without accelerators off nodes that can have no taints."""

    # Values of each label on these nodes, by key. Every one of the nodes has every key.
    node_labels: Mapping[str, tuple[str, ...]]
    # Prefixes of the extended resources whose pods belong on them.
    accelerator_prefixes: tuple[str, ...]
    exempt_namespaces: tuple[str, ...]  # Namespaces whose pods may run anywhere
    suggested_labels: Mapping[str, str]  # Labels of nodes that a refused pod may select instead
