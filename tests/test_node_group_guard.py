"""What stands between a deploy and the nodes of a managed group that run."""

from dataclasses import replace
from typing import Any

import pytest
from aws_cdk.assertions import Template

from tests.construct_stacks import make_pool_plan, resources, the
from tests.managed_groups import BLOCK, FUNCTION, GUARD, NODE_GROUP, ODCR, PLAN, ZONES, synthesize
from ultrascale.plan.model import PoolPlan, RootDisk

RESERVED = make_pool_plan(purchase=ODCR)
TWO_ZONES = ("us-west-2a", "us-west-2b")


@pytest.fixture(scope="module")
def reserved() -> Template:
    return synthesize(RESERVED)


class TestGuard:
    """EKS replaces node after node when their template changes, whatever runs on them."""

    @pytest.mark.parametrize("plan", [RESERVED, make_pool_plan(purchase=BLOCK)])
    def test_it_comes_before_whatever_would_end_nodes(self, plan: PoolPlan) -> None:
        template = synthesize(plan)

        (guard,) = template.find_resources(GUARD)
        for kind in (NODE_GROUP, "AWS::EC2::LaunchTemplate"):
            (body,) = resources(template, kind)
            assert guard in body["DependsOn"]

    def test_it_looks_at_the_pools_own_group(self, reserved: Template) -> None:
        properties = the(reserved, GUARD)

        assert properties["ServiceToken"] == FUNCTION
        assert properties["ClusterName"] == "research"
        assert properties["Labels"] == {"ultrascale.dev/pool": "train", "ultrascale.dev/shard": ""}

    @pytest.mark.parametrize(
        "changes",
        [
            {"ami_release": "1.35.9-20261130"},
            {"kubernetes_version": "1.36"},
            {"root_disk": RootDisk(size_gib=200, iops=3000, throughput_mibps=125)},
            {"tags": {"team": "research"}},
            {"raid0": False},
            {"instance_types": ("p5e.48xlarge",)},
            {"instance_types": ("p5.48xlarge", "p5e.48xlarge")},
            {"ami_type": "AL2023_ARM_64_NVIDIA"},
        ],
        ids=str,
    )
    def test_it_is_asked_when_nodes_would_be_replaced(
        self, reserved: Template, changes: Any
    ) -> None:
        after = synthesize(replace(RESERVED, **changes))

        assert the(after, GUARD) != the(reserved, GUARD)

    @pytest.mark.parametrize(
        "changes",
        [
            {"max_nodes": 17, "initial_nodes": 17},
            {"labels": {**RESERVED.labels, "team": "research"}},
            {"taints": ()},
            {"max_unavailable": 2},
        ],
        ids=str,
    )
    def test_it_does_not_stop_what_leaves_nodes_alone(
        self, reserved: Template, changes: Any
    ) -> None:
        after = synthesize(replace(RESERVED, **changes))

        assert the(after, NODE_GROUP) != the(reserved, NODE_GROUP)
        assert the(after, GUARD) == the(reserved, GUARD)

    def test_burst_nodes_are_not_guarded(self) -> None:
        synthesize(PLAN).resource_count_is(GUARD, 0)


class TestZones:
    """Zones are not balanced at the cost of jobs."""

    @pytest.mark.parametrize("plan", [PLAN, RESERVED], ids=["scaled", "fixed"])
    def test_nodes_stay_where_they_are(self, plan: PoolPlan) -> None:
        template = synthesize(replace(plan, zones=TWO_ZONES))

        (group,) = template.find_resources(NODE_GROUP)
        template.has_resource_properties(
            ZONES,
            {
                "ServiceToken": FUNCTION,
                "ClusterName": "research",
                "NodegroupName": {"Fn::GetAtt": [group, "NodegroupName"]},
            },
        )

    def test_in_a_single_zone_there_is_nothing_to_balance(self, reserved: Template) -> None:
        reserved.resource_count_is(ZONES, 0)


@pytest.mark.parametrize("kind", [GUARD, ZONES])
def test_a_function_that_never_answers_does_not_hold_a_deploy_for_an_hour(kind: str) -> None:
    properties = the(synthesize(replace(RESERVED, zones=TWO_ZONES)), kind)

    assert int(properties["ServiceTimeout"]) <= 600
