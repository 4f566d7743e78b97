"""Answers of EC2 about a VPC that exists: `tests.support.existing_vpc` as the account shows it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.support import existing_vpc
from tests.support.fake_aws import Answer, Told

TRANSIT = {"DestinationCidrBlock": "0.0.0.0/0", "TransitGatewayId": "tgw-1", "State": "active"}
NAT = {"DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": "nat-1", "State": "active"}
INTERNET = {"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": "igw-1", "State": "active"}
LOCAL = {"DestinationCidrBlock": "10.20.0.0/16", "GatewayId": "local", "State": "active"}


def interface(
    subnet: str,
    *addresses: str,
    prefixes: Sequence[str] = (),
    group: str = "another",
    tags: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return a network interface with addresses and /28 prefixes."""
    return {
        "NetworkInterfaceId": f"eni-{addresses[0].replace('.', '-')}",
        "SubnetId": subnet,
        "PrivateIpAddresses": [{"PrivateIpAddress": address} for address in addresses],
        "Ipv4Prefixes": [{"Ipv4Prefix": prefix} for prefix in prefixes],
        "Groups": [{"GroupId": "sg-1", "GroupName": group}],
        "TagSet": [{"Key": key, "Value": value} for key, value in (tags or {}).items()],
    }


def endpoint(service: str, *, kind: str = "Interface", **changes: Any) -> dict[str, Any]:
    """Return an endpoint of a service, by its short name."""
    return {
        "VpcEndpointId": f"vpce-{service}",
        "VpcEndpointType": kind,
        "ServiceName": f"com.amazonaws.us-east-1.{service}",
        "State": "available",
        "PrivateDnsEnabled": kind == "Interface",
        "RouteTableIds": ["rtb-main"] if kind == "Gateway" else [],
        "SubnetIds": [],
        "Groups": [{"GroupId": "sg-2", "GroupName": "endpoints"}] if kind == "Interface" else [],
    } | changes


def answers(
    *,
    owner: str,
    subnets: Iterable[Mapping[str, Any]] | None = None,
    available: Mapping[str, int] | None = None,
    interfaces: Sequence[Answer] = (),
    reservations: Mapping[str, Sequence[Answer]] | None = None,
    tables: Sequence[Answer] | None = None,
    endpoints: Sequence[Answer] = (),
    **vpc: Any,
) -> dict[str, Told]:
    """Return what EC2 answers about the VPC of `existing_vpc`.

    Args:
        owner: Account that owns the VPC.
        subnets: Its subnets as the file states them.
        available: Free addresses as EC2 counts them, by subnet; otherwise those of an empty one.
        interfaces: Network interfaces that the account sees.
        reservations: CIDR reservations, by subnet.
        tables: Route tables; by default one with a transit gateway for all.
        endpoints: Endpoints that the account sees.
        vpc: Changes of the VPC's own description.
    """
    stated = [*(existing_vpc.subnets() if subnets is None else subnets)]

    def described(subnet: Mapping[str, Any]) -> dict[str, Any]:
        free = 2 ** (32 - int(subnet["cidr"].rpartition("/")[2])) - 5
        return {
            "SubnetId": subnet["id"],
            "VpcId": existing_vpc.VPC,
            "OwnerId": owner,
            "AvailabilityZone": subnet["zone"],
            "AvailabilityZoneId": f"use1-az{'abcdef'.index(subnet['zone'][-1]) + 1}",
            "CidrBlock": subnet["cidr"],
            "AvailableIpAddressCount": (available or {}).get(subnet["id"], free),
            "Tags": [],
        }

    def reserved(asked: dict[str, Any]) -> Answer:
        found = (reservations or {}).get(asked["SubnetId"], ())
        return {"SubnetIpv4CidrReservations": [*found]}

    def attribute(asked: dict[str, Any]) -> Answer:
        name = asked["Attribute"]
        return {f"E{name[1:]}": {"Value": True}}

    ranges = [
        {"CidrBlock": block, "CidrBlockState": {"State": "associated"}}
        for block in ("10.20.0.0/16", "100.64.0.0/16")
    ]
    main = {
        "RouteTableId": "rtb-main",
        "Associations": [{"Main": True}],
        "Routes": [LOCAL, TRANSIT],
    }
    description = {
        "VpcId": existing_vpc.VPC,
        "OwnerId": owner,
        "CidrBlockAssociationSet": ranges,
        "DhcpOptionsId": "dopt-1",
    }
    return {
        "ec2:DescribeVpcs": {"Vpcs": [description | vpc]},
        "ec2:DescribeVpcAttribute": attribute,
        "ec2:DescribeSubnets": {"Subnets": [described(subnet) for subnet in stated]},
        "ec2:DescribeNetworkInterfaces": {"NetworkInterfaces": [*interfaces]},
        "ec2:GetSubnetCidrReservations": reserved,
        "ec2:DescribeRouteTables": {"RouteTables": [main] if tables is None else [*tables]},
        "ec2:DescribeVpcEndpoints": {"VpcEndpoints": [*endpoints]},
    }
