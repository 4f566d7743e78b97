"""What follows from a pool for the Auto Scaling group behind it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.pools import CAPACITY_BLOCK, ODCR, ON_DEMAND, SPOT, make_pool
from ultrascale.plan.model import PoolPlan
from ultrascale.plan.node_groups import drain_seconds, protected_from_scale_in
from ultrascale.plan.pool import plan_pool

GPUS = ["g6.12xlarge", "g6e.12xlarge", "g5.12xlarge"]


def plan_of(**changes: Any) -> PoolPlan:
    pool = make_pool(provisioner="self-managed", **changes)
    return plan_pool(pool, kubernetes_version="1.35")


@pytest.mark.parametrize(
    ("plan", "seconds"),
    [
        (plan_of(purchase=SPOT, instance_types=GPUS), 120),
        (plan_of(purchase=CAPACITY_BLOCK, role="reserved"), 600),
        (plan_of(purchase=ON_DEMAND), None),
        (plan_of(purchase=ODCR, role="reserved"), None),
    ],
    ids=["Spot", "Capacity Block", "On-Demand", "ODCR"],
)
def test_a_node_is_drained_for_as_long_as_it_lives(plan: PoolPlan, seconds: int | None) -> None:
    assert drain_seconds(plan) == seconds


def test_drain_of_a_block_ends_when_ec2_begins_to_take_its_instances() -> None:
    plan = plan_of(purchase=CAPACITY_BLOCK, role="reserved")
    assert plan.window is not None
    window = replace(plan.window, usable_until=plan.window.reclaimed_from - timedelta(minutes=3))

    assert drain_seconds(replace(plan, window=window)) == 180


@pytest.mark.parametrize(
    ("sized_by", "zones", "protected"),
    [
        ("cluster-autoscaler", ("us-west-2a", "us-west-2b"), True),
        ("cluster-autoscaler", ("us-west-2a",), False),
        ("calendar", ("us-west-2a", "us-west-2b"), False),
        ("file", ("us-west-2a", "us-west-2b"), False),
    ],
)
def test_only_what_a_scaler_terminates_by_name_is_protected(
    sized_by: Any, zones: tuple[str, ...], protected: bool
) -> None:
    plan = replace(plan_of(purchase=ON_DEMAND), sized_by=sized_by, zones=zones)

    assert protected_from_scale_in(plan) is protected
