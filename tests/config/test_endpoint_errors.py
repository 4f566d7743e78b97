"""Mistakes in `network.endpoints`: endpoints that cannot be made, and that nobody asked for."""

from typing import Any

import pytest

from tests.support.config_documents import mistakes_in
from tests.support.existing_vpc import GROUP, OWNER, VPC, existing_document
from tests.support.pools import as_json, loads_own, make_document

RANGES = ["10.20.0.0/16", "100.64.0.0/16"]
SHARED = {"id": VPC, "cidrs": RANGES, "owner": OWNER}
OURS = {"vpc_cidr": "10.0.0.0/16", "zones": ["us-west-2a", "us-west-2b"]}

BAD: dict[str, tuple[dict[str, Any], list[str]]] = {
    "endpoints in a VPC that is not there yet": (
        make_document(network=OURS | {"endpoints": {"present": ["ec2"], "security_group": GROUP}}),
        [
            "network.endpoints.present: a VPC of ours has no endpoints but those that we make; "
            "leave it out",
            "network.endpoints.security_group: a security group that is there before its VPC, got "
            f"'{GROUP}'; leave it out: we make one",
        ],
    ),
    "endpoints in subnets of another account": (
        existing_document(vpc=SHARED, endpoints={"create": "missing"}),
        [
            "network.endpoints.create: only the owner of a shared VPC can make endpoints in it, "
            "got 'missing'; write none; `ultrascale network needs` lists those that the owner has "
            "to make",
        ],
    ),
    "a second endpoint of a service": (
        existing_document(endpoints={"present": ["sqs", "kms"], "create": ["ec2", "sqs"]}),
        [
            "network.endpoints.create[1]: in present too, and a VPC has one endpoint with private "
            "DNS of a service, got 'sqs'; leave it out of one of them",
        ],
    ),
    "a route in tables of others": (
        existing_document(endpoints={"create": ["s3"]}),
        [
            "network.endpoints.create[0]: a gateway endpoint, which is an entry in route tables "
            "that are not ours, got 's3'; let whoever keeps them make it, and write it to present",
        ],
    ),
    "a security group of no endpoint": (
        existing_document(endpoints={"security_group": GROUP}),
        [
            "network.endpoints.security_group: the security group of endpoints that we make, and "
            f"create makes none, got '{GROUP}'; leave it out; preflight reads the groups of those "
            "that are there",
        ],
    ),
    "the long name of a service": (
        existing_document(endpoints={"present": ["com.amazonaws.us-east-1.ec2"]}),
        [
            "network.endpoints.present[0]: the long name of an endpoint, got "
            "'com.amazonaws.us-east-1.ec2'; write ec2",
        ],
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_an_endpoint_that_cannot_be_is_refused(case: str) -> None:
    document, expected = BAD[case]

    assert mistakes_in(document) == expected


@pytest.mark.parametrize(
    "network",
    [
        {"vpc": SHARED, "endpoints": {"create": "none", "present": ["ec2"]}},
        {"endpoints": {"create": "missing", "security_group": GROUP}},
        {"endpoints": {"create": ["ec2", "sqs"], "present": ["s3"]}},
    ],
    ids=["those of the owner", "all that are missing", "chosen ones"],
)
def test_endpoints_are_chosen_one_by_one(network: dict[str, Any]) -> None:
    read = loads_own(as_json(existing_document(**network)))

    assert read.network.endpoints.model_fields_set == {*network["endpoints"]}
