"""NodePools of Karpenter and EKS Auto Mode: sizes, requirements and order."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.node_pool_plans import (
    CELLS,
    G_TYPES,
    ODCR_BY_TAGS,
    PROVISIONERS,
    SPOT_WITH_FALLBACK,
    STATIC,
    Planned,
    planned,
    planned_file,
)
from tests.support.pools import CAPACITY_BLOCK, ODCR, ON_DEMAND, SPOT
from ultrascale.plan.model import NodePoolPlan

CPU: Mapping[str, Any] = {"instance_types": ["m7g.8xlarge"], "zones": None}
FALLS_BACK: Mapping[str, Any] = {"purchase": SPOT_WITH_FALLBACK, "instance_types": G_TYPES}
STATIC_BLOCK: Mapping[str, Any] = {"purchase": CAPACITY_BLOCK, **STATIC}
SYSTEM: Mapping[str, Any] = {
    **{"name": "system", "provisioner": "auto-mode", **CPU},
    **{"purchase": ON_DEMAND, "nodes": {"max": 6}},
}
each_provisioner = pytest.mark.parametrize("provisioner", PROVISIONERS)
each_cell = pytest.mark.parametrize("cell", CELLS.values(), ids=list(CELLS))


def requirements(node_pool: NodePoolPlan) -> Mapping[str, tuple[str, ...]]:
    return {each.key: each.values for each in node_pool.requirements}


class TestRequirements:
    """An API server takes any value, and Karpenter then ignores the pool without an error."""

    @each_provisioner
    @each_cell
    def test_nodes_are_of_the_one_capacity_type_that_the_file_buys(
        self, provisioner: str, cell: Mapping[str, Any]
    ) -> None:
        expected = {"on-demand": "on-demand", "spot": "spot"}
        first, *_ = planned(provisioner, **cell).node_pools

        wanted = expected.get(cell["purchase"]["option"], "reserved")
        assert requirements(first)["karpenter.sh/capacity-type"] == (wanted,)

    @each_provisioner
    @pytest.mark.parametrize(
        ("purchase", "expected"),
        [
            (ODCR, "default"),
            (ODCR_BY_TAGS, "default"),
            (CAPACITY_BLOCK, "capacity-block"),
            # Nothing else asks for a reservation.
            (ON_DEMAND, None),
            (SPOT, None),
        ],
    )
    def test_blocks_and_other_reservations_never_share_a_launch(
        self, provisioner: str, purchase: Mapping[str, Any], expected: str | None
    ) -> None:
        domain = {"karpenter": "karpenter.k8s.aws", "auto-mode": "eks.amazonaws.com"}[provisioner]
        mixed: dict[str, Any] = {} if expected else {"instance_types": G_TYPES, "efa": "none"}
        found = requirements(planned(provisioner, purchase=purchase, **mixed).node_pool)
        asked = {key: values for key, values in found.items() if "reservation" in key}
        assert asked == ({f"{domain}/capacity-reservation-type": (expected,)} if expected else {})
        # Instance types keep the order of the file.
        assert expected or found["node.kubernetes.io/instance-type"] == tuple(G_TYPES)

    def test_nodes_stay_in_the_zones_of_the_pool(self) -> None:
        found = requirements(planned(zones=["us-west-2c"]).node_pool)

        assert found["topology.kubernetes.io/zone"] == ("us-west-2c",)
        assert "topology.k8s.aws/zone-id" not in found

    @each_provisioner
    def test_zone_ids_of_the_file_are_required_as_zone_ids(self, provisioner: str) -> None:
        network = {"vpc_cidr": "10.0.0.0/16", "zones": ["usw2-az1", "usw2-az4"]}
        plans = planned(provisioner, network=network, zones=["usw2-az4"])

        assert requirements(plans.node_pool)["topology.k8s.aws/zone-id"] == ("usw2-az4",)
        assert "topology.kubernetes.io/zone" not in requirements(plans.node_pool)


class TestFallback:
    """Spot first, On-Demand where Spot is short, and never more nodes than the file allows."""

    @each_provisioner
    def test_a_second_pool_on_the_same_class_launches_on_demand(self, provisioner: str) -> None:
        plans = planned(provisioner, **FALLS_BACK)
        spot, fallback = plans.node_pools
        assert [spot.name, fallback.name] == ["train", "train-on-demand"]
        assert spot.node_class == fallback.node_class == plans.node_class.name
        assert requirements(spot)["karpenter.sh/capacity-type"] == ("spot",)
        assert requirements(fallback)["karpenter.sh/capacity-type"] == ("on-demand",)
        # Spot without a fallback has the whole limit.
        alone = planned(provisioner, purchase=SPOT, instance_types=G_TYPES).node_pool
        assert (alone.max_nodes, alone.max_vcpus) == (16, 16 * 96)

    def test_labels_say_which_of_the_two_a_node_is(self) -> None:
        spot, fallback = planned(**FALLS_BACK).node_pools
        differ = {key for key, value in spot.labels.items() if fallback.labels.get(key) != value}

        assert differ == {"ultrascale.dev/capacity"}
        assert spot.labels["ultrascale.dev/capacity"] == "spot"
        assert fallback.labels["ultrascale.dev/capacity"] == "on-demand"

    @settings(deadline=None, max_examples=40)
    @given(st.integers(2, 100_000))
    def test_both_together_never_exceed_the_file_and_both_may_launch(self, most: int) -> None:
        spot, fallback = planned("auto-mode", **FALLS_BACK, nodes={"max": most}).node_pools

        assert spot.max_nodes + fallback.max_nodes == most
        assert spot.max_nodes >= fallback.max_nodes >= 1


class TestWeights:
    def test_what_is_paid_for_is_used_first_and_the_system_pool_last(self) -> None:
        reserved = planned("auto-mode", purchase=ODCR).node_pool.weight
        spot, fallback = planned("auto-mode", **FALLS_BACK).node_pools
        on_demand = planned("auto-mode").node_pool.weight
        system = planned(**SYSTEM).node_pool.weight
        assert (reserved, spot.weight, fallback.weight, on_demand, system) == (100, 50, 10, 10, 1)
        # So does one that is bought On-Demand.
        assert planned(role="reserved").node_pool.weight == 100

    @each_provisioner
    @pytest.mark.parametrize("purchase", [ON_DEMAND, ODCR, CAPACITY_BLOCK])
    def test_static_pools_have_none_which_karpenter_would_refuse(
        self, provisioner: str, purchase: Mapping[str, Any]
    ) -> None:
        assert planned(provisioner, purchase=purchase, **STATIC).node_pool.weight is None


class TestLimits:
    """A job of many pods must not launch more nodes than the file allows in one batch."""

    @each_provisioner
    def test_vcpus_hold_to_the_same_count_as_nodes(self, provisioner: str) -> None:
        node_pool = planned(provisioner, instance_types=["p5.48xlarge"]).node_pool

        assert (node_pool.max_nodes, node_pool.max_vcpus) == (16, 16 * 192)

    def test_each_half_of_a_fallback_has_the_vcpus_of_its_nodes(self) -> None:
        halves = planned(**FALLS_BACK, nodes={"max": 5}).node_pools

        assert [(each.max_nodes, each.max_vcpus) for each in halves] == [(3, 288), (2, 192)]


class TestStatic:
    @each_provisioner
    @pytest.mark.parametrize("purchase", [ON_DEMAND, ODCR])
    def test_a_fixed_count_is_kept_and_never_exceeded(
        self, provisioner: str, purchase: Mapping[str, Any]
    ) -> None:
        node_pool = planned(provisioner, purchase=purchase, **STATIC).node_pool
        assert (node_pool.replicas, node_pool.max_nodes, node_pool.max_vcpus) == (16, 16, None)
        assert node_pool.calendar is None or node_pool.calendar.window is None

    @each_provisioner
    def test_a_static_block_is_empty_until_its_calendar_fills_it(self, provisioner: str) -> None:
        plans = planned(provisioner, **STATIC_BLOCK)
        assert (plans.node_pool.replicas, plans.node_pool.max_nodes) == (0, 16)
        calendar, pool = plans.node_pool.calendar, plans.pools[-1]
        assert calendar is not None
        assert (calendar.window, calendar.reservation) == (pool.window, pool.reservation)
        # A block that scales needs none.
        scales = planned(provisioner, purchase=CAPACITY_BLOCK).node_pool
        assert (scales.replicas, scales.calendar, scales.max_nodes) == (None, None, 16)


class TestLabels:
    """The same pod spec lands on nodes of every provisioner."""

    @each_provisioner
    @each_cell
    def test_nodes_have_the_labels_and_taints_of_a_node_group(
        self, provisioner: str, cell: Mapping[str, Any]
    ) -> None:
        plans = planned(provisioner, **cell)
        pool, node_pool = plans.pools[-1], plans.node_pools[0]
        # Karpenter makes a label of a requirement with one value.
        required = {key: values[0] for key, values in requirements(node_pool).items()}

        assert {**required, **node_pool.labels}.items() >= pool.labels.items()
        assert node_pool.taints == pool.taints


class TestNames:
    """EKS Auto Mode has NodePools of its own, and deletes an object that is called like one."""

    def test_the_system_pool_is_no_built_in_one_and_keeps_its_labels(self) -> None:
        plans = planned(**SYSTEM)

        assert plans.node_pool.name == "system-nodes"
        assert plans.node_pool.node_class == plans.node_class.name == "system"
        assert plans.node_pool.labels["ultrascale.dev/pool"] == "system"

    @pytest.mark.parametrize("file", ["mixed-capacity.yaml", "auto-mode.yaml"])
    def test_no_pool_of_the_file_has_the_name_of_a_built_in_one(self, file: str) -> None:
        names = [each.name for each in planned_file(file).node_pools]

        assert not {*names} & {"system", "general-purpose"}
        assert len({*names}) == len(names)


class TestShards:
    def test_each_has_a_class_and_a_pool_of_its_own(self) -> None:
        plans = planned(shards=3, nodes={"max": 1000})
        names = ["train-1", "train-2", "train-3"]
        assert [each.name for each in plans.classes] == names
        assert [each.name for each in plans.node_pools] == names
        assert [each.node_class for each in plans.node_pools] == names
        assert [(each.pool, each.shard) for each in plans.node_pools] == [
            ("train", number) for number in (1, 2, 3)
        ]
        # They share the security group of EFA.
        assert len({str(each.security_group_tags) for each in plans.classes}) == 1
        # Node groups have neither class nor pool.
        groups = planned("managed-node-group")
        assert groups == Planned(pools=groups.pools, classes=(), node_pools=())


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("mixed-capacity", "gpu-reserved-block gpu-reserved-odcr gpu-burst trn-ondemand"),
        ("auto-mode", "system gpu-reserved inference gpu-burst neuron cpu"),
    ],
)
def test_every_pool_of_the_file_has_its_class(file: str, expected: str) -> None:
    plans = planned_file(f"{file}.yaml")
    assert [each.name for each in plans.classes] == expected.split()
    assert {each.node_class for each in plans.node_pools} == {*expected.split()}
