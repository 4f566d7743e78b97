"""Where the subnets lie, that they stay there, and that they hold what the file asks for."""

import itertools
import math
import re
from ipaddress import IPv4Network
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.pools import POOL, SYSTEM_POOL, make_cluster, make_pool, pool_document
from ultrascale import config
from ultrascale.catalog import eks
from ultrascale.errors import ConfigError
from ultrascale.plan.model import NetworkPlan, PoolPlan, SubnetPlan
from ultrascale.plan.network import (
    PREFIXES_PER_NODE,
    address_mistakes,
    node_subnet_kind,
    plan_network,
)
from ultrascale.plan.pool import plan_pool

ZONES = [f"us-west-2{letter}" for letter in "abcdef"]
# Addresses that EC2 keeps of every subnet.
KEPT_BY_EC2 = 5
POOL_PLAN = plan_pool(make_pool(), kubernetes_version="1.35")
CLUSTER = make_cluster()


def cluster_of(zones: int = 2, **network: Any) -> config.Cluster:
    """Return a cluster whose ranges are ``network``'s; its pools stay in the first two zones."""
    document = {"vpc_cidr": "10.0.0.0/16", "zones": ZONES[:zones]} | network
    return make_cluster(network=document, pools=[SYSTEM_POOL, POOL])


def layout(zones: int = 2, **network: Any) -> NetworkPlan:
    return plan_network(cluster_of(zones, **network))


def of(network: NetworkPlan, kind: str) -> list[SubnetPlan]:
    return [subnet for subnet in network.subnets if subnet.kind == kind]


def pool(nodes: int, *, zones: int = 1, instance_type: str = "p5.48xlarge") -> PoolPlan:
    changes = {
        "instance_types": (instance_type,),
        "zones": tuple(ZONES[:zones]),
        "nodes": config.Nodes(max=nodes),
    }
    base = CLUSTER.pools[-1]
    return plan_pool(base.model_copy(update=changes), kubernetes_version="1.35")


def holds(network: NetworkPlan, nodes: int) -> bool:
    return not [*address_mistakes(network, [pool(nodes)])]


class TestLayout:
    """A subnet cannot change its range, and what lies in it cannot change its subnet."""

    @pytest.mark.parametrize("length", range(16, 24))
    def test_a_third_zone_moves_no_subnet(self, length: int) -> None:
        before = layout(2, vpc_cidr=f"10.0.0.0/{length}")
        after = layout(3, vpc_cidr=f"10.0.0.0/{length}")

        assert set(before.subnets) < set(after.subnets)

    def test_a_third_zone_moves_no_accelerated_subnet(self) -> None:
        before = layout(2, pod_cidrs=["100.64.0.0/16", "100.65.0.0/16"])
        after = layout(3, pod_cidrs=["100.64.0.0/16", "100.65.0.0/16"])

        assert set(before.subnets) < set(after.subnets)

    def test_another_pod_range_moves_no_subnet(self) -> None:
        ranges = [f"100.{second}.0.0/16" for second in range(64, 70)]
        layouts = [layout(3, pod_cidrs=ranges[:count]) for count in range(len(ranges) + 1)]

        for before, after in itertools.pairwise(layouts):
            assert set(before.subnets) < set(after.subnets)

    def test_pools_that_come_or_grow_move_no_subnet(self) -> None:
        pools = [
            [SYSTEM_POOL],
            [SYSTEM_POOL, POOL],
            [SYSTEM_POOL, pool_document(nodes={"max": 400})],
            [SYSTEM_POOL, POOL, pool_document(name="second", instance_types=["trn1.32xlarge"])],
        ]

        layouts = {plan_network(make_cluster(pools=each)).subnets for each in pools}

        assert len(layouts) == 1

    def test_first_pod_range_reaches_every_zone_and_each_further_one_a_single_zone(self) -> None:
        network = layout(3, pod_cidrs={"count": 5, "from": "100.64.0.0/10"})
        first, *further = network.secondary_cidrs
        accelerated = of(network, "accelerated")

        assert [(s.zone, s.cidr.prefixlen) for s in accelerated[:3]] == [(z, 18) for z in ZONES[:3]]
        assert all(subnet.cidr.subnet_of(first) for subnet in accelerated[:3])
        assert [subnet.cidr for subnet in accelerated[3:]] == further
        assert [subnet.zone for subnet in accelerated[3:]] == [*ZONES[:3], ZONES[0]]

    def test_without_pod_ranges_there_are_no_accelerated_subnets(self) -> None:
        assert of(layout(), "accelerated") == []

    @pytest.mark.parametrize("cidr", ["100.64.0.0/27", "100.64.0.0/28"])
    def test_a_pod_range_too_small_for_the_zones_names_one_that_would_do(self, cidr: str) -> None:
        with pytest.raises(ConfigError, match=r"^network\.pod_cidrs: .*for 4 zones") as caught:
            layout(4, pod_cidrs=[cidr])

        needed = smallest(str(caught.value))
        assert len(of(layout(4, pod_cidrs=[f"100.64.0.0/{needed}"]), "accelerated")) == 4

    @settings(deadline=None)
    @given(length=st.integers(16, 24), zones=st.integers(2, 6))
    def test_every_range_is_laid_out_or_refused_with_one_that_would_do(
        self, length: int, zones: int
    ) -> None:
        try:
            network = layout(zones, vpc_cidr=f"10.0.0.0/{length}")
        except ConfigError as error:
            (mistake,) = error.mistakes
            needed = smallest(mistake)
            assert mistake.startswith(f"network.vpc_cidr: too small for {zones} zones, got '10.0.")
            assert needed < length
            network = layout(zones, vpc_cidr=f"10.0.0.0/{needed}")
            with pytest.raises(ConfigError):
                layout(zones, vpc_cidr=f"10.0.0.0/{needed + 1}")
        vpc = network.vpc_cidr
        ranges = sorted(subnet.cidr for subnet in network.subnets)

        assert all(cidr.subnet_of(vpc) and cidr.prefixlen <= 28 for cidr in ranges)
        assert not any(one.overlaps(other) for one, other in itertools.pairwise(ranges))
        for kind in ("public", "control-plane", "private"):
            subnets = of(network, kind)
            assert [subnet.zone for subnet in subnets] == ZONES[:zones]
            assert len({subnet.cidr.prefixlen for subnet in subnets}) == 1

    @settings(deadline=None)
    @given(
        zones=st.integers(2, 6),
        blocks=st.integers(1, 12),
        length=st.integers(16, 25),
    )
    def test_pod_ranges_are_used_without_overlap(
        self, zones: int, blocks: int, length: int
    ) -> None:
        size = 2 ** (32 - length)
        start = int(IPv4Network("100.64.0.0/10").network_address)
        ranges = [str(IPv4Network((start + size * number, length))) for number in range(blocks)]

        network = layout(zones, pod_cidrs=ranges)

        accelerated = sorted(subnet.cidr for subnet in of(network, "accelerated"))
        assert not any(one.overlaps(other) for one, other in itertools.pairwise(accelerated))
        assert all(any(c.subnet_of(IPv4Network(r)) for r in ranges) for c in accelerated)
        assert {subnet.zone for subnet in of(network, "accelerated")} == set(ZONES[:zones])


class TestPrefixes:
    """Single addresses scattered over a subnet leave no /28 whole, and pods stay pending."""

    @pytest.mark.parametrize("kind", ["private", "accelerated"])
    def test_all_but_a_quarter_of_every_node_subnet_is_kept_for_prefixes(self, kind: str) -> None:
        for subnet in of(layout(pod_cidrs=["100.64.0.0/16"]), kind):
            first, *_ = subnet.cidr.subnets(prefixlen_diff=2)
            others = set(subnet.cidr.address_exclude(first))
            assert set(subnet.prefix_reservations) == others

    @pytest.mark.parametrize("kind", ["public", "control-plane"])
    def test_subnets_without_nodes_keep_every_address(self, kind: str) -> None:
        for subnet in of(layout(), kind):
            assert subnet.prefix_reservations == ()


class TestAddresses:
    """A file that asks for more nodes than there are addresses fails here, not at node 300."""

    def test_accelerated_nodes_live_in_the_pod_ranges(self) -> None:
        network = layout(pod_cidrs=["100.64.0.0/16"])

        assert node_subnet_kind(network, POOL_PLAN) == "accelerated"
        assert node_subnet_kind(network, pool(1, instance_type="m7g.2xlarge")) == "private"

    def test_without_pod_ranges_they_live_beside_the_others(self) -> None:
        assert node_subnet_kind(layout(), POOL_PLAN) == "private"

    def test_the_mistake_names_the_key_the_zone_and_the_range(self) -> None:
        network = layout(vpc_cidr="10.0.0.0/20")

        ((key, mistake),) = address_mistakes(network, [pool(100)])

        assert key == "network.vpc_cidr"
        assert mistake.startswith("too small for 100 nodes in zone us-west-2a, got '10.0.4.0/22'; ")

    def test_accelerated_nodes_ask_for_larger_pod_ranges(self) -> None:
        network = layout(pod_cidrs=["100.64.0.0/20"])

        ((key, mistake),) = address_mistakes(network, [pool(100)])

        assert key == "network.pod_cidrs"
        assert f"got '{of(network, 'accelerated')[0].cidr}'" in mistake

    @settings(deadline=None)
    @given(nodes=st.integers(1, 256))
    def test_the_size_it_names_would_do_and_nothing_smaller(self, nodes: int) -> None:
        needed = room_needed(nodes)
        share = of(layout(pod_cidrs=["100.64.0.0/16"]), "accelerated")[0].cidr.prefixlen - 16

        assert holds(layout(pod_cidrs=[f"100.64.0.0/{needed - share}"]), nodes)
        assert not holds(layout(pod_cidrs=[f"100.64.0.0/{needed - share + 1}"]), nodes)

    @settings(deadline=None)
    @given(nodes=st.integers(1025, 8000))
    def test_room_beyond_one_range_is_found_in_several(self, nodes: int) -> None:
        ranges = 2 ** (16 - room_needed(nodes))
        # The first is shared by both zones, of the others every second one is this zone's.
        network = layout(pod_cidrs={"count": 2 * ranges, "from": "100.64.0.0/10"})

        assert holds(network, nodes)

    @settings(deadline=None)
    @given(nodes=st.integers(1, 5000), zones=st.integers(1, 3), length=st.integers(16, 20))
    def test_what_passes_has_a_prefix_and_an_address_for_every_pod(
        self, nodes: int, zones: int, length: int
    ) -> None:
        network = layout(3, vpc_cidr=f"10.0.0.0/{length}")
        if [*address_mistakes(network, [pool(nodes, zones=zones)])]:
            return

        in_zone = math.ceil(nodes / zones)
        for subnet in of(network, "private")[:zones]:
            reserved = sum(part.num_addresses for part in subnet.prefix_reservations)
            assert in_zone * PREFIXES_PER_NODE <= reserved // eks.ADDRESSES_PER_PREFIX
            assert in_zone <= subnet.cidr.num_addresses - reserved - KEPT_BY_EC2

    def test_pools_of_a_zone_are_counted_together(self) -> None:
        network = layout(vpc_cidr="10.0.0.0/20")
        most = max(nodes for nodes in range(1, 60) if holds(network, nodes))

        assert not [*address_mistakes(network, [pool(most)])]
        assert [*address_mistakes(network, [pool(most), pool(1)])]

    def test_a_pool_of_two_zones_is_counted_half_in_each(self) -> None:
        network = layout(vpc_cidr="10.0.0.0/20")
        most = max(nodes for nodes in range(1, 60) if holds(network, nodes))

        assert not [*address_mistakes(network, [pool(2 * most, zones=2)])]
        assert len([*address_mistakes(network, [pool(2 * most + 1, zones=2)])]) == 2


class TestEndpoints:
    """Nodes of a private cluster join through endpoints, whatever becomes of the NAT gateway."""

    def test_nodes_can_join_pull_and_log_without_the_internet(self) -> None:
        needed = {"ec2", "ecr.api", "ecr.dkr", "sts", "logs", "eks", "eks-auth", "ssm"}

        assert needed <= set(layout().interface_endpoints)

    def test_fsx_is_paid_for_only_where_there_is_a_file_system(self) -> None:
        lustre = {
            "name": "training",
            "zone": ZONES[1],
            "capacity_gib": 1200,
            "throughput_mbps_per_tib": 250,
        }
        with_lustre = plan_network(make_cluster(storage={"lustre": [lustre]}))

        assert "fsx" in with_lustre.interface_endpoints
        assert "fsx" not in layout().interface_endpoints


def room_needed(nodes: int) -> int:
    """Return the prefix length of the room that too many nodes are told they need."""
    ((_, mistake),) = address_mistakes(layout(vpc_cidr="10.0.0.0/24"), [pool(nodes)])
    (length,) = re.findall(r"that zone's nodes need the room of a /(\d+)$", mistake)
    return int(length)


def smallest(mistake: str) -> int:
    """Return the prefix length that a mistake says would do."""
    (length,) = re.findall(r"the smallest that would do is /(\d+)$", mistake)
    return int(length)
