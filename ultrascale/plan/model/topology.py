"""Parts of a cluster in a picture of it."""

from typing import Literal

from ultrascale.frozen import Frozen
from ultrascale.plan.model.network import Egress, ExistingVpcPlan, FlowLogs, SubnetKind


class PoolPart(Frozen):
    """A pool, with all of its shards."""

    pool: str  # Its name in the cluster file
    role: Literal["system", "reserved", "burst"]  # `system`, `reserved` or `burst`
    provisioner: str  # Name of its provisioner
    purchase: str  # Purchase of its nodes
    reservation: str | None  # Name of its reservation; None without any
    instance_types: tuple[str, ...]  # Instance types in order of preference
    zones: tuple[str, ...]  # Zones of its launches
    subnets: SubnetKind  # Kind of its nodes' subnets
    nodes_min: int  # Fewest nodes, while its window is open where it has one
    nodes_max: int  # Most nodes
    shards: int  # Number of its NodePools, node groups or instance groups
    nodes_of_shard: int  # Most nodes of each of these
    fallback_nodes: int  # Nodes of ``nodes_max`` that are On-Demand where Spot is short, at most
    accelerator: str | None  # Kubernetes' name of its accelerators; None without any
    accelerators_per_node: int  # Fewest accelerators of a node, among its types
    efa_interfaces: int  # EFA interfaces of a node
    placement_group: bool  # Whether its nodes share a cluster placement group


class FileSystemPart(Frozen):
    """An FSx for Lustre file system."""

    name: str  # Its name in the cluster file
    zone: str  # Its zone
    capacity_gib: int | None  # Its capacity, in GiB; None of an existing one
    # Its throughput tier, in MB/s per TiB; None of an existing one.
    throughput_mbps_per_tib: int | None
    existing: str | None  # Its id if it exists already, else None
    bucket: str | None  # The bucket whose objects it shows; None without one


class Topology(Frozen):
    """The parts of a cluster and their places.

    The subnets, with their addresses, are `ClusterNeeds.subnets`.
    """

    existing: ExistingVpcPlan | None  # The VPC that exists, and is not ours; None for one of ours
    egress: Egress  # Way out of it to the internet
    vpc_cidr: str  # Primary range of the VPC
    secondary_cidrs: tuple[str, ...]  # Its further ranges
    zones: tuple[str, ...]  # Zones that have subnets, in file order
    kubernetes: str  # Minor version of Kubernetes
    tier: str  # Control-plane tier, in EKS's words
    auto_mode: bool  # Whether EKS Auto Mode runs compute, storage and load balancing
    # Ranges that reach the public endpoint; empty means there is none.
    public_cidrs: tuple[str, ...]
    service_cidr: str  # Range of Kubernetes Services
    nat_gateways: int  # NAT gateways, one in each zone with a public subnet
    # AWS services with interface endpoints.
    interface_endpoints: tuple[str, ...]
    endpoint_interfaces: int  # Network interfaces of these endpoints, in all zones
    gateway_endpoints: tuple[str, ...]  # AWS services with gateway endpoints
    present_endpoints: tuple[str, ...]  # AWS services with existing endpoints in the VPC
    flow_logs: FlowLogs  # Destination of flow logs
    pools: tuple[PoolPart, ...]  # Pools in file order, the system pools first
    file_systems: tuple[FileSystemPart, ...]  # File systems
    buckets: tuple[str, ...]  # S3 buckets, by their names in the cluster file
    repositories: tuple[str, ...]  # ECR repositories
    database: str | None  # Engine and version of the backend's database; None without one
