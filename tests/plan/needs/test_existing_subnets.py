"""Free addresses of subnets that exist: as recorded, or as if nobody else were there."""

from typing import Any

import pytest

from tests.support.existing_vpc import VPC, existing_document, subnet
from tests.support.pools import POOL, SYSTEM_POOL, as_json, loads_own
from ultrascale.plan.cluster import plan_cluster
from ultrascale.plan.model import ClusterNeeds, SubnetNeeds
from ultrascale.plan.needs.report import plan_needs
from ultrascale.plan.network.vpc import free_addresses_are_recorded, network_leaves_room

A, B = "us-east-1a", "us-east-1b"
SYSTEM: dict[str, Any] = SYSTEM_POOL | {"zones": [B]}
TRAIN: dict[str, Any] = POOL | {"zones": [A], "nodes": {"max": 4}}
CONTROL = [
    subnet(11, A, "10.20.0.0/26", "control-plane", free_addresses=59, free_prefixes=2),
    subnet(12, B, "10.20.0.64/26", "control-plane", free_addresses=59, free_prefixes=2),
]
ROOMY = subnet(41, B, "10.20.64.0/20", "nodes", free_addresses=4091, free_prefixes=254)


def needs(*subnets: dict[str, Any], pools: tuple[dict[str, Any], ...]) -> ClusterNeeds:
    document = existing_document(*pools, subnets=[*CONTROL, *subnets])
    return plan_needs(plan_cluster(loads_own(as_json(document))))


def row(found: ClusterNeeds, kind: str, zone: str) -> SubnetNeeds:
    (own,) = [each for each in found.subnets if (each.kind, each.zone) == (kind, zone)]
    return own


def test_recorded_addresses_count_and_not_the_size_of_the_subnet() -> None:
    """Without a free block of 16 each p5.48xlarge takes 33 single addresses."""
    crowded = subnet(21, A, "10.20.16.0/20", "nodes", free_addresses=300, free_prefixes=0)

    figures = row(needs(crowded, ROOMY, pools=(SYSTEM, TRAIN)), "private", A).figures

    assert figures["addresses"].value == 300
    assert figures["addresses_needed"].value == 4 * 33 + 1
    assert (
        figures["addresses_needed"].formula == "132 for 4 nodes of train, 33 each + 1 for functions"
    )
    assert figures["nodes_most"].value == (300 - 1) // 33
    assert "prefixes" not in figures


def test_prefixes_are_held_against_the_blocks_that_are_free() -> None:
    few = subnet(21, A, "10.20.16.0/20", "nodes", free_addresses=3000, free_prefixes=60)

    figures = row(needs(few, ROOMY, pools=(SYSTEM, TRAIN)), "private", A).figures

    assert (figures["prefixes"].value, figures["prefixes_needed"].value) == (60, 8)
    # Each node's own address may break a block beside its two, that of functions one.
    assert figures["nodes_most"].value == 4 + (60 - 1 - 4 * 3) // 3


def test_a_subnet_of_two_uses_is_told_with_all_that_lies_in_it() -> None:
    both = subnet(41, B, "10.20.64.0/20", "nodes", "accelerated")
    own = TRAIN | {"zones": [B]}

    found = needs(both, pools=(SYSTEM, own))

    needed = [
        row(found, kind, B).figures["addresses_needed"] for kind in ("private", "accelerated")
    ]
    assert needed[0].value == needed[1].value == (4 + 2) * (7 * 16 + 1) + 4 * 33 + 1
    assert row(found, "accelerated", B).figures["nodes"].formula == "4 of train"


@pytest.mark.parametrize(("free", "held"), [(4 * 35 + 1, False), (6 * 35 + 1, True)])
def test_a_zone_that_does_not_hold_a_pool_of_two_zones_alone_is_named(
    free: int, held: bool
) -> None:
    """Two of four nodes in each zone, and two while they are updated: four fit, six do not."""
    own = [
        subnet(20 + n, zone, f"10.20.{n}.0/24", "nodes", free_addresses=free, free_prefixes=0)
        for n, zone in ((1, A), (2, B))
    ]

    found = needs(*own, pools=(SYSTEM | {"zones": [A, B], "nodes": {"static": 4}},))

    assert {row(found, "private", zone).holds_skew for zone in (A, B)} == {held}


def test_what_nobody_recorded_is_said_to_be_assumed() -> None:
    unknown = subnet(21, A, "10.20.16.0/20", "nodes")
    document = existing_document(SYSTEM, TRAIN, subnets=[*CONTROL, unknown, ROOMY])
    plan = plan_cluster(loads_own(as_json(document)))
    needed = plan_needs(plan)

    (note,) = free_addresses_are_recorded(plan.network)
    (assumed,) = [each for each in needed.remarks if each.startswith("Assumed")]

    assert note.text.startswith(f"no free addresses recorded of {unknown['id']}, so")
    assert f"in {unknown['id']}; `ultrascale network record {VPC}`" in assumed
    assert "if the subnets are empty today" in needed.answer.why[0]


def test_of_recorded_subnets_nothing_is_assumed() -> None:
    known = subnet(21, A, "10.20.16.0/20", "nodes", free_addresses=4000, free_prefixes=200)
    document = existing_document(SYSTEM, TRAIN, subnets=[*CONTROL, known, ROOMY])
    plan = plan_cluster(loads_own(as_json(document)))
    assert [*free_addresses_are_recorded(plan.network)] == []
    assert [*network_leaves_room(plan.network)] == []
    assert not [each for each in plan_needs(plan).remarks if each.startswith("Assumed")]
    # A control plane with fewer addresses than EKS advises is a warning.
    few = CONTROL[0] | {"free_addresses": 15, "free_prefixes": 0}
    document = existing_document(SYSTEM, TRAIN, subnets=[few, CONTROL[1], known, ROOMY])
    (warning,) = network_leaves_room(plan_cluster(loads_own(as_json(document))).network)
    assert "has 15 free addresses" in warning.text
