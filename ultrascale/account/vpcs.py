"""A VPC as the account sees it: subnets with their free addresses, routes, endpoints.

Sources:
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Subnet.html
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_NetworkInterface.html
    https://docs.aws.amazon.com/vpc/latest/userguide/vpc-sharing-share-subnet-working-with.html
        (what a participant of a shared VPC sees)
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING, Literal

from ultrascale.account.account import Account
from ultrascale.catalog import eks, vpc
from ultrascale.errors import UltrascaleError, UnansweredError
from ultrascale.frozen import Frozen
from ultrascale.plan.stacks import stack_of

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import (
        FilterTypeDef,
        NetworkInterfaceTypeDef,
        RouteTableTypeDef,
        RouteTypeDef,
        SubnetCidrReservationTypeDef,
        SubnetTypeDef,
        TagTypeDef,
        VpcEndpointTypeDef,
        VpcTypeDef,
    )

Route = Literal["nat-gateway", "transit-gateway", "internet-gateway", "none", "other"]
EndpointKind = Literal["interface", "gateway", "other"]

ACTIONS = (
    "ec2:DescribeVpcs",
    "ec2:DescribeVpcAttribute",
    "ec2:DescribeSubnets",
    "ec2:DescribeNetworkInterfaces",
    "ec2:GetSubnetCidrReservations",
    "ec2:DescribeRouteTables",
    "ec2:DescribeVpcEndpoints",
)
"""The IAM actions that `read_vpc` needs."""

_EVERYWHERE = "0.0.0.0/0"
# Marks of the interfaces of the EKS control plane and of the VPC CNI.
# Sources: https://docs.aws.amazon.com/eks/latest/userguide/sec-group-reqs.html (the group's name)
# https://github.com/aws/amazon-vpc-cni-k8s/blob/master/pkg/awsutils/awsutils.go (the tag)
_CLUSTER_GROUP = "eks-cluster-sg-{cluster}-"
_CLUSTER_TAG = "cluster.k8s.amazonaws.com/name"
# CloudFormation sets this tag on resources of a stack; nobody else can.
_STACK_TAG = "aws:cloudformation:stack-name"


class SubnetRecord(Frozen):
    """A subnet, with its free addresses for a cluster."""

    id: str  # Its id
    zone: str  # Name of its zone in this account
    zone_id: str  # Id of its zone
    cidr: IPv4Network  # Its IPv4 range
    free_addresses: int  # Addresses that are free, or held by the cluster itself
    free_prefixes: int  # Aligned /28 blocks that are certainly free, or held by the cluster itself
    # The same number if no interface of another account, which this account cannot see, lies in
    # the blocks.
    most_free_prefixes: int
    route: Route  # Target of 0.0.0.0/0 in its route table
    route_table: str | None  # Id of that route table; None where the account does not see it
    # Whether the account may see the reserved ranges. Otherwise no range counts as reserved.
    reservations_known: bool
    tags: Mapping[str, str]  # Its tags that this account sees


class EndpointRecord(Frozen):
    """An endpoint of an AWS service."""

    id: str  # Its id
    service: str  # Short name of the service, such as ``ecr.api``
    kind: EndpointKind  # Its type
    available: bool  # Whether it works
    private_dns: bool  # Whether the service's own name leads to it
    route_tables: tuple[str, ...]  # Route tables of a gateway endpoint
    subnets: tuple[str, ...]  # Subnets of an interface endpoint
    groups: tuple[str, ...]  # Security groups of an interface endpoint
    interfaces: tuple[str, ...]  # Network interfaces of an interface endpoint
    ours: bool  # Whether a stack of the cluster made it


class VpcRecord(Frozen):
    """A VPC."""

    id: str  # Its id
    owner: str  # Account that owns it
    shared: bool  # Whether another account owns it
    cidrs: tuple[IPv4Network, ...]  # Its IPv4 ranges, the primary one first
    dns_support: bool  # Whether the VPC's resolver answers
    dns_hostnames: bool  # Whether instances get names
    dhcp_options: str  # Id of its DHCP options; ``default`` where it has none
    subnets: tuple[SubnetRecord, ...]  # Its subnets that the account sees, by zone and range
    endpoints: tuple[EndpointRecord, ...]  # Its endpoints that the account sees, by service

    def subnet(self, id: str) -> SubnetRecord | None:
        """Return the subnet called ``id``; None if the account does not see it."""
        return next((subnet for subnet in self.subnets if subnet.id == id), None)

    def endpoint(self, service: str) -> EndpointRecord | None:
        """Return an endpoint of a service, by the service's short name.

        A working endpoint is preferred, and among these an endpoint that the service's DNS name
        leads to.
        """
        of_service = [endpoint for endpoint in self.endpoints if endpoint.service == service]
        return max(
            of_service,
            key=lambda each: (each.available, each.kind == "gateway", each.private_dns),
            default=None,
        )


def read_vpc(account: Account, vpc_id: str, *, cluster: str | None = None) -> VpcRecord | None:
    """Return a VPC; None if the account sees no VPC with this id.

    Args:
        account: The account.
        vpc_id: Id of the VPC.
        cluster: Name of a cluster whose own addresses count as free, and whose endpoints count as
            ours; None for no cluster.

    Raises:
        UnansweredError: EC2 did not answer.
    """
    ec2 = account.client("ec2")
    of_vpc: FilterTypeDef = {"Name": "vpc-id", "Values": [vpc_id]}
    # EC2 refuses an unknown id in a request; a filter ignores it.
    found = account.ask_all(ec2.describe_vpcs, lambda page: page["Vpcs"], Filters=[of_vpc])
    if not found:
        return None
    answer = found[0]
    owner = answer["OwnerId"]
    support = account.ask(ec2.describe_vpc_attribute, VpcId=vpc_id, Attribute="enableDnsSupport")
    names = account.ask(ec2.describe_vpc_attribute, VpcId=vpc_id, Attribute="enableDnsHostnames")
    subnets = account.ask_all(ec2.describe_subnets, lambda page: page["Subnets"], Filters=[of_vpc])
    interfaces = account.ask_all(
        ec2.describe_network_interfaces, lambda page: page["NetworkInterfaces"], Filters=[of_vpc]
    )
    tables = account.ask_all(
        ec2.describe_route_tables, lambda page: page["RouteTables"], Filters=[of_vpc]
    )
    endpoints = _endpoints(account, of_vpc, cluster)
    own = {id for endpoint in endpoints if endpoint.ours for id in endpoint.interfaces}
    by_subnet: dict[str, list[NetworkInterfaceTypeDef]] = defaultdict(list)
    for interface in interfaces:
        by_subnet[interface["SubnetId"]].append(interface)
    records = [
        _subnet(
            subnet,
            by_subnet[subnet["SubnetId"]],
            _reservations(account, subnet["SubnetId"], shared=owner != account.id),
            tables,
            lambda interface: (
                _belongs_to_cluster(interface, cluster) or interface["NetworkInterfaceId"] in own
            ),
        )
        for subnet in subnets
    ]
    return VpcRecord(
        id=vpc_id,
        owner=owner,
        shared=owner != account.id,
        cidrs=_ranges(answer),
        dns_support=support["EnableDnsSupport"].get("Value", False),
        dns_hostnames=names["EnableDnsHostnames"].get("Value", False),
        dhcp_options=answer["DhcpOptionsId"],
        subnets=tuple(sorted(records, key=lambda record: (record.zone, record.cidr))),
        endpoints=tuple(sorted(endpoints, key=lambda record: (record.service, record.id))),
    )


def _endpoints(
    account: Account, of_vpc: "FilterTypeDef", cluster: str | None
) -> Sequence[EndpointRecord]:
    answers = account.ask_all(
        account.client("ec2").describe_vpc_endpoints,
        lambda page: page["VpcEndpoints"],
        Filters=[of_vpc],
    )
    # Endpoints of VPC Lattice's resources have no service.
    return [
        _endpoint(answer, answer["ServiceName"], account.region, cluster)
        for answer in answers
        if "ServiceName" in answer
    ]


def _ranges(answer: "VpcTypeDef") -> tuple[IPv4Network, ...]:
    return tuple(
        IPv4Network(association["CidrBlock"])
        for association in answer["CidrBlockAssociationSet"]
        if association["CidrBlockState"]["State"] in ("associating", "associated")
    )


def require_vpc(account: Account, vpc_id: str, *, cluster: str | None = None) -> VpcRecord:
    """Return a VPC as `read_vpc` does, or raise an error without one.

    Raises:
        UltrascaleError: The account sees no VPC with this id.
        UnansweredError: EC2 did not answer.
    """
    record = read_vpc(account, vpc_id, cluster=cluster)
    if record is None:
        raise UltrascaleError(
            f"{vpc_id}: account {account.id} sees no such VPC in {account.region}; name another "
            "Region with --region, or ask its owner to share subnets of it by RAM"
        )
    return record


def free_blocks(cidr: IPv4Network, taken: Iterable[IPv4Network]) -> int:
    """Return the number of aligned /28 blocks of a subnet that are wholly free.

    Args:
        cidr: Range of the subnet.
        taken: Addresses and ranges in the subnet that are taken, without AWS's own five addresses.
    """
    size, first = eks.ADDRESSES_PER_PREFIX, int(cidr.network_address)
    blocks = cidr.num_addresses // size
    spoiled = {0, blocks - 1}
    for block in taken:
        lowest = (int(block.network_address) - first) // size
        highest = (int(block.broadcast_address) - first) // size
        spoiled.update(range(lowest, highest + 1))
    return max(blocks - len(spoiled), 0)


def _reservations(
    account: Account, subnet: str, *, shared: bool
) -> "Sequence[SubnetCidrReservationTypeDef] | None":
    """Return the reserved ranges of a subnet; None if only the subnet's owner may see them.

    No page of AWS says whether an account that the subnet is shared with may see them.
    """
    try:
        answer = account.ask(account.client("ec2").get_subnet_cidr_reservations, SubnetId=subnet)
    except UnansweredError as error:
        if shared and error.denied:
            return None
        raise
    return answer["SubnetIpv4CidrReservations"]


def _subnet(
    subnet: "SubnetTypeDef",
    interfaces: "Sequence[NetworkInterfaceTypeDef]",
    reservations: "Sequence[SubnetCidrReservationTypeDef] | None",
    tables: "Sequence[RouteTableTypeDef]",
    is_own: "Callable[[NetworkInterfaceTypeDef], bool]",
) -> SubnetRecord:
    cidr = IPv4Network(subnet["CidrBlock"])
    # EC2 takes prefixes from reservations of the other type.
    others = [
        IPv4Network(reservation["Cidr"])
        for reservation in reservations or ()
        if reservation["ReservationType"] == "explicit"
    ]
    own: list[IPv4Network] = []
    for interface in interfaces:
        held = own if is_own(interface) else others
        held += _held_addresses(interface)
    own_addresses = _number_of_addresses(own)
    seen = own_addresses + _number_of_addresses(others)
    available = subnet["AvailableIpAddressCount"]
    # No page says whether EC2 counts reserved addresses as free: if it does, fewer are hidden.
    hidden = max(vpc.free_addresses(cidr) - available - seen, 0)
    most = free_blocks(cidr, others)
    route, table = _default_route(subnet["SubnetId"], tables)
    return SubnetRecord(
        id=subnet["SubnetId"],
        zone=subnet["AvailabilityZone"],
        zone_id=subnet["AvailabilityZoneId"],
        cidr=cidr,
        free_addresses=min(available + own_addresses, vpc.free_addresses(cidr)),
        free_prefixes=max(most - hidden, 0),
        most_free_prefixes=most
        if hidden == 0
        else min(most, _prefixes_in(available + own_addresses)),
        route=route,
        route_table=table,
        reservations_known=reservations is not None,
        tags=_tags_by_key(subnet.get("Tags", ())),
    )


def _prefixes_in(addresses: int) -> int:
    return addresses // eks.ADDRESSES_PER_PREFIX


def _held_addresses(interface: "NetworkInterfaceTypeDef") -> Iterator[IPv4Network]:
    for address in interface["PrivateIpAddresses"]:
        yield IPv4Network(IPv4Address(address["PrivateIpAddress"]))
    for prefix in interface.get("Ipv4Prefixes", ()):
        yield IPv4Network(prefix["Ipv4Prefix"])


def _number_of_addresses(blocks: Iterable[IPv4Network]) -> int:
    return sum(block.num_addresses for block in blocks)


def _belongs_to_cluster(interface: "NetworkInterfaceTypeDef", cluster: str | None) -> bool:
    """Return whether an interface belongs to a cluster's control plane, nodes or pods."""
    if cluster is None:
        return False
    prefix = _CLUSTER_GROUP.format(cluster=cluster)
    groups = [group.get("GroupName", "") for group in interface["Groups"]]
    tags = _tags_by_key(interface.get("TagSet", ()))
    # A cluster's name may begin another's: EKS puts only digits behind the name.
    return tags.get(_CLUSTER_TAG) == cluster or any(
        name.startswith(prefix) and name.removeprefix(prefix).isdecimal() for name in groups
    )


def _default_route(subnet: str, tables: "Sequence[RouteTableTypeDef]") -> tuple[Route, str | None]:
    """Return the target of a subnet's route for 0.0.0.0/0, and the id of its route table."""
    main = None
    for table in tables:
        for association in table["Associations"]:
            if association.get("SubnetId") == subnet:
                return _target(table["Routes"]), table["RouteTableId"]
            if association.get("Main"):
                main = table
    if main is None:
        return "other", None
    return _target(main["Routes"]), main["RouteTableId"]


def _target(routes: "Sequence[RouteTypeDef]") -> Route:
    for route in routes:
        if route.get("DestinationCidrBlock") != _EVERYWHERE:
            continue
        if route.get("State") == "blackhole":
            return "other"
        if "NatGatewayId" in route:
            return "nat-gateway"
        if "TransitGatewayId" in route:
            return "transit-gateway"
        return "internet-gateway" if route.get("GatewayId", "").startswith("igw-") else "other"
    return "none"


def _endpoint(
    answer: "VpcEndpointTypeDef", name: str, region: str, cluster: str | None
) -> EndpointRecord:
    kinds: Mapping[str, EndpointKind] = {"Interface": "interface", "Gateway": "gateway"}
    # Services of all Regions, such as Route 53, have no Region in their name.
    service = name.partition(f".{region}.")[2] or name.removeprefix("com.amazonaws.")
    stack = _tags_by_key(answer.get("Tags", ())).get(_STACK_TAG)
    return EndpointRecord(
        id=answer["VpcEndpointId"],
        service=service,
        kind=kinds.get(answer["VpcEndpointType"], "other"),
        available=answer["State"].lower() == "available",
        private_dns=answer.get("PrivateDnsEnabled", False),
        route_tables=tuple(answer.get("RouteTableIds", ())),
        subnets=tuple(answer.get("SubnetIds", ())),
        groups=tuple(group["GroupId"] for group in answer.get("Groups", ()) if "GroupId" in group),
        interfaces=tuple(answer.get("NetworkInterfaceIds", ())),
        ours=cluster is not None and stack == stack_of(cluster, "network"),
    )


def _tags_by_key(tags: "Iterable[TagTypeDef]") -> Mapping[str, str]:
    return {tag["Key"]: tag["Value"] for tag in tags if "Key" in tag and "Value" in tag}
