"""Ranges cannot be changed once nodes live in them."""

from typing import Any

import pytest

from tests.support.fake_aws import Told
from tests.support.preflight_context import found, make_context, pools_plan, states
from ultrascale.preflight.network import ADDRESSES

VPCS, SUBNETS = "ec2:DescribeVpcs", "ec2:DescribeSubnets"
STACK = "aws:cloudformation:stack-name"
PRIVATE = [subnet for subnet in pools_plan().network.subnets if subnet.kind == "private"]


def vpc(id: str, *ranges: str, stack: str | None = None, state: str = "associated") -> Any:
    return {
        "VpcId": id,
        "CidrBlock": ranges[0],
        "CidrBlockAssociationSet": [
            {"CidrBlock": each, "CidrBlockState": {"State": state}} for each in ranges
        ],
        "Tags": [{"Key": STACK, "Value": stack}] if stack else [],
    }


def subnet(number: int, free: int) -> dict[str, Any]:
    return {
        "SubnetId": f"subnet-{number}",
        "CidrBlock": str(PRIVATE[number].cidr),
        "AvailableIpAddressCount": free,
    }


OWN = vpc("vpc-own", "10.0.0.0/16", stack="research-network")


@pytest.mark.parametrize(
    ("others", "state", "text"),
    [
        ([], "pass", "apart from those of 0 other VPCs"),
        ([vpc("vpc-1", "172.31.0.0/16")], "pass", "apart from those of 1 other VPCs"),
        ([OWN], "pass", "apart from those of 0 other VPCs"),
        (
            [vpc("vpc-1", "172.31.0.0/16", "10.0.128.0/20")],
            "warn",
            "overlapping: 10.0.0.0/16 and 10.0.128.0/20 of vpc-1",
        ),
        ([vpc("vpc-1", "10.0.0.0/16", state="disassociated")], "pass", "apart from"),
        # Another cluster's, of which the name begins like ours.
        ([vpc("vpc-1", "10.0.0.0/16", stack="research-2-network")], "warn", "overlapping: "),
    ],
)
def test_ranges_are_held_against_those_of_other_vpcs(
    others: list[Any], state: str, text: str
) -> None:
    findings = found(ADDRESSES, pools_plan(), {VPCS: {"Vpcs": others}, SUBNETS: {"Subnets": []}})
    assert states(findings) == {"ranges": state}
    assert findings[0].evidence.startswith(text)


@pytest.mark.parametrize(
    ("free", "state"), [(8000, "pass"), (100, "warn"), (17, "warn"), (16, "fail"), (0, "fail")]
)
def test_what_is_free_once_deployed_is_told_for_each_zone(free: int, state: str) -> None:
    """A node takes an address, and a prefix of sixteen."""
    answers = {VPCS: {"Vpcs": [OWN]}, SUBNETS: {"Subnets": [subnet(0, 8000), subnet(1, free)]}}
    context, aws = make_context(pools_plan(), answers)

    _, first, second = ADDRESSES.run(context)

    assert aws.parameters(SUBNETS) == [{"Filters": [{"Name": "vpc-id", "Values": ["vpc-own"]}]}]
    assert (first.state, second.state) == ("pass", state)
    assert second.subject == "private subnets in us-west-2b"
    assert second.evidence.startswith(f"{free:,} of 16,379 addresses are free; the cluster takes ")
    assert not second.evidence.endswith("takes 0 at its full size")
    assert ("subnet-1" in str(second.fix)) == (state != "pass")


def test_a_second_page_of_vpcs_is_read() -> None:
    pages: Told = [{"Vpcs": [], "NextToken": "more"}, {"Vpcs": [vpc("vpc-1", "10.0.0.0/24")]}]
    assert states(found(ADDRESSES, pools_plan(), {VPCS: pages})) == {"ranges": "warn"}
