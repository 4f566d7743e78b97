"""Free addresses of subnets: a plan on those that others hold leaves paid nodes unused."""

from ipaddress import IPv4Address, IPv4Network
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.account import fake_account
from tests.support.cases import rows
from tests.support.described_vpcs import INTERNET, LOCAL, NAT, TRANSIT, answers, endpoint, interface
from tests.support.existing_vpc import OWNER, VPC, subnet
from tests.support.fake_aws import ID, Told, denied
from ultrascale.account.vpcs import SubnetRecord, VpcRecord, free_blocks, read_vpc, require_vpc
from ultrascale.catalog.endpoints import short_name
from ultrascale.errors import UltrascaleError, UnansweredError

SMALL = subnet(21, "us-east-1a", "10.20.16.0/24", "nodes")
SUBNET: str = SMALL["id"]
CLUSTER = "eks-cluster-sg-estate-1234567"


def recorded(cluster: str | None = "estate", *, owner: str = ID, **told: Any) -> VpcRecord:
    account, _ = fake_account(answers(owner=owner, **told), region="us-east-1")
    return require_vpc(account, VPC, cluster=cluster)


def small(available: int, **told: Any) -> SubnetRecord:
    record = recorded(subnets=[SMALL], available={SUBNET: available}, **told)
    return record.subnets[0]


def free(record: SubnetRecord) -> tuple[int, int, int]:
    return record.free_addresses, record.free_prefixes, record.most_free_prefixes


OWN: list[dict[str, Any]] = [
    {"group": CLUSTER},
    {"tags": {"cluster.k8s.amazonaws.com/name": "estate"}},
]


@rows(
    "available, there, expected",
    {
        "empty, but for what AWS keeps": (251, [], (251, 14, 14)),
        "an address spoils its block of sixteen": (
            248,
            [interface(SUBNET, "10.20.16.20", "10.20.16.21"), interface(SUBNET, "10.20.16.100")],
            (248, 12, 12),
        ),
        "a prefix is one block": (
            234,
            [interface(SUBNET, "10.20.16.5", prefixes=["10.20.16.32/28"])],
            (234, 13, 13),
        ),
        **{
            f"what the cluster holds by {next(iter(own))} is free for it": (
                234,
                [interface(SUBNET, "10.20.16.20", prefixes=["10.20.16.32/28"], **own)],
                (251, 14, 14),
            )
            for own in OWN
        },
        **{
            f"what {group} holds is not": (
                250,
                [interface(SUBNET, "10.20.16.20", group=group)],
                (250, 13, 13),
            )
            for group in ("eks-cluster-sg-estate-two-1234567", "eks-cluster-sg-est-1")
        },
        # Those of other participants of a shared VPC are in no answer.
        "interfaces that nobody sees may spoil a block each": (
            246,
            [interface(SUBNET, "10.20.16.20")],
            (246, 9, 13),
        ),
        "more hidden addresses than blocks leave none that is certain": (100, [], (100, 0, 6)),
    },
)
def test_addresses_and_blocks_are_free_that_nobody_holds(
    available: int, there: list[Any], expected: tuple[int, int, int]
) -> None:
    assert free(small(available, interfaces=there)) == expected
    assert small(251).route_table == "rtb-main"


@pytest.mark.parametrize(("kind", "blocks"), [("explicit", 10), ("prefix", 14)])
def test_a_reservation_for_single_addresses_gives_no_prefix(kind: str, blocks: int) -> None:
    reserved = [{"Cidr": "10.20.16.64/26", "ReservationType": kind}]
    assert small(251, reservations={SUBNET: reserved}).free_prefixes == blocks


def test_reservations_that_only_the_owner_sees_are_told_as_unknown() -> None:
    """A participant records the rest: no page says that it may see reservations."""
    action = "ec2:GetSubnetCidrReservations"
    told = {**answers(owner=OWNER, subnets=[SMALL]), action: denied(action)}
    account, _ = fake_account(told, region="us-east-1")

    record = require_vpc(account, VPC)

    assert [(each.free_addresses, each.reservations_known) for each in record.subnets] == [
        (251, False)
    ]
    told["ec2:DescribeVpcs"] = answers(owner=ID)["ec2:DescribeVpcs"]
    own, _ = fake_account(told, region="us-east-1")
    with pytest.raises(UnansweredError, match=action):
        require_vpc(own, VPC)


@given(st.integers(24, 28), st.sets(st.integers(0, 255), max_size=40))
@settings(max_examples=60, deadline=None)
def test_free_blocks_are_those_of_which_no_address_is_taken(mask: int, taken: set[int]) -> None:
    cidr = IPv4Network(f"10.20.16.0/{mask}")
    addresses = [*cidr]
    held = {addresses[each] for each in taken if each < len(addresses)}
    of_aws = {*addresses[:4], addresses[-1]}
    blocks = [addresses[at : at + 16] for at in range(0, len(addresses), 16)]
    expected = sum(not {*block} & (held | of_aws) for block in blocks)
    assert free_blocks(cidr, [IPv4Network(each) for each in held]) == expected
    assert IPv4Address("10.20.16.0") in of_aws


TABLES = {
    "a NAT gateway": ([LOCAL, NAT], "nat-gateway"),
    "a transit gateway": ([LOCAL, TRANSIT], "transit-gateway"),
    "an internet gateway": ([LOCAL, INTERNET], "internet-gateway"),
    "nowhere": ([LOCAL], "none"),
    "a target that is gone": ([LOCAL, NAT | {"State": "blackhole"}], "other"),
    "a firewall": ([LOCAL, {"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": "vpce-1"}], "other"),
    "one network alone": ([LOCAL, NAT | {"DestinationCidrBlock": "10.0.0.0/8"}], "none"),
}


@pytest.mark.parametrize(("routes", "route"), TABLES.values(), ids=TABLES)
def test_the_route_is_that_of_the_subnets_own_table(routes: list[Any], route: str) -> None:
    tables = [
        {"RouteTableId": "rtb-m", "Associations": [{"Main": True}], "Routes": [LOCAL]},
        {"RouteTableId": "rtb-1", "Associations": [{"SubnetId": SUBNET}], "Routes": routes},
    ]
    record = small(251, tables=tables)
    assert (record.route, record.route_table) == (route, "rtb-1")


def test_endpoints_have_their_short_names() -> None:
    there = [endpoint("ecr.api"), endpoint("s3", kind="Gateway")]
    global_one = endpoint("x", ServiceName="com.amazonaws.route53")
    found = recorded(endpoints=[*there, global_one]).endpoints
    assert [(each.service, each.kind, each.private_dns) for each in found] == [
        ("ecr.api", "interface", True),
        ("route53", "interface", True),
        ("s3", "gateway", False),
    ]


def test_an_endpoint_that_works_comes_before_one_that_waits() -> None:
    waiting = endpoint("sts", State="pendingAcceptance", VpcEndpointId="vpce-0")
    found = recorded(endpoints=[waiting, endpoint("sts")]).endpoint("sts")
    assert found is not None
    assert (found.id, found.available) == ("vpce-sts", True)


OURS = [{"Key": "aws:cloudformation:stack-name", "Value": "estate-network"}]


@pytest.mark.parametrize(
    ("name", "service"),
    [
        ("aws.sagemaker.us-east-1.notebook", "notebook"),
        ("com.amazonaws.vpce.us-east-1.vpce-svc-0a1b", "vpce-svc-0a1b"),
        ("com.amazonaws.s3-global.accesspoint", "s3-global.accesspoint"),
    ],
)
def test_a_short_name_is_one_that_a_cluster_file_takes(name: str, service: str) -> None:
    (found,) = recorded(endpoints=[endpoint("x", ServiceName=name)]).endpoints
    assert found.service == short_name(found.service) == service


def test_the_endpoint_by_which_nodes_reach_a_service_comes_before_others() -> None:
    """Networks have an interface endpoint of S3 for their offices beside the gateway of nodes."""
    for_offices = endpoint("s3", VpcEndpointId="vpce-0")
    without_name = endpoint("sts", VpcEndpointId="vpce-0", PrivateDnsEnabled=False)
    there = [for_offices, endpoint("s3", kind="Gateway"), without_name, endpoint("sts")]
    record = recorded(endpoints=there)
    found = [record.endpoint(service) for service in ("s3", "sts")]
    assert [each.id if each else None for each in found] == ["vpce-s3", "vpce-sts"]


def test_addresses_of_our_endpoints_are_free_for_the_cluster() -> None:
    """Otherwise the plan counts them twice, and refuses what is deployed."""
    there = [interface(SUBNET, "10.20.16.20")]
    ours = endpoint("sts", Tags=OURS, NetworkInterfaceIds=["eni-10-20-16-20"])
    assert free(small(250, interfaces=there, endpoints=[ours])) == (251, 14, 14)
    assert free(small(250, interfaces=there, endpoints=[ours | {"Tags": []}])) == (250, 13, 13)


@pytest.mark.parametrize(("owner", "shared"), [(ID, False), (OWNER, True)])
def test_a_vpc_of_another_account_is_shared(owner: str, shared: bool) -> None:
    record = recorded(owner=owner)
    assert (record.owner, record.shared) == (owner, shared)
    assert record.cidrs == (IPv4Network("10.20.0.0/16"), IPv4Network("100.64.0.0/16"))


def test_a_vpc_that_the_account_does_not_see_is_none() -> None:
    told: dict[str, Told] = {**answers(owner=ID), "ec2:DescribeVpcs": {"Vpcs": []}}
    account, _ = fake_account(told, region="us-east-1")
    assert read_vpc(account, VPC) is None
    with pytest.raises(UltrascaleError, match=f"{VPC}: account {ID} sees no such VPC"):
        require_vpc(account, VPC)
