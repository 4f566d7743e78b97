"""Mistakes in `network.endpoints`: endpoints that cannot be made, and that nobody asked for."""

from typing import Any

import pytest

from tests.support.existing_vpc import GROUP, OWNER, VPC, existing_document
from tests.support.pools import as_json, loads_own

RANGES = ["10.20.0.0/16", "100.64.0.0/16"]
SHARED = {"id": VPC, "cidrs": RANGES, "owner": OWNER}


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
