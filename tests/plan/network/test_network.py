"""Subnets: their ranges, their stability and their capacity."""

import itertools
from ipaddress import IPv4Network
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.cases import for_each
from tests.support.config_documents import TWO_ZONES
from tests.support.folders import ROOT
from tests.support.networks import ZONES, layout, of
from tests.support.pools import POOL, SYSTEM_POOL, make_cluster, make_pool, pool_document
from ultrascale import config
from ultrascale.plan import ClusterPlan, plan_cluster
from ultrascale.plan.model import PoolPlan
from ultrascale.plan.needs.control_plane import daemon_sets, daemons_on
from ultrascale.plan.network.vpc import network_leaves_room, node_subnet_kind, plan_network
from ultrascale.plan.pools.pool import plan_pool

CLUSTERS = ROOT / "clusters"
POOL_PLAN = plan_pool(make_pool(), kubernetes_version="1.35")
CLUSTER = make_cluster()


def pool(nodes: int, *, zones: int = 1, instance_type: str = "p5.48xlarge") -> PoolPlan:
    changes = {
        "instance_types": (instance_type,),
        "zones": tuple(ZONES[:zones]),
        "nodes": config.Nodes(max=nodes),
    }
    base = CLUSTER.pools[-1]
    return plan_pool(base.model_copy(update=changes), kubernetes_version="1.35")


class TestLayout:
    """A subnet cannot change its range, and what lies in it cannot change its subnet."""

    @for_each(
        [
            *({"vpc_cidr": f"10.0.0.0/{length}"} for length in range(16, 24)),
            {"pod_cidrs": ["100.64.0.0/16", "100.65.0.0/16"]},
        ]
    )
    def test_a_third_zone_moves_no_subnet(self, ranges: dict[str, Any]) -> None:
        assert {*layout(2, **ranges).subnets} < {*layout(3, **ranges).subnets}

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

    @settings(deadline=None)
    @given(zones=st.integers(2, 6), blocks=st.integers(1, 12), length=st.integers(16, 25))
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

    def test_all_but_a_quarter_of_every_node_subnet_is_kept_for_prefixes(self) -> None:
        network = layout(pod_cidrs=["100.64.0.0/16"])
        for kind in ("private", "accelerated"):
            for subnet in of(network, kind):
                first, *_ = subnet.cidr.subnets(prefixlen_diff=2)
                assert {*subnet.prefix_reservations} == {*subnet.cidr.address_exclude(first)}
        # Subnets without nodes keep every address.
        for kind in ("public", "control-plane"):
            assert {subnet.prefix_reservations for subnet in of(network, kind)} == {()}


class TestNodeSubnets:
    """Accelerated nodes and their pods take more addresses than a VPC's own range has."""

    def test_accelerated_nodes_live_in_the_pod_ranges_where_there_are_some(self) -> None:
        network = layout(pod_cidrs=["100.64.0.0/16"])
        assert node_subnet_kind(network, POOL_PLAN) == "accelerated"
        assert node_subnet_kind(network, pool(1, instance_type="m7g.2xlarge")) == "private"
        assert node_subnet_kind(layout(), POOL_PLAN) == "private"
        assert of(layout(), "accelerated") == []


@pytest.mark.parametrize(
    ("region", "by_function"), [("us-west-2", False), ("us-gov-west-1", True), ("us-east-2", True)]
)
def test_prefixes_are_reserved_by_a_function_where_cloudformation_cannot(
    region: str, by_function: bool
) -> None:
    network = {"vpc_cidr": "10.0.0.0/16", "zones": [f"{region}a", f"{region}b"]}

    plan = plan_network(
        make_cluster(region=region, network=network, kubernetes=None, pools=[SYSTEM_POOL])
    )

    assert plan.reserves_by_function is by_function
    assert all(subnet.prefix_reservations for subnet in of(plan, "private"))


class TestWarnings:
    """A warning about ranges is cheap to act on before a deploy, and costly afterwards."""

    def test_a_single_prefix_and_ranges_by_need_are_told(self) -> None:
        network = replace(layout(), prefixes_per_node=1, dealt_by_need=True)
        single, moving = network_leaves_room(network)
        assert "at most 15 pods" in single.text
        assert "may move subnets" in moving.text
        assert [*network_leaves_room(layout(pod_cidrs=["100.64.0.0/16"]))] == []


class TestSinglePrefix:
    """A pod beyond a node's addresses waits for one that never comes."""

    def crowded(self, **changes: Any) -> ClusterPlan:
        pools = [SYSTEM_POOL, pool_document(nodes={"max": 200})]
        network = {"vpc_cidr": "10.0.0.0/20", "pod_cidrs": ["100.64.0.0/18"], "zones": TWO_ZONES}
        return plan_cluster(make_cluster(network=network, pools=pools, **changes))

    def test_no_node_is_given_more_pods_than_its_prefix_has_addresses(self) -> None:
        plan = self.crowded()
        (pool,) = plan.pools
        (cni,) = (each for each in plan.control_plane.node_addons if each.name == "vpc-cni")
        assert plan.network.prefixes_per_node == 1
        # The VPC CNI, kube-proxy, two agents of EKS and the EFA plugin use the host's address.
        assert pool.max_pods == 15 + 5
        assert all(pool.max_pods > 20 for pool in plan.system_pools)
        # The CNI holds no second prefix in reserve.
        assert cni.configuration["env"] == {
            "ENABLE_PREFIX_DELEGATION": "true",
            "MINIMUM_IP_TARGET": "15",
            "WARM_IP_TARGET": "1",
        }
        # Fluent Bit takes no address either.
        for logs, pods in ((True, 21), (False, 20)):
            (pool,) = self.crowded(observability={"container_logs": logs}).pools
            assert pool.max_pods == pods

    def test_pods_of_a_gpu_each_fit_beside_all_daemonsets(self) -> None:
        plan = plan_cluster(config.load(CLUSTERS / "ultra-100k.yaml"))
        (pool, *_) = (pool for pool in plan.pools if pool.pool == "p5en")

        assert pool.max_pods - daemons_on(pool, daemon_sets(plan)) >= pool.accelerators_per_node
