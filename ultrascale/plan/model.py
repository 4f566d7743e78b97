"""The plans: what constructs and charts render. Everything here is decided, nothing is optional."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from typing import Literal

PodSecurity = Literal["privileged", "baseline", "restricted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespacePlan:
    """A namespace that the platform creates.

    Attributes:
        name: Its name.
        pod_security: Pod Security Standard that the API server enforces in it.
        training: Training jobs run here and may reach the rendezvous server.
    """

    name: str
    pod_security: PodSecurity
    training: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityClassPlan:
    """A Kubernetes PriorityClass.

    Attributes:
        name: Its name.
        value: Below 1,000,000,000; the rest is Kubernetes' own.
        preempts: Whether its pods may evict pods of lower priority.
    """

    name: str
    value: int
    preempts: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePlan:
    """A Volcano queue.

    Attributes:
        name: Its name.
        weight: Share of the cluster relative to the other queues, 1 to 65535.
        reclaimable: Whether other queues may take back what it uses beyond its share.
        capability: Most that its jobs may use, by resource name; empty means no cap.
    """

    name: str
    weight: int
    reclaimable: bool = True
    capability: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class VolcanoPlan:
    """The Volcano gang scheduler.

    Attributes:
        queues: Queues of the cluster file, beside `default` and `root` which Volcano makes itself.
        enqueue: Whether the scheduler runs its `enqueue` action. It keeps a gang's pods from being
            created until existing nodes could hold them, so a cluster that scales from zero must
            not run it: nothing would ever scale.
        topology_aware: Whether HyperNodes are discovered from AWS's network-topology labels.
        topology_layers: Number of `topology.k8s.aws/network-node-layer-N` labels the nodes carry.
        accelerator_resources: Extended resources of the pools, which bin-packing weighs.
    """

    queues: tuple[QueuePlan, ...]
    enqueue: bool
    topology_aware: bool
    topology_layers: int
    accelerator_resources: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdPlan:
    """The etcd that TorchElastic workers meet at.

    Attributes:
        namespace: Where it runs: the training namespace, so that the tutorial's short host name
            ``etcd-server`` resolves from a job's pods.
        replicas: 1 or 3 members.
        v2_api: Whether the v2 HTTP API is on, which torch's own etcd backends need.
        volume_gib: Size of each member's gp3 volume, in GiB.
    """

    namespace: str
    replicas: int
    v2_api: bool
    volume_gib: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePluginPlan:
    """One device plugin.

    Attributes:
        image: Image reference, pinned.
        instance_types: Values of `node.kubernetes.io/instance-type` that it runs on, HyperPod's
            `ml.` names among them. Empty: it goes by `node_selector` alone.
        node_selector: Labels that its nodes carry.
        taint_keys: Keys of the taints on those nodes.
    """

    image: str
    instance_types: tuple[str, ...]
    node_selector: Mapping[str, str]
    taint_keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuronSchedulerExtensionPlan:
    """The scheduler that places pods which ask for a part of a node's Neuron devices.

    Attributes:
        extender_image: Image of the Neuron scheduler extender, pinned.
        scheduler_image: Image of kube-scheduler, pinned, of the cluster's own minor.
        scheduler_name: What such a pod puts into ``schedulerName``.
    """

    extender_image: str
    scheduler_image: str
    scheduler_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimPlan:
    """The PersistentVolumeClaim through which pods of one namespace mount a file system."""

    namespace: str
    name: str
    mount_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LustrePlan:
    """An FSx for Lustre file system.

    Attributes:
        name: Name in the cluster file.
        zone: Its one Availability Zone, by name or zone id.
        capacity_gib: Storage capacity, in GiB.
        throughput_mbps_per_tib: Throughput tier, in MB/s per TiB.
        efa: Whether clients reach it over EFA.
        claim: How pods mount it; None where nothing in the cluster does.
        file_system_id: Placeholder that stands for the file system's id in ``dist/``.
        dns_name: Placeholder for its DNS name.
        mount_name: Placeholder for its Lustre mount name.
    """

    name: str
    zone: str
    capacity_gib: int
    throughput_mbps_per_tib: int
    efa: bool
    claim: ClaimPlan | None
    file_system_id: str
    dns_name: str
    mount_name: str


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
        provisioner: Who launches its nodes.
        purchase: Purchase option.
        instance_types: In order of preference.
        ami_type: EKS AMI type.
        ami_release: Release of the EKS-optimized AMI.
        kubernetes_version: Minor version of the kubelets in that release.
        zones: Zones it may launch in.
        min_nodes: Fewest nodes.
        max_nodes: Most nodes.
        vcpus: vCPUs of the largest of its types.
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
        replace_before_launch: Whether an update takes a node away before it starts its successor:
            scarce capacity has no room for both.
    """

    name: str
    role: Literal["system", "reserved", "burst"]
    provisioner: str
    purchase: str
    instance_types: tuple[str, ...]
    ami_type: str
    ami_release: str
    kubernetes_version: str
    zones: tuple[str, ...]
    min_nodes: int
    max_nodes: int
    vcpus: int
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
    replace_before_launch: bool

    @property
    def efa_interfaces(self) -> int:
        """EFA interfaces of one node."""
        return sum(1 for nic in self.network_interfaces if nic.kind == "efa-only")


SubnetKind = Literal["public", "private", "control-plane", "accelerated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubnetPlan:
    """A subnet.

    Attributes:
        kind: `public` holds NAT gateways and internet-facing load balancers, `control-plane` only
            the control plane's interfaces, `private` nodes and everything else, `accelerated` the
            accelerated nodes and their pods, from the secondary ranges.
        zone: Zone name or zone id.
        cidr: IPv4 range.
        prefix_reservations: Parts of the range that only /28 prefixes are taken from, so that
            single addresses cannot fragment them; none for subnets without nodes.
    """

    kind: SubnetKind
    zone: str
    cidr: IPv4Network
    prefix_reservations: tuple[IPv4Network, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkPlan:
    """The VPC.

    Attributes:
        vpc_cidr: Primary range.
        secondary_cidrs: Secondary ranges.
        zones: Zones that get subnets, in file order.
        subnets: Every subnet, by kind and then in zone order.
        interface_endpoints: Short names of the AWS services reached through interface endpoints.
    """

    vpc_cidr: IPv4Network
    secondary_cidrs: tuple[IPv4Network, ...]
    zones: tuple[str, ...]
    subnets: tuple[SubnetPlan, ...]
    interface_endpoints: tuple[str, ...]

    def of_kind(self, kind: SubnetKind) -> tuple[SubnetPlan, ...]:
        """Return the subnets of ``kind``, in zone order."""
        return tuple(subnet for subnet in self.subnets if subnet.kind == kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddonPlan:
    """An EKS add-on.

    Attributes:
        name: EKS's name.
        version: Pinned version.
        configuration: Configuration values, as the add-on's JSON schema has them.
        service_account: Service account that takes AWS permissions; None where it needs none.
        managed_policy: AWS managed policy of that service account.
    """

    name: str
    version: str
    configuration: Mapping[str, object]
    service_account: str | None
    managed_policy: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlanePlan:
    """The EKS control plane.

    Attributes:
        version: Kubernetes minor version.
        tier: EKS's name of the control-plane scaling tier.
        service_cidr: Range of Kubernetes Services. A change replaces the cluster.
        event_ttl: How long Kubernetes events are kept, such as ``60m``.
        public_cidrs: Ranges that reach the public endpoint; empty means there is none.
        log_types: Control-plane logs that are written.
        log_retention_days: How long they are kept, in days.
        admins: IAM roles with cluster administration.
        node_addons: Add-ons that must be there before a node joins.
        workload_addons: Add-ons that need a node to become healthy.
    """

    version: str
    tier: str
    service_cidr: IPv4Network
    event_ttl: str
    public_cidrs: tuple[str, ...]
    log_types: tuple[str, ...]
    log_retention_days: int
    admins: tuple[str, ...]
    node_addons: tuple[AddonPlan, ...]
    workload_addons: tuple[AddonPlan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """Everything that is built.

    Attributes:
        name: Cluster name and prefix of the stack names.
        region: AWS Region.
        partition: AWS partition of the Region.
        account: AWS account; None makes the assembly independent of one.
        network: VPC.
        control_plane: EKS.
        system_pools: Pools that run controllers and add-ons.
        pools: Every other pool.
        lustre: File systems.
        repositories: Names of the ECR repositories.
        namespaces: Namespaces.
        priority_classes: PriorityClasses.
        neuron: Neuron device plugin, if a pool has Neuron devices.
        neuron_scheduler: Neuron scheduler extension, if asked for.
        efa: EFA device plugin, if a pool has EFA interfaces.
        volcano: Gang scheduler, if asked for.
        etcd: Rendezvous server, if asked for.
    """

    name: str
    region: str
    partition: str
    account: str | None
    network: NetworkPlan
    control_plane: ControlPlanePlan
    system_pools: tuple[PoolPlan, ...]
    pools: tuple[PoolPlan, ...]
    lustre: tuple[LustrePlan, ...]
    repositories: tuple[str, ...]
    namespaces: tuple[NamespacePlan, ...]
    priority_classes: tuple[PriorityClassPlan, ...]
    neuron: DevicePluginPlan | None
    neuron_scheduler: NeuronSchedulerExtensionPlan | None
    efa: DevicePluginPlan | None
    volcano: VolcanoPlan | None
    etcd: EtcdPlan | None

    @property
    def all_pools(self) -> tuple[PoolPlan, ...]:
        """Every pool, the system pools first."""
        return self.system_pools + self.pools
