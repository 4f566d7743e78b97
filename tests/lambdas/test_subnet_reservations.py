"""Reservations of subnets where CloudFormation has no type: without them pods stay pending."""

import json
from typing import Any

import pytest

from tests.support.fake_aws import FakeAws, Refusal
from ultrascale.lambdas.subnet_reservations.handler import answer

A, B = "subnet-a", "subnet-b"
PART = {"SubnetId": A, "Cidr": "10.0.64.0/18"}
OTHER = {"SubnetId": A, "Cidr": "10.0.128.0/17"}
BESIDE = {"SubnetId": B, "Cidr": "10.1.128.0/17"}


class Ec2(FakeAws):
    """EC2, with the reservations that the test gives it."""

    def has(self, subnet: str, *ranges: str, token: str | None = None, **request: str) -> None:
        found = [{"SubnetCidrReservationId": f"scr-{cidr}", "Cidr": cidr} for cidr in ranges]
        page: dict[str, Any] = {"SubnetIpv4CidrReservations": found}
        if token:
            page["NextToken"] = token
        expected = {"SubnetId": subnet} | request
        self.expect("ec2:GetSubnetCidrReservations", page, expected)

    def has_no(self, subnet: str, code: str) -> None:
        self.expect("ec2:GetSubnetCidrReservations", Refusal(code, "refused"), {"SubnetId": subnet})

    def reserves(self, part: dict[str, str]) -> None:
        expected = part | {"ReservationType": "prefix"}
        self.expect("ec2:CreateSubnetCidrReservation", {}, expected)

    def releases(self, part: dict[str, str]) -> None:
        expected = {"SubnetCidrReservationId": f"scr-{part['Cidr']}"}
        self.expect("ec2:DeleteSubnetCidrReservation", {}, expected)


def told(ec2: Ec2, kind: str, *parts: dict[str, str], before: Any = None) -> dict[str, Any]:
    event: Any = {
        "RequestType": kind,
        "StackId": "stack",
        "RequestId": "request",
        "LogicalResourceId": "Reservations",
        "ResponseURL": "https://example.com/",
        "ResourceProperties": {"Parts": list(parts)},
    }
    if before is not None:
        event["OldResourceProperties"] = {"Parts": before}
    answers: list[Any] = []
    answer(event, ec2=ec2.client("ec2"), send=answers.append)
    ec2.verify()
    (sent,) = answers
    return json.loads(sent.data)


@pytest.fixture
def ec2() -> Ec2:
    return Ec2()


def test_every_part_is_kept_for_prefixes(ec2: Ec2) -> None:
    ec2.has(A)
    ec2.reserves(PART)
    ec2.reserves(OTHER)
    ec2.has(B)
    ec2.reserves(BESIDE)
    assert told(ec2, "Create", PART, OTHER, BESIDE)["Status"] == "SUCCESS"


def test_what_an_interrupted_deploy_has_reserved_is_not_asked_for_again(ec2: Ec2) -> None:
    ec2.has(A, "10.0.0.0/20", token="more")
    ec2.has(A, PART["Cidr"], NextToken="more")
    ec2.reserves(OTHER)
    assert told(ec2, "Create", PART, OTHER)["Status"] == "SUCCESS"


def test_parts_that_are_no_longer_wanted_go_before_others_come(ec2: Ec2) -> None:
    ec2.has(A, PART["Cidr"])
    ec2.releases(PART)
    ec2.has(B)
    ec2.reserves(BESIDE)
    assert told(ec2, "Update", BESIDE, before=[PART])["Status"] == "SUCCESS"


def test_more_parts_of_a_subnet_leave_the_first_alone(ec2: Ec2) -> None:
    ec2.has(A, PART["Cidr"])
    ec2.reserves(OTHER)
    assert told(ec2, "Update", PART, OTHER, before=[PART])["Status"] == "SUCCESS"


def test_deleting_gives_back_what_is_ours_alone(ec2: Ec2) -> None:
    ec2.has(A, "10.0.0.0/20", PART["Cidr"])
    ec2.releases(PART)
    assert told(ec2, "Delete", PART)["Status"] == "SUCCESS"


def test_a_subnet_that_is_gone_already_does_not_hold_up_a_destroy(ec2: Ec2) -> None:
    ec2.has_no(A, "InvalidSubnetID.NotFound")
    ec2.has(B)
    assert told(ec2, "Delete", PART, BESIDE)["Status"] == "SUCCESS"


@pytest.mark.parametrize("kind", ["Create", "Delete"])
def test_a_refusal_fails_the_deploy_with_its_reason(ec2: Ec2, kind: str) -> None:
    ec2.has_no(A, "UnauthorizedOperation")
    answered = told(ec2, kind, PART)
    assert answered["Status"] == "FAILED"
    assert "UnauthorizedOperation" in answered["Reason"]
