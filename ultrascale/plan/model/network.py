"""The VPC."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Literal

from ultrascale.catalog import regions
from ultrascale.catalog.endpoints import Kind as EndpointKind

FlowLogs = Literal["cloudwatch", "s3", "none"]
Egress = Literal["nat", "transit-gateway", "none"]
SubnetKind = Literal["public", "private", "control-plane", "accelerated"]
EndpointState = Literal["made", "present", "missing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubnetPlan:
    """A subnet.

    Attributes:
        kind: `public` holds NAT gateways and internet-facing load balancers, `control-plane` only
            the control plane's interfaces, `private` nodes and everything else, `accelerated` the
            accelerated nodes and their pods, from the secondary ranges, and such other nodes as
            the VPC's own range has no room for.
        zone: Zone name or zone id.
        cidr: IPv4 range.
        prefix_reservations: Parts of the range that only /28 prefixes are taken from, so that
            single addresses cannot fragment them; none for subnets without nodes, and for subnets
            that exist.
        id: Id of a subnet that exists; one with several uses stands once for each kind. None: we
            make it.
        free_addresses: Recorded free addresses of a subnet that exists; None: not recorded.
        free_prefixes: Recorded free blocks of 16 addresses of it; None: not recorded.
    """

    kind: SubnetKind
    zone: str
    cidr: IPv4Network
    prefix_reservations: tuple[IPv4Network, ...]
    id: str | None = None
    free_addresses: int | None = None
    free_prefixes: int | None = None

    @property
    def zone_by_id(self) -> bool:
        """Whether `zone` is a zone id."""
        return regions.is_zone_id(self.zone)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingVpcPlan:
    """A VPC that exists, and is not ours.

    Attributes:
        vpc_id: Its id.
        owner: Account that owns it; None: ours.
        shared: Whether its subnets are shared with our account by another one.
    """

    vpc_id: str
    owner: str | None
    shared: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointPlan:
    """A VPC endpoint of an AWS service.

    Attributes:
        service: Its short name, which stands behind ``com.amazonaws.REGION.``.
        kind: Whether it has interfaces, or is an entry in route tables.
        state: `made` by the network's stack, `present` by what the file says of an existing VPC,
            or `missing`: calls then take the VPC's way to the internet, if it has one.
        required: Whether a part of the cluster fails where its calls have no way.
        reasons: Calls of the service from within the VPC, one sentence each; empty where nothing
            deployed makes any.
    """

    service: str
    kind: EndpointKind
    state: EndpointState
    required: bool
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkPlan:
    """The VPC.

    Attributes:
        existing: The VPC that exists; None: ours, which we make.
        egress: Way out to the internet.
        vpc_cidr: Primary range.
        secondary_cidrs: Secondary ranges.
        zones: Zones that have subnets for nodes, in file order.
        subnets: Every subnet, by kind and then in zone order.
        prefixes_per_node: /28 prefixes that a node in the secondary ranges, or in a VPC that
            exists, may hold: one in use and one in reserve, or a single one where they have room
            for no more; 0 where pods have single addresses.
        most_pods: Pods with an address of their own that a node runs at most in a VPC that exists,
            outside system pools; None: as many as nodes without accelerators have room for.
        pod_addresses: Pods with a single address of their own that a node runs at most; None where
            their addresses come from prefixes.
        assigned: Ids of the subnets that the nodes of each pool, or of each shard of it, are
            launched in, by its name; empty for a VPC of ours.
        standing: Single addresses that something takes beside nodes, by the id of a subnet that
            exists and by purpose; empty for a VPC of ours.
        plain_in_pod_ranges: Whether nodes of NodePools without accelerators, those of system pools
            aside, live in the secondary ranges.
        dealt_by_need: Whether secondary ranges go to the zones that need them, so that pools that
            grow may move subnets.
        reserves_by_function: Whether CloudFormation has no type for the prefix reservations of
            subnets in this Region, so that a function makes them.
        endpoints: VPC endpoints that are made, stated or needed.
        endpoint_security_group: Id of a security group that is there, for the interfaces of those
            that are made; None makes one.
        flow_logs: Destination of flow logs.
        log_retention_days: How long flow logs and a function's log are kept, in days.
    """

    existing: ExistingVpcPlan | None
    egress: Egress
    vpc_cidr: IPv4Network
    secondary_cidrs: tuple[IPv4Network, ...]
    zones: tuple[str, ...]
    subnets: tuple[SubnetPlan, ...]
    prefixes_per_node: int
    most_pods: int | None
    pod_addresses: int | None
    assigned: Mapping[str, tuple[str, ...]]
    standing: Mapping[str, Mapping[str, int]]
    plain_in_pod_ranges: bool
    dealt_by_need: bool
    reserves_by_function: bool
    endpoints: tuple[EndpointPlan, ...] = ()
    endpoint_security_group: str | None = None
    flow_logs: FlowLogs
    log_retention_days: int

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


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkPolicyPlan:
    """Reach of network policies.

    Attributes:
        enforced: Whether the VPC CNI enforces them.
        of_jobs: Whether policies select the pods of jobs, or name them as peers.
        ranges: Ranges that nodes and pods have addresses of, which stand for jobs' pods as peers;
            empty where selectors do.
    """

    enforced: bool
    of_jobs: bool
    ranges: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InterfaceCleanerPlan:
    """The function that deletes network interfaces which ended nodes left.

    Attributes:
        cluster_tag: Tag of the interfaces that holds the cluster's name.
        made_tag: Tag of them that holds the time of their creation.
        interval_minutes: Time between two runs, in minutes.
        least_minutes: Age of the youngest that it deletes, in minutes.
        most: Most that it deletes in a run.
        timeout_seconds: How long a run may take, in seconds.
        log_retention_days: How long its log is kept, in days.
    """

    cluster_tag: str
    made_tag: str
    interval_minutes: int
    least_minutes: int
    most: int
    timeout_seconds: int
    log_retention_days: int
