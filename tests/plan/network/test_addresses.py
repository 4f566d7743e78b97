"""Address ranges of a file against its demand; the advice in a mistake works."""

import itertools
import math
import re
from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.networks import KEPT_BY_EC2, ZONES, cluster_of, layout, of
from ultrascale import config
from ultrascale.catalog import eks
from ultrascale.plan.network.addresses import AddressCheck, PodRanges
from ultrascale.plan.network.demand import Demand, ZoneDemand, holds, per_zone
from ultrascale.plan.network.subnets import WARM_PREFIXES

FEWER = "ask for fewer nodes, or spread them over more zones"
SMALL: dict[str, Any] = {"vpc_cidr": "10.0.0.0/20"}


def demand(
    nodes: int, *, zones: int = 1, first: int = 0, accelerated: bool = False, movable: bool = False
) -> Demand:
    inside = tuple(ZONES[first : first + zones])
    return Demand(zones=inside, nodes=nodes, accelerated=accelerated, movable=movable)


def check_of(zones: int, **network: Any) -> AddressCheck:
    read = cluster_of(zones, **network).network
    assert read.vpc_cidr is not None
    return AddressCheck(vpc_cidr=read.vpc_cidr, pod_cidrs=read.pod_cidrs, zones=read.zones)


def network_mistakes(zones: int, *demands: Demand, **network: Any) -> list[config.Mistake]:
    return [*check_of(zones, **network).mistakes(demands)]


def pod_ranges(zones: int, *demands: Demand, **network: Any) -> PodRanges:
    return check_of(zones, **network).pod_ranges(demands)


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
    @given(nodes=st.integers(13, 256))
    def test_the_pod_range_it_names_would_do_and_nothing_smaller(self, nodes: int) -> None:
        def found(length: int) -> list[config.Mistake]:
            pod_cidrs = [f"100.64.0.0/{length}"]
            return network_mistakes(2, demand(nodes, accelerated=True), pod_cidrs=pod_cidrs)

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
            ("vpc_cidr",),
            "too small for 3300 nodes in zone us-east-1a",
        )
        assert mistake.todo == "use a /16, and add network.pod_cidrs: {count: 2, from: RANGE}"
        after = {"count": 2, "from": "100.64.0.0/10"}
        assert not network_mistakes(2, many, demand(300), pod_cidrs=after)
        assert network_mistakes(2, many, demand(300), pod_cidrs=after | {"count": 1})

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
            assert in_zone * WARM_PREFIXES <= reserved // eks.ADDRESSES_PER_PREFIX
            assert in_zone <= subnet.cidr.num_addresses - reserved - KEPT_BY_EC2

    def test_pools_of_a_zone_are_counted_together_and_half_in_each_of_two(self) -> None:
        most = max(n for n in range(1, 60) if not network_mistakes(2, demand(n), **SMALL))
        assert network_mistakes(2, demand(most), demand(1), **SMALL)
        assert not network_mistakes(2, demand(2 * most, zones=2), **SMALL)
        assert network_mistakes(2, demand(2 * most + 1, zones=2), **SMALL)
        # Huge counts are rounded up exactly.
        (mistake,) = network_mistakes(2, demand(10**30 + 1, zones=2))
        assert mistake.wrong == f"too small for {10**30 // 2 + 1} nodes in zone us-east-1a"
        assert mistake.todo == FEWER


class TestPodRanges:
    """A large fleet fits its ranges in one way only, and a small one must not be laid out anew."""

    RANGES: Mapping[str, Any] = {"pod_cidrs": {"count": 4, "from": "100.64.0.0/10"}}

    def test_where_there_is_no_room_for_two_a_node_holds_one_and_no_subnet_moves(self) -> None:
        before = pod_ranges(2, demand(300, accelerated=True), **self.RANGES)
        after = pod_ranges(2, demand(8000, zones=2, accelerated=True), **self.RANGES)
        assert (before.prefixes_per_node, before.short) == (2, None)
        assert (after.prefixes_per_node, after.short) == (1, None)
        for old, new in zip(before.subnets, after.subnets, strict=True):
            kept = len(old.prefix_reservations)
            assert (new.zone, new.cidr) == (old.zone, old.cidr)
            assert new.prefix_reservations[:kept] == old.prefix_reservations

    def test_ranges_go_to_the_zones_that_need_them_where_turns_do_not_do(self) -> None:
        crowd = demand(10_000, first=1, accelerated=True)

        found = pod_ranges(3, crowd, demand(700, accelerated=True), **self.RANGES)

        assert found.short is None
        assert [s.zone for s in found.subnets[3:]] == [ZONES[1]] * 3

    def test_one_more_range_moves_no_subnet_that_was_dealt_by_need(self) -> None:
        nodes = (demand(50_000, first=1, accelerated=True), demand(9000, zones=3, accelerated=True))
        layouts = [
            pod_ranges(3, *nodes, pod_cidrs={"count": count, "from": "100.64.0.0/10"}).subnets
            for count in range(18, 30)
        ]

        for before, after in itertools.pairwise(layouts):
            assert after[: len(before)] == before

    @settings(deadline=None, max_examples=50)
    @given(
        shares=st.lists(st.integers(0, 40_000), min_size=3, max_size=3), count=st.integers(1, 40)
    )
    def test_what_is_laid_out_holds_every_zone_or_is_refused(
        self, shares: list[int], count: int
    ) -> None:
        nodes = [demand(each, first=n, accelerated=True) for n, each in enumerate(shares) if each]
        ranges = {"count": count, "from": "100.64.0.0/10"}
        found = pod_ranges(3, *nodes, pod_cidrs=ranges)
        each_holds = [
            holds(
                [s for s in found.subnets if s.zone == zone],
                need,
                prefixes_per_node=found.prefixes_per_node,
            )
            for zone, need in per_zone(nodes).items()
        ]
        assert all(each_holds) is (found.short is None)
        assert bool(network_mistakes(3, *nodes, pod_cidrs=ranges)) is (found.short is not None)

    def test_nodes_of_node_pools_follow_where_the_vpcs_range_is_too_small(self) -> None:
        plain, few = (demand(nodes, zones=2, movable=True) for nodes in (6000, 100))
        assert pod_ranges(2, plain, **self.RANGES).plain
        assert not pod_ranges(2, few, **self.RANGES).plain
        assert not network_mistakes(2, plain, **self.RANGES)
        # Those of groups stay where their subnets are.
        (mistake,) = network_mistakes(2, demand(6000, zones=2), **self.RANGES)
        assert mistake.at == ("vpc_cidr",)

    def test_each_node_has_its_prefix_and_its_address_at_the_most_that_passes(self) -> None:
        ranges = ["100.64.0.0/16"]

        def passes(nodes: int) -> bool:
            return not network_mistakes(2, demand(nodes, accelerated=True), pod_cidrs=ranges)

        most = max(n for n in range(900, 1000) if passes(n))
        subnets = pod_ranges(2, demand(most, accelerated=True), pod_cidrs=ranges).subnets
        (subnet,) = (s for s in subnets if s.zone == ZONES[0])
        assert holds([subnet], ZoneDemand(most, most), prefixes_per_node=1)
        assert not holds([subnet], ZoneDemand(most + 1, most + 1), prefixes_per_node=1)
        assert most == subnet.cidr.num_addresses * 15 // 16 // eks.ADDRESSES_PER_PREFIX
