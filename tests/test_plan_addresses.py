"""Whether the ranges of a file hold what it asks for, and that the advice works."""

import itertools
import math
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.test_plan_network import KEPT_BY_EC2, ZONES, cluster_of, layout, of
from ultrascale import config
from ultrascale.catalog import eks
from ultrascale.plan.addresses import (
    ADDRESSES_BESIDE_NODES,
    PREFIXES_PER_NODE,
    AddressCheck,
    Demand,
)

FEWER = "ask for fewer nodes, or spread them over more zones"
SMALL: dict[str, Any] = {"vpc_cidr": "10.0.0.0/20"}


def demand(nodes: int, *, zones: int = 1, accelerated: bool = False) -> Demand:
    return Demand(zones=tuple(ZONES[:zones]), nodes=nodes, accelerated=accelerated)


def network_mistakes(
    zones: int, *demands: Demand, reservations: bool = True, **network: Any
) -> list[config.Mistake]:
    read = cluster_of(zones, **network).network
    check = AddressCheck(
        vpc_cidr=read.vpc_cidr,
        pod_cidrs=read.pod_cidrs,
        zones=read.zones,
        reservations=reservations,
    )
    return [*check.mistakes(demands)]


def smallest(mistake: config.Mistake) -> int:
    """Return the prefix length that a mistake says would do."""
    named = re.fullmatch(r"use a /(16|\d+ or larger)", mistake.todo)
    assert named is not None, mistake.todo
    return int(named[1].split()[0])


class TestZones:
    """Every zone needs a subnet of each kind."""

    @settings(deadline=None)
    @given(length=st.integers(16, 28), zones=st.integers(2, 6))
    def test_every_range_is_laid_out_or_refused_with_one_that_would_do(
        self, length: int, zones: int
    ) -> None:
        lines = network_mistakes(zones, vpc_cidr=f"10.0.0.0/{length}")
        if lines:
            assert lines[0].wrong == f"too small for {zones} zones"
            needed = smallest(lines[0])
            assert needed < length
            assert network_mistakes(zones, vpc_cidr=f"10.0.0.0/{needed + 1}")
            length = needed
        network = layout(zones, vpc_cidr=f"10.0.0.0/{length}")
        vpc = network.vpc_cidr
        ranges = sorted(subnet.cidr for subnet in network.subnets)

        assert all(cidr.subnet_of(vpc) and cidr.prefixlen <= 28 for cidr in ranges)
        assert not any(one.overlaps(other) for one, other in itertools.pairwise(ranges))
        for kind in ("public", "control-plane", "private"):
            subnets = of(network, kind)
            assert [subnet.zone for subnet in subnets] == ZONES[:zones]
            assert len({subnet.cidr.prefixlen for subnet in subnets}) == 1

    @settings(deadline=None)
    @given(length=st.integers(16, 28), zones=st.integers(2, 6))
    def test_every_pod_range_reaches_all_zones_or_is_refused(self, length: int, zones: int) -> None:
        lines = network_mistakes(zones, pod_cidrs=[f"100.64.0.0/{length}"])
        if lines:
            assert lines[0].wrong == f"too small for {zones} zones"
            assert network_mistakes(zones, pod_cidrs=[f"100.64.0.0/{smallest(lines[0]) + 1}"])
            length = smallest(lines[0])

        accelerated = of(layout(zones, pod_cidrs=[f"100.64.0.0/{length}"]), "accelerated")

        assert [subnet.zone for subnet in accelerated] == ZONES[:zones]


class TestAddresses:
    """A file that asks for more nodes than there are addresses fails here, not at node 300."""

    @settings(deadline=None)
    @given(nodes=st.integers(1, 192), length=st.integers(17, 24), zones=st.integers(2, 4))
    def test_the_vpc_range_it_names_would_do_and_nothing_smaller(
        self, nodes: int, length: int, zones: int
    ) -> None:
        lines = network_mistakes(zones, demand(nodes), vpc_cidr=f"10.0.0.0/{length}")
        if not lines:
            return

        needed = smallest(lines[0])
        assert 16 <= needed < length
        assert not network_mistakes(zones, demand(nodes), vpc_cidr=f"10.0.0.0/{needed}")
        assert network_mistakes(zones, demand(nodes), vpc_cidr=f"10.0.0.0/{needed + 1}")

    @settings(deadline=None)
    @given(nodes=st.integers(1, 256), reservations=st.booleans())
    def test_the_pod_range_it_names_would_do_and_nothing_smaller(
        self, nodes: int, reservations: bool
    ) -> None:
        def found(length: int) -> list[config.Mistake]:
            pod_cidrs = [f"100.64.0.0/{length}"]
            many = demand(nodes, accelerated=True)
            return network_mistakes(2, many, pod_cidrs=pod_cidrs, reservations=reservations)

        needed = smallest(found(24)[0])

        assert not found(needed)
        assert found(needed + 1)

    @settings(deadline=None)
    @given(nodes=st.integers(2000, 100_000), start=st.integers(1, 3))
    def test_the_pod_blocks_it_names_would_do_and_no_fewer(self, nodes: int, start: int) -> None:
        def found(count: int) -> list[config.Mistake]:
            pod_cidrs = {"count": count, "from": "100.64.0.0/10"}
            return network_mistakes(3, demand(nodes, accelerated=True), pod_cidrs=pod_cidrs)

        for mistake in found(start):
            if (named := re.fullmatch(r"write count: (\d+)", mistake.todo)) is None:
                assert mistake.todo == FEWER
                assert found(49)
            else:
                assert not found(int(named[1]))
                assert found(int(named[1]) - 1)

    @settings(deadline=None)
    @given(nodes=st.integers(1, 20_000), lengths=st.lists(st.integers(17, 24), min_size=2))
    def test_the_ranges_to_add_would_do(self, nodes: int, lengths: list[int]) -> None:
        ranges = [f"100.{64 + n}.0.0/{length}" for n, length in enumerate(lengths[:4])]
        more = [f"100.{80 + n}.0.0/16" for n in range(48)]

        for mistake in network_mistakes(2, demand(nodes, accelerated=True), pod_cidrs=ranges):
            named = re.fullmatch(r"add (a range|(\d+) ranges) of /16", mistake.todo)
            assert named is not None
            after = [*ranges, *more[: int(named[2] or 1)]]
            assert not network_mistakes(2, demand(nodes, accelerated=True), pod_cidrs=after)

    def test_accelerated_nodes_beyond_any_vpc_are_sent_to_pod_ranges_that_would_do(self) -> None:
        many = demand(3000, accelerated=True)

        (mistake,) = network_mistakes(2, many, demand(300), vpc_cidr="10.0.0.0/24")

        assert (mistake.at, mistake.wrong) == (
            ("network", "vpc_cidr"),
            "too small for 3300 nodes in zone us-west-2a",
        )
        assert mistake.todo == "use a /16, and add network.pod_cidrs: {count: 4, from: RANGE}"
        after = {"count": 4, "from": "100.64.0.0/10"}
        assert not network_mistakes(2, many, demand(300), pod_cidrs=after)
        assert network_mistakes(2, many, demand(300), pod_cidrs=after | {"count": 3})

    def test_plain_nodes_beyond_any_vpc_are_told_to_be_fewer(self) -> None:
        (mistake,) = network_mistakes(2, demand(100_000))

        assert mistake.todo == FEWER

    @settings(deadline=None)
    @given(nodes=st.integers(1, 5000), zones=st.integers(1, 3), length=st.integers(16, 20))
    def test_what_passes_has_a_prefix_and_an_address_for_every_pod(
        self, nodes: int, zones: int, length: int
    ) -> None:
        if network_mistakes(3, demand(nodes, zones=zones), vpc_cidr=f"10.0.0.0/{length}"):
            return

        in_zone = math.ceil(nodes / zones)
        for subnet in of(layout(3, vpc_cidr=f"10.0.0.0/{length}"), "private")[:zones]:
            reserved = sum(part.num_addresses for part in subnet.prefix_reservations)
            assert in_zone * PREFIXES_PER_NODE <= reserved // eks.ADDRESSES_PER_PREFIX
            assert in_zone <= subnet.cidr.num_addresses - reserved - KEPT_BY_EC2

    @settings(deadline=None)
    @given(nodes=st.integers(1, 1500), length=st.integers(16, 20))
    def test_without_reservations_every_address_may_spoil_a_prefix(
        self, nodes: int, length: int
    ) -> None:
        vpc_cidr = f"10.0.0.0/{length}"
        if network_mistakes(2, demand(nodes), vpc_cidr=vpc_cidr, reservations=False):
            return

        subnet = of(layout(vpc_cidr=vpc_cidr), "private")[0]
        spoilt = nodes + ADDRESSES_BESIDE_NODES + 2
        assert nodes * PREFIXES_PER_NODE <= subnet.cidr.num_addresses // 16 - spoilt

    def test_huge_counts_are_rounded_up_exactly(self) -> None:
        counted = demand(10**30 + 1, zones=2)

        (mistake,) = network_mistakes(2, counted)

        assert mistake.wrong == f"too small for {10**30 // 2 + 1} nodes in zone us-west-2a"

    def test_pools_of_a_zone_are_counted_together(self) -> None:
        most = max(n for n in range(1, 60) if not network_mistakes(2, demand(n), **SMALL))

        assert network_mistakes(2, demand(most), demand(1), **SMALL)

    def test_a_pool_of_two_zones_is_counted_half_in_each(self) -> None:
        most = max(n for n in range(1, 60) if not network_mistakes(2, demand(n), **SMALL))

        assert not network_mistakes(2, demand(2 * most, zones=2), **SMALL)
        assert network_mistakes(2, demand(2 * most + 1, zones=2), **SMALL)
