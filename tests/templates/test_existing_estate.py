"""The estate of others: no template makes, changes or retains any part of their network."""

import json
import re
from itertools import chain

import pytest

from tests.support.assembly import Assembly
from tests.support.eks_access import Person
from tests.support.rbac import Access

NETWORK = {
    f"AWS::EC2::{name}"
    for name in (
        *("VPC", "VPCCidrBlock", "Subnet", "SubnetCidrReservation", "SubnetNetworkAclAssociation"),
        *("Route", "RouteTable", "SubnetRouteTableAssociation", "NetworkAcl", "NetworkAclEntry"),
        *("NatGateway", "InternetGateway", "VPCGatewayAttachment", "EIP", "FlowLog"),
        *("VPCEndpoint", "DHCPOptions", "VPCDHCPOptionsAssociation", "TransitGatewayAttachment"),
    )
}
_FOREIGN = re.compile(r"\b(?:vpc|subnet)-[0-9a-f]{17}\b")


@pytest.fixture
def stated(estate: Assembly) -> set[str]:
    """Return the ids of the VPC and its subnets that the file states."""
    existing = estate.plan.network.existing
    assert existing is not None
    return {existing.vpc_id, *(subnet.id or "" for subnet in estate.plan.network.subnets)}


def test_no_template_holds_a_resource_of_the_network_or_an_id_that_the_file_does_not_state(
    estate: Assembly, stated: set[str]
) -> None:
    held = chain.from_iterable(
        template.get("Resources", {}).values() for template in estate.templates.values()
    )
    manifest = json.loads((estate.folder / "cdk.out" / "manifest.json").read_text())
    classes = [each for each in estate.documents if each["kind"] == "EC2NodeClass"]

    assert not {body["Type"] for body in held} & NETWORK
    assert "network" not in estate.templates
    assert {*_FOREIGN.findall(json.dumps([estate.templates, estate.charts]))} == stated
    # Nothing is looked up in the account, and nodes find their subnets by id alone.
    assert "missing" not in manifest
    assert len(classes) == 2
    for each in classes:
        assert each["spec"]["subnetSelectorTerms"] == [{"id": "subnet-0a1b2c3d4e5f60031"}]


def test_no_policy_lets_anybody_change_or_tag_a_network(estate: Assembly) -> None:
    forbidden = re.compile(
        r"ec2:(?:\*|(?:Create|Delete|Modify|Associate|Disassociate|Replace)(?:Vpc|Subnet|Route|"
        r"NatGateway|InternetGateway|FlowLogs|NetworkAcl)\w*)"
    )
    statements = (
        statement
        for template in estate.templates.values()
        for body in template.get("Resources", {}).values()
        if body["Type"] in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
        for statement in body["Properties"]["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Allow"
    )
    granted = [
        action
        for statement in statements
        for action in (
            [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]
        )
    ]
    assert granted
    assert [action for action in granted if forbidden.fullmatch(action)] == []


def test_people_get_the_access_that_the_file_says_and_no_other(estate: Assembly) -> None:
    people = {
        body["Properties"]["PrincipalArn"].rpartition("/")[2]: {
            (
                policy["PolicyArn"].rpartition("/")[2],
                *policy["AccessScope"].get("Namespaces", ["the whole cluster"]),
            )
            for policy in body["Properties"]["AccessPolicies"]
        }
        for _, body in estate.resources("AWS::EKS::AccessEntry")
        if isinstance(body["Properties"]["PrincipalArn"], str)
    }

    assert people == {
        "PlatformAdmin": {("AmazonEKSClusterAdminPolicy", "the whole cluster")},
        "Researchers": {("AmazonEKSEditPolicy", "training")},
        "Auditors": {("AmazonEKSViewPolicy", "the whole cluster")},
    }


@pytest.mark.parametrize(
    ("role", "access", "may"),
    [
        ("Researchers", Access("create", "batch.volcano.sh", "jobs", "training"), True),
        ("Researchers", Access("create", "batch.volcano.sh", "jobs", "volcano-system"), False),
        ("Researchers", Access("list", "", "secrets", "kube-system"), False),
        ("Auditors", Access("list", "batch.volcano.sh", "jobs", "training"), True),
        ("Auditors", Access("list", "", "secrets", "training"), False),
        ("Auditors", Access("delete", "batch.volcano.sh", "jobs", "training"), False),
    ],
    ids=str,
)
def test_the_manifests_let_each_of_them_do_its_part(
    estate: Assembly, role: str, access: Access, may: bool
) -> None:
    (entry,) = (each for each in estate.plan.access.entries if each.role.endswith(f"/{role}"))

    assert Person(entry, estate.documents).allows(access) == may
