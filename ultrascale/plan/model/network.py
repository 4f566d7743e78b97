"""The VPC."""

from collections.abc import Mapping
from ipaddress import IPv4Network
from typing import Literal

from ultrascale.catalog import regions
from ultrascale.catalog.endpoints import Kind as EndpointKind
from ultrascale.frozen import Frozen
from ultrascale.plan.model.scale import NodeLocalDnsPlan

FlowLogs = Literal["cloudwatch", "s3", "none"]
Egress = Literal["nat", "transit-gateway", "none"]
SubnetKind = Literal["public", "private", "control-plane", "accelerated"]
EndpointState = Literal["made", "present", "missing"]


class SubnetPlan(Frozen):
    """A subnet."""

    # `public` holds NAT gateways and internet-facing load balancers, `control-plane` only the
    # control plane's interfaces, `private` nodes and everything else, `accelerated` the accelerated
    # nodes and their pods, from the secondary ranges, and such other nodes as the VPC's own range
    # has no room for.
    kind: SubnetKind
    zone: str  # Zone name or zone id
    cidr: IPv4Network  # IPv4 range
    # Parts of the range that only /28 prefixes are taken from, so that single addresses cannot
    # fragment them; none for subnets without nodes, and for existing subnets.
    prefix_reservations: tuple[IPv4Network, ...]
    # Id of an existing subnet; one with several uses stands once for each kind. None: we make it.
    id: str | None = None
    # Recorded free addresses of an existing subnet; None: not recorded.
    free_addresses: int | None = None
    # Recorded free blocks of 16 addresses of it; None: not recorded.
    free_prefixes: int | None = None

    @property
    def zone_by_id(self) -> bool:
        """Whether `zone` is a zone id."""
        return regions.is_zone_id(self.zone)


class ExistingVpcPlan(Frozen):
    """An existing VPC, which is not ours."""

    vpc_id: str  # Its id
    owner: str | None  # Account that owns it; None: ours
    shared: bool  # Whether its subnets are shared with our account by another one


class EndpointPlan(Frozen):
    """A VPC endpoint of an AWS service."""

    service: str  # Its short name, behind ``com.amazonaws.REGION.``
    kind: EndpointKind  # Whether it has interfaces, or is an entry in route tables
    # `made` by the network's stack, `present` in an existing VPC by the file, or `missing`: calls
    # then take the VPC's way to the internet, if it has one.
    state: EndpointState
    required: bool  # Whether a part of the cluster fails where its calls have no way
    # Calls of the service from within the VPC, one sentence each; empty where nothing deployed
    # makes any.
    reasons: tuple[str, ...]


class NetworkPolicyPlan(Frozen):
    """Reach of network policies."""

    enforced: bool  # Whether the VPC CNI enforces them
    of_jobs: bool  # Whether policies select the pods of jobs, or name them as peers
    # Ranges of nodes' and pods' addresses, which stand for jobs' pods as peers; empty where
    # selectors do.
    ranges: tuple[str, ...]


class InterfaceCleanerPlan(Frozen):
    """The function that deletes network interfaces of ended nodes."""

    cluster_tag: str  # Tag of the interfaces that holds the cluster's name
    made_tag: str  # Tag of the interfaces that holds the time of their creation
    interval_minutes: int  # Time between two runs, in minutes
    least_minutes: int  # Age of the youngest interface that it deletes, in minutes
    most: int  # Most interfaces that it deletes in a run
    timeout_seconds: int  # Longest time of a run, in seconds
    log_retention_days: int  # Retention of its log, in days


class NetworkPlan(Frozen):
    """The VPC."""

    existing: ExistingVpcPlan | None  # The VPC that exists; None: ours, which we make
    egress: Egress  # Way out to the internet
    vpc_cidr: IPv4Network  # Primary range
    secondary_cidrs: tuple[IPv4Network, ...]  # Secondary ranges
    zones: tuple[str, ...]  # Zones that have subnets for nodes, in file order
    subnets: tuple[SubnetPlan, ...]  # Every subnet, by kind and then in zone order
    # /28 prefixes that a node in the secondary ranges, or in an existing VPC, may hold: one in use
    # and one in reserve, or a single one where they have room for no more; 0 where pods have single
    # addresses.
    prefixes_per_node: int
    # Most pods with an address of their own on a node in an existing VPC, outside system pools;
    # None: as many as nodes without accelerators have room for.
    most_pods: int | None
    # Most pods with a single address of their own on a node; None where their addresses come from
    # prefixes.
    pod_addresses: int | None
    # Ids of the subnets of each pool's, or shard's, nodes, by its name; empty for a VPC of ours.
    assigned: Mapping[str, tuple[str, ...]]
    # Single addresses of other users beside nodes, by the id of an existing subnet and by purpose;
    # empty for a VPC of ours.
    standing: Mapping[str, Mapping[str, int]]
    # Whether nodes of NodePools without accelerators, those of system pools aside, live in the
    # secondary ranges.
    plain_in_pod_ranges: bool
    # Whether secondary ranges go to the zones that need them, so that pools that grow may move
    # subnets.
    dealt_by_need: bool
    # Whether CloudFormation has no type for the prefix reservations of subnets in this Region, so
    # that a function makes them.
    reserves_by_function: bool
    endpoints: tuple[EndpointPlan, ...] = ()  # VPC endpoints that are made, stated or needed
    # Id of an existing security group for the interfaces of made endpoints; None makes one.
    endpoint_security_group: str | None = None
    flow_logs: FlowLogs  # Destination of flow logs
    log_retention_days: int  # Retention of flow logs and of a function's log, in days
    policies: NetworkPolicyPlan  # Reach of network policies
    # Function that deletes interfaces of ended nodes; None: each node does.
    interface_cleaner: InterfaceCleanerPlan | None = None
    node_local_dns: NodeLocalDnsPlan | None = None  # The cache of names on every node

    @property
    def interface_endpoints(self) -> tuple[str, ...]:
        """Short names of the services whose interface endpoints are made."""
        return self._made("interface")

    @property
    def gateway_endpoints(self) -> tuple[str, ...]:
        """Short names of the services whose gateway endpoints are made."""
        return self._made("gateway")

    def _made(self, kind: EndpointKind) -> tuple[str, ...]:
        return tuple(
            endpoint.service
            for endpoint in self.endpoints
            if endpoint.kind == kind and endpoint.state == "made"
        )

    def of_kind(self, kind: SubnetKind) -> tuple[SubnetPlan, ...]:
        """Return the subnets of ``kind``, in zone order."""
        return tuple(subnet for subnet in self.subnets if subnet.kind == kind)
