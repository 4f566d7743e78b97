"""Mistakes in a VPC that exists: its ranges, its subnets, and what a file says beside them."""

from tests.support.config_documents import mistakes_in
from tests.support.existing_vpc import existing_document
from tests.support.pools import POOL, SYSTEM_POOL, as_json, loads_own

FREE = {key: value for key, value in POOL.items() if key != "zones"}


def test_ranges_of_the_vpc_may_lie_within_a_connected_one() -> None:
    assert mistakes_in(existing_document(connected_cidrs=["10.0.0.0/8"])) == []


def test_a_pool_is_in_the_zones_that_have_subnets_for_it() -> None:
    cluster = loads_own(as_json(existing_document(SYSTEM_POOL, FREE)))
    assert cluster.network.zone_names == ("us-east-1a", "us-east-1b")
    assert cluster.network.zones_for(accelerated=True) == ("us-east-1a",)
