"""Facts in a user's file: what is recorded is replaced, and not a character besides."""

from typing import Any

import pytest
import yaml

from tests.support.account import fake_account
from tests.support.described_vpcs import INTERNET, LOCAL, TRANSIT, answers, endpoint, interface
from tests.support.existing_vpc import OWNER, VPC, existing_document
from tests.support.fake_aws import ID, denied
from ultrascale import config, record
from ultrascale.account.vpcs import VpcRecord, require_vpc
from ultrascale.errors import QuestionError

NODES = "subnet-0a1b2c3d4e5f60021"
HEAD = f"""\
name: estate   # ours
network:
  vpc: {{id: {VPC}, cidrs: [10.20.0.0/16]}}
"""
FORMS = {
    "on one line": (
        f"""  subnets:
    - {{id: {NODES}, zone: us-east-1a, cidr: 10.20.16.0/20, use: [nodes]}}   # theirs
""",
        f"""  subnets:
    - {{id: {NODES}, zone: us-east-1a, cidr: 10.20.16.0/20, use: [nodes], """
        """free_addresses: 4091, free_prefixes: 254, route: transit-gateway}   # theirs
""",
    ),
    "with older facts": (
        f"""  subnets:
    - {{id: {NODES}, free_addresses: 7, zone: us-east-1a, cidr: 10.20.16.0/20, """
        """route: none , use: [nodes]}
""",
        f"""  subnets:
    - {{id: {NODES}, free_addresses: 4091, zone: us-east-1a, cidr: 10.20.16.0/20, """
        """route: transit-gateway , use: [nodes], free_prefixes: 254}
""",
    ),
    "line by line": (
        f"""  subnets:
  - use:
    - nodes
    id: {NODES}  # theirs
    zone: use1-az1
    # by hand
    cidr: 10.20.16.0/20
    route: other   # ask
""",
        f"""  subnets:
  - use:
    - nodes
    id: {NODES}  # theirs
    free_addresses: 4091
    free_prefixes: 254
    zone: use1-az1
    # by hand
    cidr: 10.20.16.0/20
    route: transit-gateway   # ask
""",
    ),
}
TAIL = "  egress: none\n# the end"


def seen(*, owner: str = ID, **told: Any) -> VpcRecord:
    account, _ = fake_account(answers(owner=owner, **told), region="us-east-1")
    return require_vpc(account, VPC, cluster="estate")


@pytest.mark.parametrize(("before", "after"), FORMS.values(), ids=FORMS)
def test_a_subnet_gets_its_facts_in_the_form_that_it_has(before: str, after: str) -> None:
    update = record.updated(HEAD + before + TAIL, seen(), file="estate.yaml")

    assert update.text == HEAD + after + TAIL


def test_recorded_twice_is_recorded_once() -> None:
    text = HEAD + FORMS["line by line"][0] + TAIL

    first = record.updated(text, seen(), file="estate.yaml")
    second = record.updated(first.text, seen(), file="estate.yaml")

    assert (second.text, second.changes) == (first.text, ())
    assert f"{NODES}: route transit-gateway, was other" in first.changes


ENDPOINTS = """\
  endpoints:
    create: none
    present: [ec2,   # by the network team
              sts]
"""
LISTED = """\
  endpoints:
    present:
    - ec2
    - sts
    create: none
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (ENDPOINTS, "  endpoints:\n    create: none\n    present: [ec2, s3]\n"),
        (LISTED, "  endpoints:\n    present:\n    - ec2\n    - s3\n    create: none\n"),
    ],
)
def test_endpoints_are_those_that_work(before: str, after: str) -> None:
    there = [endpoint("s3", kind="Gateway"), endpoint("ec2"), endpoint("sts", State="failed")]
    subnets = FORMS["on one line"][1]

    update = record.updated(HEAD + subnets + before, seen(endpoints=there), file="estate.yaml")

    assert update.text == HEAD + subnets + after
    assert update.changes == ("endpoints.present: no sts, s3",)


@pytest.mark.parametrize("owner", [ID, OWNER])
def test_endpoints_that_the_account_cannot_see_stay(owner: str) -> None:
    """They are the owner's of a shared VPC, or lie in a hub: without them `check` fails."""
    text = HEAD + FORMS["on one line"][1] + ENDPOINTS
    vpc = seen(owner=owner, endpoints=[endpoint("sts")])

    update = record.updated(text, vpc, file="estate.yaml")

    assert update.text == text
    (told,) = record.cautions(vpc, (), update.present)
    assert "no endpoint of ec2 is visible" in told


def test_endpoints_of_our_stack_and_of_partners_are_not_recorded_as_those_of_others() -> None:
    """Then `create: missing` would make them no longer, and the next deployment delete them."""
    tag = {"Key": "aws:cloudformation:stack-name", "Value": "estate-network"}
    text = HEAD + FORMS["on one line"][1] + ENDPOINTS
    for other in (
        endpoint("kms", Tags=[tag]),
        endpoint("x", ServiceName="com.amazonaws.vpce.us-east-1.vpce-svc-0a1b"),
    ):
        there = [endpoint("ec2"), endpoint("sts"), other]
        assert record.updated(text, seen(endpoints=there), file="estate.yaml").text == text


def test_a_file_without_a_list_of_endpoints_is_told_of_them() -> None:
    text = HEAD + FORMS["on one line"][1]

    update = record.updated(text, seen(endpoints=[endpoint("ec2")]), file="estate.yaml")

    assert update.text == text
    assert update.changes == ("endpoints: write `present: [ec2]` into network.endpoints",)


def test_everything_in_which_file_and_account_differ_is_told_at_once() -> None:
    text = f"""{HEAD}  subnets:
    - {{id: {NODES}, zone: us-east-1b, cidr: 10.20.16.0/21, use: [nodes]}}
    - {{id: subnet-0000000000000000f, zone: us-east-1a, cidr: 10.20.0.0/26, use: [nodes]}}
"""
    with pytest.raises(QuestionError) as refused:
        record.updated(text, seen(), file="estate.yaml")

    assert refused.value.mistakes == (
        f"estate.yaml: network.subnets[0].zone: {NODES} lies in us-east-1a (use1-az1), got "
        "'us-east-1b'; write that",
        f"estate.yaml: network.subnets[0].cidr: {NODES} is 10.20.16.0/20, got '10.20.16.0/21'; "
        "write that",
        f"estate.yaml: network.subnets[1].id: {VPC} has no such subnet that the account sees, got "
        "'subnet-0000000000000000f'; take it out, or have it shared",
    )


def test_a_subnet_that_stands_in_two_places_is_replaced_once() -> None:
    before = f"  subnets: [&a {{id: {NODES}, zone: us-east-1a, cidr: 10.20.16.0/20}}, *a]\n"

    update = record.updated(HEAD + before, seen(), file="estate.yaml")

    facts = ", free_addresses: 4091, free_prefixes: 254, route: transit-gateway}, *a]"
    assert update.text == HEAD + before.replace("}, *a]", facts)


def test_subnets_that_stand_elsewhere_are_not_lost() -> None:
    for subnets in ("", "  subnets: parts/subnets.yaml\n"):
        with pytest.raises(QuestionError, match="write each subnet out in this file"):
            record.updated(HEAD + subnets, seen(), file="estate.yaml")
    text = (HEAD + FORMS["on one line"][0]).replace(VPC, "vpc-00000000000000001")
    with pytest.raises(QuestionError, match=r"network\.vpc\.id: another VPC"):
        record.updated(text, seen(), file="estate.yaml")


def test_a_section_for_a_new_file_is_one_that_the_file_takes() -> None:
    public = {
        "RouteTableId": "rtb-2",
        "Associations": [{"SubnetId": "subnet-0a1b2c3d4e5f60012"}],
        "Routes": [LOCAL, INTERNET],
    }
    main = {
        "RouteTableId": "rtb-main",
        "Associations": [{"Main": True}],
        "Routes": [LOCAL, TRANSIT],
    }
    there = [endpoint("ec2"), endpoint("s3", kind="Gateway")]
    vpc = seen(owner=OWNER, endpoints=there, tables=[public, main])

    network = yaml.safe_load(record.network_section(vpc))["network"]

    by_id = {subnet["id"]: subnet for subnet in network["subnets"]}
    assert by_id["subnet-0a1b2c3d4e5f60012"]["use"] == ["public"]
    assert network["egress"] == "transit-gateway"
    assert network["endpoints"] == {"create": "none", "present": ["ec2", "s3"]}
    for id in ("subnet-0a1b2c3d4e5f60021", "subnet-0a1b2c3d4e5f60022"):
        by_id[id]["use"] = ["control-plane", "nodes"]
    text = yaml.safe_dump(existing_document() | {"network": network})
    assert config.loads(text).network.vpc is not None


def test_what_a_participant_cannot_see_is_said() -> None:
    there = [interface(NODES, "10.20.16.20")]
    vpc = seen(owner=OWNER, interfaces=there, available={NODES: 4000})

    text = HEAD + FORMS["on one line"][0]
    subnets = record.updated(text, vpc, file="estate.yaml").subnets

    hidden, endpoints = record.cautions(vpc, subnets)
    assert hidden == (
        f"{NODES}: 163 free /28 blocks are certain, and there may be 250: interfaces of other "
        f"accounts are not visible; record it with credentials of account {OWNER} to know"
    )
    assert "no endpoint is visible" in endpoints


def test_reservations_that_only_the_owner_sees_are_said_to_count_as_free() -> None:
    action = "ec2:GetSubnetCidrReservations"
    told = {**answers(owner=OWNER, endpoints=[endpoint("ec2")]), action: denied(action)}
    account, _ = fake_account(told, region="us-east-1")
    vpc = require_vpc(account, VPC)

    (line,) = record.cautions(vpc, [each for each in vpc.subnets if each.id == NODES])

    assert line.startswith(f"{NODES}: reserved parts are not visible, and count as free")
