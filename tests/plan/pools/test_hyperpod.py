"""The HyperPod cluster that follows from a cluster file, and what each team may use of it."""

from fractions import Fraction
from ipaddress import IPv4Network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.folders import ROOT
from tests.support.pools import (
    GOVERNED_POOL,
    GOVERNED_ZONES,
    LUSTRE,
    ON_DEMAND,
    SYSTEM_POOL,
    as_text,
    governed_document,
    loads_own,
    make_pool,
)
from ultrascale import catalog
from ultrascale.errors import ConfigError
from ultrascale.parts.hyperpod.model import HyperPodPlan, Plan
from ultrascale.parts.hyperpod.plan import group_subnets, priority_weights, share_nodes
from ultrascale.parts.hyperpod.section import Team
from ultrascale.plan import ClusterPlan, load, plan_cluster
from ultrascale.plan.model import SubnetPlan
from ultrascale.plan.pools.pool import node_addresses, plan_pool


def planned(*teams: dict[str, Any], **changes: Any) -> ClusterPlan:
    document = governed_document(*teams, **changes)
    return plan_cluster(loads_own(as_text(document)))


def hyperpod_of(plan: ClusterPlan) -> HyperPodPlan:
    own = plan.part(Plan)
    assert own is not None
    return own.cluster


def quota_of(plan: ClusterPlan) -> str:
    governance = hyperpod_of(plan).governance
    assert governance is not None
    return governance.teams[0].quota


def team(name: str, weight: int, **changes: Any) -> Team:
    return Team.model_validate({"name": name, "fair_share_weight": weight, **changes})


TEAMS = st.lists(
    st.tuples(st.integers(0, 100), st.none() | st.integers(0, 20)), min_size=1, max_size=6
)


class TestShares:
    """Nodes that no team owns are paid for and used by nobody; nodes owned twice are quarrelled."""

    def test_the_weights_of_the_hybrid_file_give_three_and_five_of_eight(self) -> None:
        plan = hyperpod_of(load(ROOT / "clusters" / "hybrid-hyperpod.yaml"))

        assert plan.governance is not None
        assert {each.name: each.nodes for each in plan.governance.teams} == {
            "research": {"ml.p4de.24xlarge": 3},
            "production": {"ml.p4de.24xlarge": 5},
        }

    @pytest.mark.parametrize(
        ("nodes", "weights", "shares"),
        [
            (8, [40, 60], [3, 5]),
            (8, [50, 50], [4, 4]),
            (7, [50, 50], [4, 3]),
            (1, [1, 1, 1], [1, 0, 0]),
            (10, [0, 100], [0, 10]),
            (10, [33, 33, 34], [3, 3, 4]),
        ],
    )
    def test_nodes_are_shared_by_the_largest_remainder(
        self, nodes: int, weights: list[int], shares: list[int]
    ) -> None:
        teams = [team(f"t{number}", weight) for number, weight in enumerate(weights)]

        assert [*share_nodes(nodes, teams, pool="hp").values()] == shares

    def test_a_team_that_states_its_nodes_gets_these_and_the_others_share_the_rest(self) -> None:
        teams = [team("a", 50), team("b", 10, nodes={"hp": 5}), team("c", 50)]

        assert share_nodes(8, teams, pool="hp") == {"a": 2, "b": 5, "c": 1}

    @given(nodes=st.integers(0, 500), drawn=TEAMS)
    def test_every_node_has_one_owner_and_no_team_is_off_by_a_node(
        self, nodes: int, drawn: list[tuple[int, int | None]]
    ) -> None:
        teams = [
            team(f"t{n}", weight, nodes={} if own is None else {"hp": own})
            for n, (weight, own) in enumerate(drawn)
        ]
        stated = sum(each.nodes.get("hp", 0) for each in teams)
        sharing = [each for each in teams if "hp" not in each.nodes]
        total = sum(each.fair_share_weight for each in sharing)
        if stated > nodes or (sharing and total == 0):
            return  # refused by the rules of the file

        shares = share_nodes(nodes, teams, pool="hp")

        assert sum(shares.values()) == (nodes if sharing else stated)
        for each in sharing:
            exact = Fraction((nodes - stated) * each.fair_share_weight, total)
            assert abs(shares[each.name] - exact) < 1

    def test_pools_of_one_type_add_up_and_each_type_has_its_own_quota(self) -> None:
        others = [
            GOVERNED_POOL | {"name": "more", "purchase": ON_DEMAND, "nodes": {"static": 2}},
            GOVERNED_POOL
            | {"name": "en", "instance_types": ["p5en.48xlarge"], "purchase": ON_DEMAND},
        ]
        plan = planned(pools=[SYSTEM_POOL, GOVERNED_POOL, *others])

        governance = hyperpod_of(plan).governance
        assert governance is not None
        assert governance.teams[0].nodes == {"ml.p5.48xlarge": 10, "ml.p5en.48xlarge": 8}


class TestPriorities:
    def test_the_five_classes_have_the_weights_of_their_order(self) -> None:
        classes = {"low": 400_000, "critical": 1_000_000, "high": 800_000}

        assert priority_weights(classes) == {"critical": 100, "high": 66, "low": 33}
        assert [*priority_weights(classes)] == ["critical", "high", "low"]

    @given(st.lists(st.integers(-(2**31), 10**9), min_size=1, max_size=10, unique=True))
    def test_a_higher_class_always_has_a_higher_weight_within_the_service_s_bounds(
        self, values: list[int]
    ) -> None:
        weights = priority_weights({f"p{number}": value for number, value in enumerate(values)})

        by_value = [weights[f"p{values.index(value)}"] for value in sorted(values)]
        assert by_value == sorted(set(by_value))
        assert all(0 <= weight <= 100 for weight in by_value)

    @pytest.mark.parametrize(
        ("changes", "sharing"),
        [
            ({}, ("DontLend", None)),
            ({"lend": True}, ("Lend", None)),
            ({"lend": True, "borrow_limit_percent": 50}, ("LendAndBorrow", 50)),
            ({"lend": True, "borrow_limit_percent": 500}, ("LendAndBorrow", 500)),
        ],
    )
    def test_a_team_lends_and_borrows_as_the_file_says(
        self, changes: dict[str, Any], sharing: tuple[str, int | None]
    ) -> None:
        plan = planned({"name": "a", "fair_share_weight": 1, **changes})

        governance = hyperpod_of(plan).governance
        assert governance is not None
        (own,) = governance.teams
        assert (own.sharing, own.borrow_limit_percent) == sharing


class TestPools:
    """Properties that only pools of HyperPod groups have, and properties that they lack."""

    def test_our_device_plugins_find_no_node_of_hyperpod(self) -> None:
        (pool,) = planned().pools
        assert not {"nvidia.com/gpu.present", "ultrascale.dev/efa"} & pool.labels.keys()
        assert (pool.labels["gpu-type"], pool.efa_interfaces) == ("h100-80gb", 32)
        # The window of a training plan ends an hour early.
        assert pool.window is not None
        assert f"{pool.window.usable_until:%Y-%m-%d %H:%M}" == "2026-12-08 10:30"
        assert f"{pool.window.ends:%Y-%m-%d %H:%M}" == "2026-12-08 11:30"

    @pytest.mark.parametrize("deep", [True, False])
    def test_the_seeds_taint_is_set_where_hyperpod_takes_taints(self, deep: bool) -> None:
        plan = planned(pools=[SYSTEM_POOL, GOVERNED_POOL | {"deep_health_checks": deep}])

        (group,) = hyperpod_of(plan).groups
        assert [(each.key, each.value, each.effect) for each in group.taints] == (
            [] if deep else [("dedicated", "hyperpod", "NoSchedule")]
        )
        assert bool(group.deep_health_checks) == deep

    # The fourth attachment of SageMaker is the volume of images.
    @pytest.mark.parametrize(
        ("systems", "mounts"),
        [
            ([("near", "us-east-1b"), ("far", "us-east-1a")], ["near"]),
            ([(f"fs{number}", "us-east-1b") for number in range(5)], ["fs0", "fs1", "fs2"]),
        ],
    )
    def test_a_group_mounts_file_systems_of_its_zone_as_many_as_sagemaker_attaches(
        self, systems: list[tuple[str, str]], mounts: list[str]
    ) -> None:
        lustre = [LUSTRE | {"name": name, "zone": zone} for name, zone in systems]
        asked = {"hyperpod": governed_document()["hyperpod"] | {"mount_file_systems": True}}
        (group,) = hyperpod_of(planned(storage={"lustre": lustre}, **asked)).groups
        assert group.mounts == {name: f"/fsx/{name}" for name in mounts}
        # A file system that comes or goes changes no instance: pods mount it by its claim.
        (group,) = hyperpod_of(planned(storage={"lustre": lustre})).groups
        assert group.mounts == {}

    def test_each_shard_is_a_group_of_its_own(self) -> None:
        pool = GOVERNED_POOL | {"shards": 2, "purchase": ON_DEMAND, "nodes": {"static": 3}}
        groups = hyperpod_of(planned(pools=[SYSTEM_POOL, pool])).groups
        assert [(each.name, each.nodes) for each in groups] == [("hp-1", 3), ("hp-2", 3)]


class TestSubnets:
    """SageMaker changes the subnets of no group: a deploy that asks for others fails."""

    def subnets(self, *ranges: str, nodes: int) -> list[str]:
        network = {"vpc_cidr": "10.0.0.0/16", "pod_cidrs": [*ranges], "zones": GOVERNED_ZONES}
        pool = GOVERNED_POOL | {"purchase": ON_DEMAND, "nodes": {"static": nodes}}
        plan = planned(network=network, pools=[SYSTEM_POOL, pool])
        (group,) = hyperpod_of(plan).groups
        own = group.subnets
        assert {subnet.zone for subnet in own} == {"us-east-1b"}
        return [str(subnet.cidr) for subnet in own]

    def test_one_more_pod_range_leaves_a_group_that_has_room_where_it_is(self) -> None:
        first = self.subnets("100.64.0.0/16", nodes=8)

        assert len(first) == 1
        assert self.subnets("100.64.0.0/16", "100.65.0.0/16", "100.66.0.0/16", nodes=8) == first

    def test_a_group_gets_as_many_as_hold_its_nodes(self) -> None:
        ranges = ("100.64.0.0/16", "100.65.0.0/16", "100.66.0.0/16", "100.67.0.0/16")

        few, many = (self.subnets(*ranges, nodes=nodes) for nodes in (8, 100))

        assert many[: len(few)] == few
        assert len(many) == 2

    def test_a_group_gets_no_more_than_sagemaker_takes(self) -> None:
        subnets = [
            SubnetPlan(
                kind="accelerated",
                zone="us-east-1b",
                cidr=IPv4Network(f"100.64.{number}.0/28"),
                prefix_reservations=(),
            )
            for number in range(20)
        ]
        (pool,) = (pool for pool in planned().all_pools if pool.is_hyperpod)

        assert len(group_subnets(pool, subnets)) == 16


class TestQuotas:
    def test_clusters_of_one_account_have_quotas_of_their_own(self) -> None:
        team = {"name": "t" * 40, "fair_share_weight": 1}
        long = [quota_of(planned(team, name=name)) for name in ("research", "x" * 39, "x" * 40)]

        assert quota_of(planned()) == "research-research"
        assert len(set(long)) == 3
        assert all(len(name) <= 63 for name in long)


class TestAddresses:
    """A node without an address never joins, and a training plan is paid for without it."""

    @pytest.mark.parametrize(
        ("name", "addresses", "pods"), [("p5.48xlarge", 81, 49), ("p4de.24xlarge", 53, 49)]
    )
    def test_a_node_takes_as_many_as_sagemaker_documents(
        self, name: str, addresses: int, pods: int
    ) -> None:
        pool = make_pool(provisioner="hyperpod", nodes={"static": 1}, instance_types=[name])
        plan = plan_pool(pool, kubernetes_version="1.35")

        assert (node_addresses(catalog.lookup(name)), plan.max_pods) == (addresses, pods)

    @pytest.mark.parametrize(("provisioner", "fits"), [("hyperpod", False), ("karpenter", True)])
    def test_every_address_of_hyperpods_nodes_counts(self, provisioner: str, fits: bool) -> None:
        plain = GOVERNED_POOL | {"purchase": ON_DEMAND, "role": "reserved", "name": "plain"}
        own = plain | {"provisioner": provisioner, "nodes": {"static": 60}}
        document = governed_document(
            network={
                "vpc_cidr": "10.0.0.0/16",
                "pod_cidrs": ["100.64.0.0/18"],
                "zones": GOVERNED_ZONES,
            },
            karpenter={"version": "1.15.2"},
            pools=[SYSTEM_POOL, own, plain | {"name": "hp", "nodes": {"static": 1}}],
            hyperpod=None,
        )
        lines: tuple[str, ...] = ()
        try:
            plan_cluster(loads_own(as_text(document)))
        except ConfigError as error:
            lines = tuple(error.mistakes)
        assert (lines == ()) == fits
        assert all("network.pod_cidrs: too small for 61 nodes" in line for line in lines)


def test_pools_that_are_not_hyperpods_keep_their_names() -> None:
    plain = {"name": "plain", "provisioner": "managed-node-group", "purchase": ON_DEMAND}
    other = GOVERNED_POOL | plain
    names = {
        pool.name: pool.node_types
        for pool in planned(pools=[SYSTEM_POOL, GOVERNED_POOL, other]).pools
    }
    assert names == {"hp": ("ml.p5.48xlarge",), "plain": ("p5.48xlarge",)}


def test_the_training_operator_comes_with_what_aws_says_it_needs() -> None:
    pools = [SYSTEM_POOL, GOVERNED_POOL | {"deep_health_checks": True}]
    plan = planned(pools=pools, hyperpod={"training_operator": True})
    found, without = hyperpod_of(plan), hyperpod_of(planned())
    assert found.training_operator is not None
    assert found.training_operator.association_namespace == "aws-hyperpod"
    # By this tag alone AWS's policy lets it look at nodes.
    assert found.tags == {"SageMaker": "true"}
    (training,) = (each for each in plan.namespaces if each.training)
    reached = [(each.namespace, each.port) for each in training.reached_from]
    assert reached == [("aws-hyperpod", 8080)]
    assert (without.training_operator, without.tags) == (None, {})
    for cluster in (plan, planned()):
        names = [addon.name for addon in cluster.control_plane.workload_addons]
        assert ("cert-manager" in names) == (cluster is plan)
