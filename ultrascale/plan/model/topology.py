"""Parts of a cluster that a picture of it shows."""

from dataclasses import dataclass
from typing import Literal

from ultrascale.plan.model.network import Egress, ExistingVpcPlan, FlowLogs, SubnetKind


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPart:
    """A pool, with all of its shards.

    Attributes:
        pool: Its name in the cluster file.
        role: `system`, `reserved` or `burst`.
        provisioner: Name of what launches its nodes.
        purchase: How its nodes are bought.
        reservation: What names the capacity that is paid for already; None without any.
        instance_types: In order of preference.
        zones: Zones that it may launch in.
        subnets: Kind of the subnets that its nodes live in.
        nodes_min: Fewest nodes, while its window is open where it has one.
        nodes_max: Most nodes.
        shards: NodePools, node groups or instance groups that it consists of.
        nodes_of_shard: Most nodes of each of these.
        fallback_nodes: Most nodes of ``nodes_max`` that are On-Demand where Spot is short.
        accelerator: Kubernetes' name of its accelerators; None without any.
        accelerators_per_node: Fewest accelerators of a node, among its types.
        efa_interfaces: EFA interfaces of a node.
        placement_group: Whether its nodes share a cluster placement group.
    """

    pool: str
    role: Literal["system", "reserved", "burst"]
    provisioner: str
    purchase: str
    reservation: str | None
    instance_types: tuple[str, ...]
    zones: tuple[str, ...]
    subnets: SubnetKind
    nodes_min: int
    nodes_max: int
    shards: int
    nodes_of_shard: int
    fallback_nodes: int
    accelerator: str | None
    accelerators_per_node: int
    efa_interfaces: int
    placement_group: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystemPart:
    """An FSx for Lustre file system.

    Attributes:
        name: Its name in the cluster file.
        zone: Its zone.
        capacity_gib: Its capacity, in GiB; None where it was there already.
        throughput_mbps_per_tib: Its throughput tier, in MB/s per TiB; None where it was there.
        existing: Its id where it was there already, else None.
        bucket: The bucket whose objects it shows; None without one.
    """

    name: str
    zone: str
    capacity_gib: int | None
    throughput_mbps_per_tib: int | None
    existing: str | None
    bucket: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """The parts of a cluster, and where each lies.

    The subnets, with their addresses, are `ClusterNeeds.subnets`.

    Attributes:
        existing: The VPC that exists, and is not ours; None for one of ours.
        egress: Way out of it to the internet.
        vpc_cidr: Primary range of the VPC.
        secondary_cidrs: Its further ranges.
        zones: Zones that have subnets, in file order.
        kubernetes: Minor version of Kubernetes.
        tier: Control-plane tier, in EKS's words.
        auto_mode: Whether EKS Auto Mode runs compute, storage and load balancing.
        public_cidrs: Ranges that reach the public endpoint; empty means there is none.
        service_cidr: Range of Kubernetes Services.
        nat_gateways: NAT gateways, one in each zone with a public subnet.
        interface_endpoints: AWS services that are reached through interface endpoints.
        endpoint_interfaces: Network interfaces of these endpoints, in all zones.
        gateway_endpoints: AWS services that are reached through gateway endpoints.
        present_endpoints: AWS services whose endpoints are in the VPC already.
        flow_logs: Destination of flow logs.
        pools: In file order, the system pools first.
        file_systems: File systems.
        buckets: S3 buckets, by their names in the cluster file.
        repositories: ECR repositories.
        database: Engine and version of the backend's database; None without one.
    """

    existing: ExistingVpcPlan | None
    egress: Egress
    vpc_cidr: str
    secondary_cidrs: tuple[str, ...]
    zones: tuple[str, ...]
    kubernetes: str
    tier: str
    auto_mode: bool
    public_cidrs: tuple[str, ...]
    service_cidr: str
    nat_gateways: int
    interface_endpoints: tuple[str, ...]
    endpoint_interfaces: int
    gateway_endpoints: tuple[str, ...]
    present_endpoints: tuple[str, ...]
    flow_logs: FlowLogs
    pools: tuple[PoolPart, ...]
    file_systems: tuple[FileSystemPart, ...]
    buckets: tuple[str, ...]
    repositories: tuple[str, ...]
    database: str | None
