"""The inventory of a teardown: a row that says too little leaves something that costs money."""

import string

import pytest

from tests.support.estate.cluster import estate, interface
from ultrascale.teardown import prices, sweep
from ultrascale.teardown.inventory import inventory

PLACES = {"id", "name", "region"}


@pytest.mark.parametrize("kind", inventory())
def test_a_row_is_whole(kind: str) -> None:
    row = inventory()[kind]
    named = {name for _, name, _, _ in string.Formatter().parse(row.command) if name}
    assert named <= PLACES
    assert (row.look is None) == (not row.absent)
    # A teardown waits until a resource that it deletes is gone.
    assert row.look is not None or row.delete is None


def test_each_kind_with_a_price_of_its_own_has_a_row() -> None:
    # It goes with its stack, which stays only for something in its VPC.
    assert prices.ITEMS.keys() - inventory().keys() == {"AWS::EC2::NatGateway"}
    assert not [kind for kind in prices.ITEMS if prices.of_type(kind)[0].startswith("$0 ")]


def test_an_untagged_interface_that_was_to_go_and_did_not_is_told() -> None:
    cluster = estate()
    cluster.interfaces["eni-0a1"] = interface()
    teardown = cluster.planned()
    left = {each.thing.id: each for each in sweep(cluster.scope, teardown).orphans}
    assert left["eni-0a1"].why == "it was to go, and is there"
    assert "delete-network-interface --network-interface-id eni-0a1" in left["eni-0a1"].command
    assert not left["eni-0a1"].paid
