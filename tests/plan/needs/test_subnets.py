"""Free addresses in the subnets of a zone, and bursts that they hold."""

import pytest

from tests.support.needs import KARPENTER, POD_RANGES, needs, subnet_values, subnets
from tests.support.pools import HYPERPOD_POOL, ODCR, SPOT, pool_document

G_TYPES = ["g6.12xlarge", "g6.24xlarge", "g6.48xlarge"]
ZONES = ["us-west-2a", "us-west-2b", "us-west-2c"]


def test_each_zone_says_what_it_holds_and_what_its_nodes_take() -> None:
    """A /18, of which three quarters are kept for prefixes."""
    found = needs(pool_document(purchase=ODCR, nodes={"max": 16}))

    zone = subnet_values(found, "private", "us-west-2b")

    assert zone["addresses"] == 2**14 - 5
    assert zone["prefixes"] == 2**14 * 3 // 4 // 16
    assert zone["nodes"] == 16 + 2  # and two of the four system nodes of three zones
    assert zone["prefixes_needed"] == 2 * 18
    assert zone["addresses_needed"] == 36 * 16 + 18 + 40
    assert zone["nodes_most"] == 768 / 2
    assert zone["full"] == pytest.approx(100 * 18 / 384)
    assert subnets(found, "private", "us-west-2b").ranges == {"/18": 1}


def test_the_equal_pod_ranges_of_a_zone_are_one_row() -> None:
    pool = pool_document(purchase=ODCR, nodes={"max": 16})
    found = needs(pool, network=POD_RANGES | {"pod_cidrs": {"count": 6, "from": "100.64.0.0/10"}})

    own = subnets(found, "accelerated", "us-west-2b")

    assert own.ranges == {"/18": 1, "/16": 2}
    assert own.figures["addresses"].value == 2**14 + 2 * 2**16 - 3 * 5
    assert own.figures["nodes"].formula == "16 of train"


def test_a_zone_that_could_not_hold_what_spot_may_bring_it_is_named() -> None:
    """Spread over three zones they have addresses; from one zone alone they have none."""

    def spot(nodes: int) -> dict[str, object]:
        return pool_document(
            name="burst",
            instance_types=G_TYPES,
            purchase=SPOT,
            provisioner="karpenter",
            zones=ZONES,
            nodes={"max": nodes},
            efa="none",
        )

    few, many = (needs(spot(count), karpenter=KARPENTER) for count in (300, 900))

    assert [subnets(few, "private", zone).holds_skew for zone in ZONES] == [True] * 3
    assert [subnets(many, "private", zone).holds_skew for zone in ZONES] == [False] * 3
    assert subnet_values(many, "private", ZONES[0])["nodes_of_skew"] == 900 + 4
    assert subnet_values(many, "private", ZONES[0])["nodes"] == 300 + 2


def test_pods_are_as_many_as_kubelets_take_or_addresses_there_are() -> None:
    few = subnet_values(needs(pool_document(purchase=ODCR, nodes={"max": 1})), "private", ZONES[1])
    full = needs(pool_document(purchase=ODCR, nodes={"max": 300}))
    most = subnet_values(full, "private", ZONES[1])

    assert (few["pods"] or 0) < 768 * 16
    # Of 300 nodes with EFA and two without, five and four share their node's address.
    assert most["pods"] == 768 * 16 + 300 * 5 + 2 * 4


def test_hyperpod_fills_a_zone_with_single_addresses() -> None:
    """81 for each p5.48xlarge: the quarter that is not kept for prefixes ends first."""
    zone = subnet_values(needs(HYPERPOD_POOL), "private", "us-west-2b")

    assert zone["addresses_needed"] == 2 * 10 * 16 + 8 * 81 + 2 + 40
    assert (zone["nodes_most"] or 0) < 384


def test_subnets_without_nodes_say_only_what_stands_in_them() -> None:
    found = needs(pool_document(purchase=ODCR))

    own = {"addresses", "addresses_needed", "addresses_free"}
    assert set(subnet_values(found, "public", "us-west-2a")) == own
    assert subnet_values(found, "control-plane", "us-west-2a")["addresses_needed"] == 6
    assert subnets(found, "control-plane", "us-west-2a").holds_skew is None
