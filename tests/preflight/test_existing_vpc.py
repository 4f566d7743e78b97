"""Facts that a network team gave: a wrong one is found before a paid node waits for addresses."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.account import fake_account
from tests.support.described_vpcs import INTERNET, LOCAL, NAT, answers, endpoint, interface
from tests.support.existing_vpc import OWNER, VPC, existing_document, subnet, subnets
from tests.support.fake_aws import ID, Told, denied
from tests.support.pools import as_text
from tests.support.preflight_context import NOW
from ultrascale import config
from ultrascale.findings import Finding
from ultrascale.plan import plan_cluster
from ultrascale.plan.needs.report import plan_needs
from ultrascale.preflight.existing_vpc import EXISTING_VPC
from ultrascale.preflight.model import Context
from ultrascale.preflight.network import ADDRESSES, ENDPOINTS

CONTROL, NODES, FAST = (f"subnet-0a1b2c3d4e5f600{number}" for number in (11, 21, 31))
AMAZON = {
    "DhcpOptions": [
        {
            "DhcpConfigurations": [
                {"Key": "domain-name-servers", "Values": [{"Value": "AmazonProvidedDNS"}]}
            ]
        }
    ]
}
OPEN = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}


def findings(
    *,
    network: dict[str, Any] | None = None,
    rules: Sequence[Any] = (OPEN,),
    more: dict[str, Told] | None = None,
    serving: dict[str, Any] | None = None,
    **told: Any,
) -> dict[str, Finding]:
    """Return the findings, by subject, where the account is as the file says but for ``told``."""
    groups = {"SecurityGroups": [{"GroupId": "sg-2", "IpPermissions": [*rules]}]}
    document = existing_document(**(network or {})) | ({"serving": serving} if serving else {})
    plan = plan_cluster(config.loads(as_text(document)))
    tables = [
        {"RouteTableId": "rtb-main", "Associations": [{"Main": True}], "Routes": [LOCAL, NAT]}
    ]
    changes: dict[str, Any] = {"owner": ID, "tables": tables} | told
    given = answers(**changes)
    given |= {"ec2:DescribeDhcpOptions": AMAZON, "ec2:DescribeSecurityGroups": groups}
    account, _ = fake_account(given | (more or {}), region="us-east-1")
    context = Context(plan=plan, needs=plan_needs(plan), account=account, at=NOW)
    return {finding.subject: finding for finding in EXISTING_VPC.run(context)}


def wrong(found: dict[str, Finding]) -> dict[str, str]:
    return {name: each.state for name, each in found.items() if each.state != "pass"}


def test_a_vpc_as_the_file_says_passes_with_its_figures() -> None:
    found = findings()
    assert wrong(found) == {}
    assert found[f"{FAST} (accelerated)"].evidence == (
        "16,379 addresses free, 1,022 blocks of 16, route nat-gateway"
    )
    assert found["fleet"].evidence.startswith("every node, pod and interface finds")


def test_a_vpc_that_nobody_shares_ends_the_check() -> None:
    found = findings(more={"ec2:DescribeVpcs": {"Vpcs": []}})
    assert wrong(found) == {VPC: "fail"}
    assert len(found) == 1


OFF = {"EnableDnsSupport": {"Value": True}, "EnableDnsHostnames": {"Value": False}}
SERVERS = [{"Key": "domain-name-servers", "Values": [{"Value": "10.0.0.2"}]}]
HAS_ONE = {
    "CidrBlockAssociationSet": [
        {"CidrBlock": "10.20.0.0/16", "CidrBlockState": {"State": "associated"}},
        {"CidrBlock": "10.99.0.0/16", "CidrBlockState": {"State": "associated"}},
    ]
}
VPCS: dict[str, tuple[dict[str, Any], str, list[str]]] = {
    "another owner": (
        {"owner": OWNER}, "fail", [f"belongs to account {OWNER}, the file says {ID}"]
    ),
    "ranges": (
        HAS_ONE,
        "fail",
        ["its range 10.99.0.0/16 is not in the file", "100.64.0.0/16 of the file is no range"],
    ),
    "DNS": (
        {"more": {"ec2:DescribeVpcAttribute": OFF}}, "fail", ["enableDnsHostnames is off"]
    ),
    "name servers": (
        {"more": {"ec2:DescribeDhcpOptions": {"DhcpOptions": [{"DhcpConfigurations": SERVERS}]}}},
        "warn",
        ["nodes ask 10.0.0.2 for names"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("told", "state", "evidence"), VPCS.values(), ids=VPCS)
def test_what_is_wrong_with_the_vpc_is_told(
    told: dict[str, Any], state: str, evidence: list[str]
) -> None:
    found = findings(**told)[VPC]
    assert found.state == state
    assert [text for text in evidence if text not in found.evidence] == []


def changed(id: str, **changes: Any) -> list[dict[str, Any]]:
    return [each | changes if each["id"] == id else each for each in subnets()]


def table(routes: Sequence[Any]) -> list[dict[str, Any]]:
    main = {"RouteTableId": "rtb-main", "Associations": [{"Main": True}], "Routes": [LOCAL, NAT]}
    own = {"RouteTableId": "rtb-2", "Associations": [{"SubnetId": NODES}], "Routes": [*routes]}
    return [main, own]


SUBNETS: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "not shared": (
        *(NODES, {"subnets": [each for each in subnets() if each["id"] != NODES]}),
        *("fail", f"{VPC} has no such subnet that account {ID} sees"),
    ),
    "another zone": (
        *(NODES, {"subnets": changed(NODES, zone="us-east-1c")}),
        *("fail", "lies in us-east-1c (use1-az3), the file says us-east-1a"),
    ),
    "another range": (
        *(NODES, {"subnets": changed(NODES, cidr="10.20.64.0/20")}),
        *("fail", "is 10.20.64.0/20, the file says 10.20.16.0/20"),
    ),
    "occupied": (
        *(NODES, {"available": {NODES: 4000}}),
        *("warn", "4,000 addresses are free, 4,091 counted as empty"),
    ),
    "more occupied than recorded": (
        NODES,
        {
            "available": {NODES: 4000},
            "network": {"subnets": changed(NODES, free_addresses=4050, free_prefixes=200)},
        },
        *("warn", "4,000 addresses are free, 4,050 recorded"),
    ),
    "blocks gone": (
        NODES,
        {
            "available": {NODES: 4089},
            "interfaces": [interface(NODES, "10.20.16.40", "10.20.17.40")],
            "network": {"subnets": changed(NODES, free_addresses=4089, free_prefixes=254)},
        },
        *("warn", "252 blocks of 16 are free, 254 recorded"),
    ),
    "no way out": (NODES, {"tables": table([LOCAL])}, "fail", "no way out for nodes (route none)"),
    "out without NAT": (NODES, {"tables": table([INTERNET])}, "fail", "route internet-gateway"),
    "a firewall": (
        *(NODES, {"tables": table([{"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": "vpce-1"}])}),
        *("warn", "a target that preflight does not know"),
    ),
}


@pytest.mark.parametrize(("id", "told", "state", "evidence"), SUBNETS.values(), ids=SUBNETS)
def test_what_is_wrong_with_a_subnet_is_told(
    id: str, told: dict[str, Any], state: str, evidence: str
) -> None:
    found = findings(**told)[f"{id} (private)"]
    assert found.state == state
    assert evidence in found.evidence
    assert found.fix


@pytest.mark.parametrize(
    ("exposure", "routes", "state"),
    [
        ("internet", [LOCAL, INTERNET], "pass"),
        ("internet", [LOCAL, NAT], "fail"),
        ("internal", [LOCAL, NAT], "pass"),
    ],
)
def test_clients_of_the_internet_find_a_way_to_the_front(
    exposure: str, routes: Sequence[Any], state: str
) -> None:
    """Its load balancer would be made, and answer nobody."""
    public = [
        subnet(number, f"us-east-1{zone}", f"10.20.1.{32 * number}/27", "public")
        for number, zone in ((1, "a"), (2, "b"))
    ]
    arn = f"arn:aws:acm:us-east-1:{ID}:certificate/11111111-2222-4333-8444-555555555501"
    keys: dict[str, Any] = {"exposure": exposure}
    if exposure == "internet":
        keys |= {"certificate": arn, "api_keys": "keys", "allowed_cidrs": ["8.8.8.0/24"]}
    listed = [*subnets(), *public]
    tables = [
        {"RouteTableId": "rtb-main", "Associations": [{"Main": True}], "Routes": [LOCAL, NAT]},
        {
            "RouteTableId": "rtb-2",
            "Associations": [{"SubnetId": each["id"]} for each in public],
            "Routes": [*routes],
        },
    ]

    found = findings(
        network={"subnets": listed}, serving={"front": keys}, subnets=listed, tables=tables
    )

    assert {found[f"{each['id']} (public)"].state for each in public} == {state}


def tagged(tags: dict[str, str]) -> dict[str, Told]:
    described: Any = answers(owner=ID)["ec2:DescribeSubnets"]
    listed = [{"Key": key, "Value": value} for key, value in tags.items()]
    return {
        "ec2:DescribeSubnets": {
            "Subnets": [
                each | {"Tags": listed} if each["SubnetId"] == NODES else each
                for each in described["Subnets"]
            ]
        }
    }


CNI = "kubernetes.io/role/cni"


@pytest.mark.parametrize(
    ("tags", "told"),
    [
        ({CNI: "1"}, True),
        ({CNI: "1", "cni.networking.k8s.aws/cluster/other": "1"}, True),
        ({CNI: "0"}, False),
        ({"karpenter.sh/discovery": "other"}, True),
        ({"Name": "nodes"}, False),
    ],
)
def test_a_neighbour_that_may_take_the_addresses_is_told(tags: dict[str, str], told: bool) -> None:
    found = findings(more=tagged(tags))[f"{NODES} (private)"]
    assert (found.state == "warn") is told


def test_a_fleet_that_no_longer_fits_fails() -> None:
    found = findings(
        available={FAST: 3}, interfaces=[interface(FAST, "100.64.1.1", prefixes=["100.64.0.0/18"])]
    )
    assert found["fleet"].state == "fail"
    assert "too few free addresses at full size in us-east-1a" in found["fleet"].evidence


def test_nodes_that_an_update_adds_have_to_fit_as_well() -> None:
    """31 blocks hold two nodes of eight each, and not the two beside them during an update."""
    taken = ["10.20.16.0/21", "10.20.24.0/22", "10.20.28.0/23"]
    there = interface(NODES, "10.20.16.4", prefixes=taken)
    found = findings(available={NODES: 506}, interfaces=[there])
    assert found["fleet"].state == "fail"


def test_a_fleet_that_fits_only_with_luck_is_a_warning() -> None:
    """Other accounts hold a quarter of a shared subnet, each address perhaps in another block."""
    vpc = {"id": VPC, "owner": OWNER, "cidrs": ["10.20.0.0/16", "100.64.0.0/16"]}
    found = findings(owner=OWNER, network={"vpc": vpc}, available={FAST: 15000})
    assert found["fleet"].state == "warn"
    assert f"credentials of account {OWNER}" in str(found["fleet"].fix)


CLOSED: dict[str, Any] = {"endpoints": {"present": ["ec2", "s3"]}}
THERE = [endpoint("ec2"), endpoint("s3", kind="Gateway")]


def test_endpoints_as_stated_pass() -> None:
    found = findings(network=CLOSED, endpoints=THERE)
    assert (found["endpoint ec2"].state, found["endpoint s3"].state) == ("pass", "pass")


WAITING: dict[str, Any] = {"State": "pendingAcceptance"}
NAMELESS: dict[str, Any] = {"PrivateDnsEnabled": False}
ENDPOINTS_WRONG: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "none, or in a hub": (
        *("ec2", {"endpoints": THERE[1:]}, "warn", f"account {ID} sees no endpoint of it"),
    ),
    "waiting": (
        *("ec2", {"endpoints": [endpoint("ec2", **WAITING)]}),
        *("fail", "vpce-ec2 is not available"),
    ),
    "no names": (
        *("ec2", {"endpoints": [endpoint("ec2", **NAMELESS)]}),
        *("warn", "vpce-ec2 has no private DNS names"),
    ),
    "closed": (
        "ec2",
        {"endpoints": THERE, "rules": [OPEN | {"IpRanges": [{"CidrIp": "10.20.0.0/16"}]}]},
        *("fail", "sg-2 of vpce-ec2 lets no HTTPS in from 100.64.0.0/18"),
    ),
    "not routed": (
        *("s3", {"endpoints": [endpoint("s3", kind="Gateway", RouteTableIds=["rtb-9"])]}),
        *("fail", "vpce-s3 is not in route tables rtb-main of nodes"),
    ),
}


@pytest.mark.parametrize(
    ("service", "told", "state", "evidence"), ENDPOINTS_WRONG.values(), ids=ENDPOINTS_WRONG
)
def test_what_is_wrong_with_an_endpoint_is_told(
    service: str, told: dict[str, Any], state: str, evidence: str
) -> None:
    found = findings(network=CLOSED, **told)[f"endpoint {service}"]
    assert found.state == state
    assert evidence in found.evidence


def test_what_a_participant_may_not_see_is_a_warning() -> None:
    vpc = {"id": VPC, "owner": OWNER, "cidrs": ["10.20.0.0/16", "100.64.0.0/16"]}
    action = "ec2:GetSubnetCidrReservations"
    found = findings(owner=OWNER, network=CLOSED | {"vpc": vpc}, more={action: denied(action)})
    assert (found["endpoint ec2"].state, found["endpoint s3"].state) == ("warn", "warn")
    subnet = found[f"{FAST} (accelerated)"]
    assert subnet.state == "warn"
    assert "reserved parts count as free" in subnet.evidence


@pytest.mark.parametrize(
    ("tags", "state"), [({}, "fail"), ({"aws:cloudformation:stack-name": "research-network"}, None)]
)
def test_an_endpoint_that_would_be_a_second_one_fails(
    tags: dict[str, str], state: str | None
) -> None:
    listed = [{"Key": key, "Value": value} for key, value in tags.items()]
    found = findings(
        network={"endpoints": {"create": ["sts"]}}, endpoints=[endpoint("sts", Tags=listed)]
    )
    assert (found["endpoint sts"].state if "endpoint sts" in found else None) == state


def test_checks_of_a_vpc_of_ours_do_not_judge_this_one() -> None:
    plan = plan_cluster(config.loads(as_text(existing_document())))
    account, aws = fake_account(answers(owner=ID), region="us-east-1")
    context = Context(plan=plan, needs=plan_needs(plan), account=account, at=NOW)
    (ranges,) = ADDRESSES.run(context)
    assert (ranges.state, ranges.evidence) == ("pass", "apart from those of 0 other VPCs")
    assert [*ENDPOINTS.run(context)] == []
    assert "ec2:DescribeVpcEndpointServices" not in aws.actions


def test_groups_that_may_not_be_read_are_unknown() -> None:
    refused: dict[str, Told] = {"ec2:DescribeSecurityGroups": denied("ec2:DescribeSecurityGroups")}
    found = findings(network=CLOSED, endpoints=THERE, more=refused)["endpoint ec2"]
    assert (found.state, found.denied) == ("unknown", "ec2:DescribeSecurityGroups")
