"""Auto Scaling groups of pools."""

from datetime import timedelta
from ipaddress import IPv4Network
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.pools import CAPACITY_BLOCK, ODCR, ON_DEMAND, SPOT, SYSTEM_POOL, make_pool
from ultrascale.plan.model import PoolPlan, SubnetPlan
from ultrascale.plan.pools.node_groups import (
    block_subnet,
    drain_seconds,
    group_subnets,
    is_guarded,
    is_kept_in_its_zones,
)
from ultrascale.plan.pools.pool import plan_pool

GPUS = ["g6.12xlarge", "g6e.12xlarge", "g5.12xlarge"]


def plan_of(**changes: Any) -> PoolPlan:
    pool = make_pool(provisioner="self-managed", **changes)
    return plan_pool(pool, kubernetes_version="1.35")


@pytest.mark.parametrize(
    ("plan", "seconds"),
    [
        (plan_of(purchase=SPOT, instance_types=GPUS), 120),
        (plan_of(purchase=CAPACITY_BLOCK, role="reserved"), 600),
        (plan_of(purchase=ON_DEMAND), 3600),
        (plan_of(purchase=ODCR, role="reserved"), 3600),
    ],
)
def test_a_node_is_drained_for_as_long_as_it_lives(plan: PoolPlan, seconds: int) -> None:
    assert drain_seconds(plan) == seconds


def test_drain_of_a_block_ends_when_ec2_begins_to_take_its_instances() -> None:
    plan = plan_of(purchase=CAPACITY_BLOCK, role="reserved")
    assert plan.window is not None
    window = replace(plan.window, usable_until=plan.window.reclaimed_from - timedelta(minutes=3))

    assert drain_seconds(replace(plan, window=window)) == 180


@pytest.mark.parametrize(
    ("instance_type", "role", "zones", "kept"),
    [
        ("g6.12xlarge", "burst", ("us-west-2a", "us-west-2b"), True),
        ("m7g.2xlarge", "reserved", ("us-west-2a", "us-west-2b"), True),
        ("g6.12xlarge", "burst", ("us-west-2a",), False),
        ("m7g.2xlarge", "burst", ("us-west-2a", "us-west-2b"), False),
    ],
)
def test_jobs_that_cannot_move_are_kept_in_their_zones_whoever_sizes_the_group(
    instance_type: str, role: str, zones: tuple[str, ...], kept: bool
) -> None:
    plan = replace(
        plan_of(purchase=ON_DEMAND, instance_types=[instance_type], role=role), zones=zones
    )
    assert is_kept_in_its_zones(replace(plan, sized_by="cluster-autoscaler")) is kept
    assert is_kept_in_its_zones(replace(plan, sized_by="file")) is kept
    # Nobody is kept in zones that an update counts on balancing.
    assert not is_kept_in_its_zones(replace(plan, replace_before_launch=False))


@pytest.mark.parametrize(
    ("pool", "guarded"),
    [
        ({"purchase": CAPACITY_BLOCK, "role": "reserved", "efa": "none"}, True),
        ({"purchase": ODCR, "role": "reserved", "efa": "none"}, True),
        ({"purchase": ODCR, "role": "burst", "efa": "none"}, True),
        ({"purchase": ON_DEMAND, "role": "reserved", "efa": "none"}, True),
        ({"purchase": ON_DEMAND, "role": "burst"}, True),
        ({"purchase": ON_DEMAND, "instance_types": ["trn1.32xlarge"]}, True),
        ({"purchase": ON_DEMAND, "role": "burst", "efa": "none"}, False),
        ({"purchase": ON_DEMAND, "instance_types": ["m7g.8xlarge"]}, False),
        ({"purchase": SPOT, "role": "burst", "instance_types": GPUS}, False),
    ],
    ids=str,
)
def test_nodes_that_are_reserved_or_run_one_job_are_guarded_and_no_system_nodes(
    pool: dict[str, Any], guarded: bool
) -> None:
    assert is_guarded(plan_of(**pool)) is guarded
    for purchase in (ON_DEMAND, ODCR):
        system = make_pool(**SYSTEM_POOL, purchase=purchase)
        assert not is_guarded(plan_pool(system, kubernetes_version="1.35"))


def subnet_of(cidr: str) -> SubnetPlan:
    return SubnetPlan(
        kind="accelerated", zone="us-west-2b", cidr=IPv4Network(cidr), prefix_reservations=()
    )


# Both hold a /28 for the addresses that EC2 keeps, and single ones beside the nodes.
SMALL, LARGE = subnet_of("100.64.0.0/24"), subnet_of("100.65.0.0/16")


@pytest.mark.parametrize(
    ("subnets", "nodes", "chosen"),
    [
        # The first, the first with room and not the largest, the largest of the small.
        ([LARGE, SMALL], 4, LARGE),
        ([SMALL, LARGE], 8, LARGE),
        ([subnet_of("100.64.0.0/20"), LARGE], 64, subnet_of("100.64.0.0/20")),
        ([SMALL, subnet_of("100.64.2.0/23")], 450, subnet_of("100.64.2.0/23")),
    ],
)
def test_a_block_lies_in_the_first_subnet_that_holds_all_of_its_nodes(
    subnets: list[SubnetPlan], nodes: int, chosen: SubnetPlan
) -> None:
    plan = replace(plan_of(purchase=CAPACITY_BLOCK, role="reserved"), max_nodes=nodes)
    assert block_subnet(plan, subnets) == chosen


# The first holds it, it needs two, with those before it, all of them where none do.
@pytest.mark.parametrize(
    ("nodes", "before", "chosen"), [(4, 0, 1), (40, 0, 2), (4, 40, 2), (4, 4000, 3)]
)
def test_a_managed_group_lies_in_the_first_subnets_that_hold_it_and_those_before_it(
    nodes: int, before: int, chosen: int
) -> None:
    subnets = [subnet_of(f"100.{block}.0.0/22") for block in (64, 65, 66)]
    pool = replace(plan_of(purchase=ODCR), provisioner="managed-node-group", max_nodes=nodes)
    other = replace(pool, name="other", max_nodes=before)
    apart = (replace(other, zones=("us-west-2a",)), replace(other, provisioner="karpenter"))
    assert list(group_subnets(pool, subnets, earlier=[other])) == subnets[:chosen]
    assert group_subnets(pool, subnets, earlier=apart) == group_subnets(pool, subnets, earlier=())


def test_a_managed_group_leaves_room_for_hyperpods_nodes_that_can_go_nowhere_else_either() -> None:
    subnets = [subnet_of(f"100.{block}.0.0/22") for block in (64, 65, 66)]
    pool = replace(plan_of(purchase=ODCR), provisioner="managed-node-group", max_nodes=4)
    # Each takes an address for every pod beside its prefixes.
    managed = replace(pool, name="other")
    hyperpod = replace(managed, provisioner="hyperpod")

    assert list(group_subnets(pool, subnets, earlier=[managed])) == subnets[:1]
    assert list(group_subnets(pool, subnets, earlier=[hyperpod])) == subnets[:2]


@pytest.mark.parametrize("provisioner", ["self-managed", "karpenter"])
def test_what_takes_further_subnets_in_place_has_them_all(provisioner: Any) -> None:
    pool = replace(plan_of(purchase=ODCR), provisioner=provisioner)

    assert group_subnets(pool, [SMALL, LARGE], earlier=()) == (SMALL, LARGE)
