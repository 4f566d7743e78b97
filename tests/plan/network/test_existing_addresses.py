"""Nodes in subnets that exist: prefixes where they are safe, single addresses, or a refusal."""

import re
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.support.existing_vpc import existing_document, subnet
from tests.support.oracles.addresses import every_assignment, survives
from tests.support.pools import GOVERNED_POOL, POOL, SYSTEM_POOL, as_json, loads_own
from ultrascale import config
from ultrascale.errors import ConfigError
from ultrascale.parts.backend.database import Database
from ultrascale.parts.backend.section import Backend
from ultrascale.plan.cluster import plan_cluster
from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.network.assignment import Nodes
from ultrascale.plan.network.existing_addresses import (
    MODES,
    AddressesOfSubnets,
    AddressMode,
    node_draw,
    room_of,
    standing_addresses,
)
from ultrascale.plan.network.vpc import pods_on_host_network

A, B = "us-east-1a", "us-east-1b"
CONTROL = [
    subnet(11, A, "10.20.0.0/28", "control-plane"),
    subnet(12, B, "10.20.0.16/28", "control-plane"),
]
TRAIN: dict[str, Any] = POOL | {"zones": [A]}
SYSTEM: dict[str, Any] = SYSTEM_POOL | {"zones": [B]}
_BURST = {"name": "burst", "instance_types": ["m7i.48xlarge"], "zones": [A]}
KARPENTER: dict[str, Any] = {**_BURST, "provisioner": "karpenter"}


def recorded(addresses: int, prefixes: int) -> dict[str, int]:
    return {"free_addresses": addresses, "free_prefixes": prefixes}


FEW = recorded(500, 3)


def document(*subnets: dict[str, Any], pools: list[dict[str, Any]]) -> dict[str, Any]:
    roomy = subnet(41, B, "10.20.64.0/20", "nodes")
    found = existing_document(SYSTEM, *pools, subnets=[*CONTROL, *subnets, roomy])
    if any(pool["provisioner"] == "karpenter" for pool in pools):
        found["karpenter"] = {"version": "1.15.2"}
    return found


def planned(*subnets: dict[str, Any], pools: list[dict[str, Any]]) -> ClusterPlan:
    return plan_cluster(loads_own(as_json(document(*subnets, pools=pools))))


def refusal(*subnets: dict[str, Any], pools: list[dict[str, Any]]) -> str:
    with pytest.raises(ConfigError) as raised:
        planned(*subnets, pools=pools)
    return str(raised.value)


def cni(plan: ClusterPlan) -> Any:
    (addon,) = [each for each in plan.control_plane.node_addons if each.name == "vpc-cni"]
    return addon.configuration["env"]


def nodes(cidr: str = "10.20.16.0/20", number: int = 21, **facts: Any) -> dict[str, Any]:
    return subnet(number, A, cidr, "nodes", **facts)


class TestModes:
    """Nobody can reserve blocks in a subnet of others, so prefixes must be safe without it."""

    # An empty subnet of plenty gives each node two prefixes; where blocks are short it holds one
    # and runs as many pods; a fragmented one gives pods single addresses.
    @pytest.mark.parametrize(
        ("blocks", "prefixes", "least", "pods"),
        [(None, "true", "31", None), (40, "true", "15", 15 + 5), (3, "false", "31", 31 + 5)],
    )
    def test_a_node_takes_prefixes_where_there_are_blocks(
        self, blocks: int | None, prefixes: str, least: str, pods: int | None
    ) -> None:
        facts: dict[str, Any] = {} if blocks is None else recorded(3000, blocks)
        plan = planned(nodes(**facts), pools=[TRAIN])
        (train,) = plan.pools
        assert cni(plan)["ENABLE_PREFIX_DELEGATION"] == prefixes
        assert cni(plan)["MINIMUM_IP_TARGET"] == least
        assert pods is None or train.max_pods == pods

    @pytest.mark.parametrize("facts", [{}, *(recorded(3000, n) for n in (80, 60, 3)), FEW])
    def test_no_node_runs_more_pods_than_it_has_addresses_for(self, facts: Any) -> None:
        """One address more is the one that the VPC CNI holds free."""
        plan = planned(nodes(**facts), pools=[TRAIN, KARPENTER | {"nodes": {"max": 2}}])
        mode = AddressMode(prefixes=plan.network.prefixes_per_node, pods=plan.network.most_pods)
        for pool in plan.all_pools:
            draw, own = node_draw(pool, mode), pool.max_pods - pods_on_host_network(pool)
            assert own + 1 <= draw.prefixes * 16 or own + 1 < draw.addresses

    def test_what_nobody_has_recorded_counts_as_lying_in_the_worst_places(self) -> None:
        """100 addresses that somebody has may have broken 100 of the 254 blocks, not 6."""
        most = (254 - 100 - 1) // 3
        room = nodes(free_addresses=4091 - 100)

        holding, short = (
            cni(planned(room, pools=[TRAIN | {"nodes": {"max": count}}]))
            for count in (most, most + 1)
        )

        assert holding["MINIMUM_IP_TARGET"] == "31"
        assert short["MINIMUM_IP_TARGET"] == "15"

    def test_karpenter_asks_for_no_prefix_where_there_are_none(self) -> None:
        pool = KARPENTER | {"nodes": {"max": 10}}
        few, plenty = nodes(free_addresses=3000, free_prefixes=3), nodes()

        assert [each.ip_prefixes for each in planned(few, pools=[pool]).nodes.classes] == [0]
        assert [each.max_pods for each in planned(few, pools=[pool]).nodes.classes] == [31 + 4]
        assert [each.max_pods for each in planned(plenty, pools=[pool]).nodes.classes] == [250]

    def test_a_group_has_addresses_for_the_nodes_that_an_update_adds(self) -> None:
        """EKS launches two in a zone before it ends two: four of them at a time."""
        pool = SYSTEM | {"name": "plain", "zones": [A], "nodes": {"static": 2}}
        refused = refusal(nodes("10.20.16.0/26"), pools=[pool])

        assert "72 for 2 nodes of plain and 2 while it is updated, 18 each" in refused
        assert planned(nodes("10.20.16.0/25"), pools=[pool])

    def test_hyperpod_takes_its_many_single_addresses(self) -> None:
        """81 for each p5.48xlarge: 8 of them fit into 3 of a /22's four /24, not into two."""
        pool = GOVERNED_POOL | {"zones": [A]}
        assert cni(planned(nodes("10.20.16.0/22"), pools=[pool]))["MINIMUM_IP_TARGET"] == "31"
        assert "648 for 8 nodes of hp, 81 each" in refusal(nodes("10.20.16.0/23"), pools=[pool])


class TestSubnets:
    """Each provisioner chooses among several subnets in its own way, so the plan names them."""

    def test_a_node_group_has_the_first_subnet_of_its_zone_that_holds_it(self) -> None:
        small, large = nodes("10.20.16.0/26"), nodes("10.20.32.0/20", 23)

        (_, train) = planned(small, large, pools=[TRAIN]).nodes.groups

        assert [each.id for each in train.subnets] == [large["id"]]

    def test_a_node_group_is_not_counted_on_to_divide_itself_and_a_node_pool_is(self) -> None:
        """Two subnets have room for half of it each: EC2 Auto Scaling may fill one and go on."""
        twenty = {"nodes": {"max": 20}}
        halves = nodes("10.20.16.0/24"), nodes("10.20.17.0/24", 23)
        plan = planned(*halves, pools=[KARPENTER | twenty])
        assert "all nodes of train lie in one" in refusal(*halves, pools=[TRAIN | twenty])
        assert plan.network.assigned["burst"] == tuple(each["id"] for each in halves)

    def test_one_more_pool_moves_no_group_that_has_room(self) -> None:
        rooms = nodes("10.20.16.0/22"), nodes("10.20.20.0/22", 23)
        later = TRAIN | {"name": "later"}

        before = planned(*rooms, pools=[TRAIN]).network.assigned
        after = planned(*rooms, pools=[TRAIN, later]).network.assigned

        assert before["train"] == after["train"]

    def test_a_subnet_of_all_uses_leaves_the_control_plane_its_addresses(self) -> None:
        """59 addresses: 6 of EKS, 1 of functions, and 17 for each of three nodes."""
        shared = subnet(11, A, "10.20.1.0/26", "control-plane", "nodes", "accelerated")
        two = [shared, CONTROL[1], subnet(41, B, "10.20.64.0/20", "nodes")]

        def plan(count: int) -> ClusterPlan:
            pool = TRAIN | {"nodes": {"max": count}}
            made = existing_document(SYSTEM, pool, subnets=two)
            return plan_cluster(loads_own(as_json(made)))

        assert plan(3).network.assigned["train"] == (shared["id"],)
        with pytest.raises(ConfigError, match="68 for 4 nodes of train, 17 each"):
            plan(4)

    @pytest.mark.parametrize(("create", "count"), [(["ec2", "sts"], 2), ("none", 0)])
    def test_endpoints_and_file_systems_stand_in_the_first_subnet_of_a_zone(
        self, create: Any, count: int
    ) -> None:
        made = document(nodes(), nodes("10.20.32.0/20", 23), pools=[TRAIN])
        made["network"] |= {"endpoints": {"create": create}}
        lustre = {"name": "data", "zone": A, "capacity_gib": 4800, "throughput_mbps_per_tib": 250}
        made["storage"] = {"lustre": [lustre]}
        cluster = loads_own(as_json(made))
        backend = Backend(database=Database(version="17"))

        standing = standing_addresses(
            cluster.network, cluster.pools, cluster.storage, [*cluster.sections, backend]
        )

        # Four file servers and a metadata server.
        first = {"functions": 1, "the database": 2, "endpoints": count, "file systems": 5}
        assert standing[nodes()["id"]] == {key: value for key, value in first.items() if value}
        assert standing[nodes("10.20.32.0/20", 23)["id"]] == {"functions": 1, "the database": 2}

    def test_a_refusal_tells_of_the_subnets_that_are_too_small_alone(self) -> None:
        """A sum over others, which have room, would be less than what is free."""
        small = subnet(31, A, "100.64.0.0/27", "accelerated")
        roomy = [*CONTROL, nodes(), subnet(41, B, "10.20.64.0/20", "nodes"), small]
        document = existing_document(SYSTEM, TRAIN, subnets=roomy)

        with pytest.raises(ConfigError) as refused:
            plan_cluster(loads_own(as_json(document)))

        (line,) = [each for each in str(refused.value).splitlines() if "too small" in each]
        assert f"27 free (27 in {small['id']})" in line
        assert line.endswith("use: [accelerated]")
        assert "system" not in line

    @pytest.mark.parametrize(("free", "held"), [(6, True), (5, False)])
    def test_the_control_plane_needs_six_addresses_in_each_of_its_subnets(
        self, free: int, held: bool
    ) -> None:
        crowded = CONTROL[0] | {"free_addresses": free}
        others = [CONTROL[1], nodes(), subnet(41, B, "10.20.64.0/20", "nodes")]
        made = loads_own(as_json(existing_document(SYSTEM, TRAIN, subnets=[crowded, *others])))

        if held:
            plan_cluster(made)
        else:
            with pytest.raises(ConfigError, match=r"subnets\[0\]: too small: 5 of 6 addresses"):
                plan_cluster(made)


@st.composite
def files(draw: st.DrawFn) -> dict[str, Any]:
    """Draw small subnets in one zone, with others' addresses in them, and a small fleet."""
    subnets: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, 3))):
        mask = draw(st.integers(25, 28))
        uses = draw(st.sampled_from([["nodes"], ["nodes", "accelerated"], ["nodes"]]))
        empty = 2 ** (32 - mask) - 5
        facts: dict[str, Any] = {}
        if draw(st.booleans()):
            facts["free_addresses"] = draw(st.integers(0, empty))
            most = min(facts["free_addresses"] // 16, max(2 ** (28 - mask) - 2, 0))
            facts["free_prefixes"] = draw(st.integers(0, most))
        subnets.append(subnet(21 + number, A, f"10.20.{16 + number}.0/{mask}", *uses, **facts))
    pools: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, 2))):
        kind = draw(st.sampled_from([TRAIN, KARPENTER]))
        count = draw(st.integers(1, 4))
        pools.append(kind | {"name": f"pool{number}", "nodes": {"max": count}})
    if not any("accelerated" in each["use"] for each in subnets):
        pools = [pool | {"instance_types": ["m7i.48xlarge"]} for pool in pools]
    return document(*subnets, pools=pools)


@settings(deadline=None, max_examples=15)
@given(made=files())
def test_a_file_is_planned_where_its_nodes_fit_and_refused_where_they_do_not(
    made: dict[str, Any],
) -> None:
    cluster = loads_own(as_json(made))
    addresses = _addresses(cluster)
    found = addresses.plan()
    wanted = [found.mode] if found else MODES
    for mode in wanted:
        for zone in (A, B):
            rooms = [room_of(each) for each in cluster.network.subnets if each.zone == zone]
            nodes = [*_nodes(cluster, zone, mode)]
            if found is not None:
                own = {each.name: _there(found.assigned[each.name], rooms) for each in nodes}
                assert survives(rooms, nodes, addresses.standing, own)
            elif zone == A:
                ways = every_assignment(nodes)
                assert not any(survives(rooms, nodes, addresses.standing, way) for way in ways)


@settings(deadline=None, max_examples=15)
@given(made=files())
def test_the_subnet_that_a_refusal_names_would_do_and_nothing_smaller(made: dict[str, Any]) -> None:
    cluster = loads_own(as_json(made))
    wrong = [each for each in _addresses(cluster).mistakes() if each.at == ("subnets",)]
    assume(wrong)
    named = re.match(r"add an empty subnet of /(\d+) or larger, use: \[(.*)\]", wrong[0].todo)
    assert named is not None, wrong[0].todo

    def left(mask: int) -> bool:
        more = subnet(29, A, f"10.20.128.0/{mask}", *named[2].split(", "))
        subnets = [*made["network"]["subnets"], more]
        after = made | {"network": made["network"] | {"subnets": subnets}}
        return not [*_addresses(loads_own(as_json(after))).mistakes()]

    assert left(int(named[1]))
    assert int(named[1]) == 28 or not left(int(named[1]) + 1)


# EKS adds two nodes in a zone before it ends those that it replaces; not with accelerators.
_SURGE = {("managed-node-group", "m7i.48xlarge"): 2, ("managed-node-group", "m7g.2xlarge"): 2}


def _addresses(cluster: config.Cluster) -> AddressesOfSubnets:
    return AddressesOfSubnets(cluster.network, cluster.pools, storage=cluster.storage, sections=())


def _there(ids: tuple[str, ...], rooms: Any) -> tuple[str, ...]:
    return tuple(room.id for room in rooms if room.id in ids)


def _nodes(cluster: config.Cluster, zone: str, mode: Any) -> Any:
    for pool in cluster.pools:
        use = "nodes"
        if pool.instance_types == ("p5.48xlarge",):
            uses = {use for each in cluster.network.subnets for use in each.use}
            use = "accelerated" if "accelerated" in uses else "nodes"
        if zone in pool.zones:
            yield Nodes(
                name=pool.name,
                subnets=tuple(
                    each.id
                    for each in cluster.network.subnets
                    if each.zone == zone and use in each.use
                ),
                count=pool.nodes.highest
                + _SURGE.get((pool.provisioner, pool.instance_types[0]), 0),
                each=node_draw(pool, mode),
                spreads=pool.provisioner == "karpenter",
            )
